"""The server answers its own page only, and never with anything but text."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eutely.curate.folder import open_material
from eutely.curate.session import Session
from toy_curation import EVIL, toy_folder

testclient = pytest.importorskip("starlette.testclient", reason="starlette is not installed")

from eutely.curate.server import (  # noqa: E402
    ASSETS,
    Desk,
    application,
)

HOST = "127.0.0.1:9000"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_folder(tmp_path_factory.mktemp("toy") / "annotated", evil=True, volumes=True)


class Client:
    """Asks a server as its page does."""

    def __init__(self, folder: Path, **options: Any) -> None:
        material = open_material(folder)
        self.desk = Desk(material.atlas, session=Session(material, **options))
        app = application(self.desk, frozenset({HOST}))
        self.raw = testclient.TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)

    def get(self, path: str, **headers: str) -> Any:
        return self.raw.get(f"/{self.desk.token}/{path}", headers=headers)

    def post(self, path: str, content: Any, **headers: str) -> Any:
        return self.raw.post(f"/{self.desk.token}/{path}", json=content, headers=headers)


@pytest.fixture
def client(made: Path, tmp_path: Path) -> Iterator[Client]:
    made_client = Client(Path(shutil.copytree(made, tmp_path / "annotated")))
    yield made_client
    assert made_client.desk.session is not None
    made_client.desk.session.close()


def test_the_page_and_its_parts_come_with_strict_headers(client: Client) -> None:
    for path in ("", *(f"assets/{name}" for name in ASSETS), "specimens", "specimens/0"):
        answer = client.get(path)
        assert answer.status_code == 200, path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
    page = client.get("").text
    assert EVIL not in page
    assert "http://" not in page
    assert "https://" not in page


def test_nothing_is_answered_without_the_token(client: Client) -> None:
    for path in ("/", "/specimens", "/assets/viewer.js", f"/{client.desk.token[:-1]}x/specimens"):
        assert client.raw.get(path).status_code == 404
    assert client.get("assets/../server.py").status_code == 404
    assert client.get("assets/%2e%2e%2fserver.py").status_code == 404
    assert client.get("assets/page.html").status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:9000"},
        {"host": "127.0.0.1:80"},
        {"origin": "http://evil.example"},
        {"origin": "https://127.0.0.1:9000"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_other_pages_can_neither_read_nor_write(client: Client, headers: dict[str, str]) -> None:
    assert client.get("specimens", **headers).status_code == 403
    wanted = {"cells": [[5, 3]], "seen": 0}
    assert client.post("specimens/0/correct", wanted, **headers).status_code == 403
    assert client.desk.session.cases[0].history.pins == {}


def test_only_json_of_a_sensible_size_is_read(client: Client) -> None:
    path = f"/{client.desk.token}/specimens/0/correct"
    form = client.raw.post(path, data={"cells": "1"})
    assert form.status_code == 403
    large = client.raw.post(
        path, content=b"[" * 2**21, headers={"content-type": "application/json"}
    )
    assert large.status_code == 403
    parts = client.raw.post(
        path,
        content=(b"[" * 2**16 for _ in range(32)),  # chunked: no length is said
        headers={"content-type": "application/json"},
    )
    assert parts.status_code == 413
    for cells in (3, [[1]], [[5.5, 3]], [[True, 3]], [["5", 3]], [[5, [3]]], None):
        told = {"cells": cells, "seen": 0}
        assert client.post("specimens/0/correct", told).status_code == 400
    for content in ([], {}, "x", 7):
        assert client.post("specimens/0/correct", content).status_code == 400
    assert client.post("specimens/0/undo", {}).status_code == 400  # says not what it has seen
    for number in ("1e999", "-1e999", "NaN", "9" * 4000, "9" * 5000):
        for told in ("[[{}, 3]], 'seen': 0", "[[5, {}]], 'seen': 0", "[], 'seen': {}"):
            text = f"{{'cells': {told.format(number)}}}".replace("'", '"')
            odd = client.raw.post(path, content=text, headers={"content-type": "application/json"})
            assert odd.status_code in (400, 409), text[:40]
        assert client.get(f"specimens/{number}").status_code == 404
        assert client.get(f"specimens/0/slices/{number}").status_code == 404
        assert client.get(f"specimens/0?seen={number}").status_code == 200
    deep = client.raw.post(path, content=b"[" * 10**5, headers={"content-type": "application/json"})
    assert deep.status_code == 400
    assert client.post("specimens/9/correct", {"cells": [[5, 3]], "seen": 0}).status_code == 400
    assert client.get("specimens/9").status_code == 404
    assert client.get("specimens/0/slices/900").status_code == 404
    assert client.get("specimens/0/correct").status_code == 405


def test_a_client_that_leaves_in_mid_body_is_no_error(client: Client) -> None:
    path = f"/{client.desk.token}/specimens/0/correct"
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(),
        "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": [(b"host", HOST.encode()), (b"content-type", b"application/json"),
                    (b"content-length", b"1000")],
    }  # fmt: skip
    news = iter([{"type": "http.request", "body": b"{", "more_body": True},
                 {"type": "http.disconnect"}])  # fmt: skip

    async def receive() -> Any:
        return next(news)

    async def send(message: Any) -> None:
        assert message.get("status", 400) == 400

    asyncio.run(client.raw.app(scope, receive, send))
    assert client.desk.session.cases[0].history.pins == {}


def test_a_correction_undo_and_a_conflict(client: Client) -> None:
    told = client.get("specimens/0").json()
    wanted = {"cells": [[5, told["cells"][6]]], "seen": told["revision"]}
    assert client.post("specimens/0/correct", wanted).json() == {"revision": 1}
    for what, late in (("correct", {"cells": [[6, told["cells"][6]]]}), ("undo", {}), ("redo", {})):
        refused = client.post(f"specimens/0/{what}", {**late, "seen": 0})
        assert refused.status_code == 409
        assert refused.json() == {
            "problem": refused.json()["problem"], "revision": 1, "specimens": [0],
        }  # fmt: skip
        assert "another window, nucleus" in refused.json()["problem"]
    assert client.post("specimens/0/undo", {"seen": 1}).json() == {"revision": 2}
    assert client.post("specimens/0/redo", {"seen": 2}).json() == {"revision": 3}
    assert len(client.get("specimens/0/slices/5").json()["planes"]) == 3


def test_read_only_shows_and_refuses(made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "annotated"))
    client = Client(folder, read_only=True)
    assert client.get("specimens").json()["readOnly"] is True
    answer = client.post("specimens/0/correct", {"cells": [[5, 3]], "seen": 0})
    assert answer.status_code == 403
    assert answer.json()["problem"] == "this curation is read-only"
    assert not (folder / "pins.csv").exists()
    client.desk.session.close()


def test_while_specimens_are_annotated_the_page_says_how_far_it_is(made: Path) -> None:
    desk = Desk(open_material(made).atlas, working="12 of 100 specimens")
    raw = testclient.TestClient(application(desk, frozenset({HOST})), base_url=f"http://{HOST}")
    told = raw.get(f"/{desk.token}/specimens").json()
    assert told == {"working": "12 of 100 specimens", "problem": "", "specimens": []}
    assert raw.get(f"/{desk.token}/specimens/0").status_code == 404


def test_results_are_written_for_other_programs(client: Client) -> None:
    session = client.desk.session
    cell = int(session.solve(0).nuclei.cells[5])
    revision = client.post("specimens/0/correct", {"cells": [[5, -1]], "seen": 0}).json()
    told = client.post("export", {"kinds": ["csv"]}).json()
    folder = session.material.path / "export"
    assert told == {"folder": str(folder), "files": ["annotations.csv"]}
    lines = (folder / "worm001.csv").read_text().splitlines()
    assert lines[6].split(",")[1] == ""
    assert cell >= 0
    assert revision["revision"] == 1
    assert client.post("export", {"kinds": ["pdf"]}).status_code == 400
    assert client.post("export", {}).status_code == 400
    session.read_only = True
    assert client.post("export", {"kinds": ["csv"]}).status_code == 403
