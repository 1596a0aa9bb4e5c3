"""The local web server of a curation: it answers one page, on this machine, with its token.

Safe by design: the address has a random token, without which nothing is answered; a request must
be addressed to the host that the server listens on (so no other name can be pointed at it), and
come from its own page; changes come as JSON, which no form of another page can send; the page may
load nothing but what this server sends; answers are never kept by the browser.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from eutely.atlas import Atlas
from eutely.curate.history import ConflictError
from eutely.curate.session import Session
from eutely.curate.slices import WINDOW, Slicer
from eutely.curate.views import overview, revisions, specimen_state
from eutely.errors import EutelyError
from eutely.geometry import spacing
from eutely.report.data import page_data
from eutely.report.words import grouping
from eutely.results import Report
from eutely.tasks.export import export

SHARED = ("shaders", "viewer", "colours", "common")
"""Scripts of the report that the page uses as they are."""

OWN = ("scene", "slices", "card", "queue", "main")
"""Scripts of the page; each needs those before it, and the shared ones."""

ASSETS = {
    **{f"{name}.js": "eutely.report" for name in SHARED},
    **{f"{name}.js": "eutely.curate" for name in ("start", *OWN)},
    "style.css": "eutely.report",
    "curate.css": "eutely.curate",
}
"""File -> package that has it."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Sent with every answer."""

LARGEST = 2**20
"""Bytes of a request at most."""

LONGEST = 200
"""Characters of a path at most."""

DIGITS = 15
"""Digits of a number in a header or query at most."""


def asset(name: str) -> str:
    """Return one of `ASSETS`."""
    return (files(ASSETS[name]) / "assets" / name).read_text(encoding="utf-8")


def render(atlas: Atlas) -> str:
    """Return the page as HTML; specimens are asked for by its scripts."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("eutely.curate", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html").render(
        scripts=[f"{name}.js" for name in (*SHARED, *OWN)],
        data=page_data(atlas, Report(kind="atlas")),
        grouping=grouping(atlas),
    )


@dataclass
class Desk:
    """What the server works on; the session follows when all specimens are annotated.

    Attributes
    ----------
    atlas
        the cells that the page shows.
    until
        share of the names that is to be right.
    session
        None while specimens are being annotated.
    working
        how far that is, in words.
    problem
        why it failed, or "".
    token
        that the address must contain.
    """

    atlas: Atlas
    until: float = 0.99
    session: Session | None = None
    working: str = "reading"
    problem: str = ""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    slicer: Slicer | None = None

    def ready(self) -> Session:
        """Return the session, or raise."""
        if self.session is None:
            raise EutelyError(self.problem or f"not ready yet: {self.working}")
        return self.session


class Guard:
    """Refuses requests for another host or from another page, and adds headers to all answers."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        refusal = self._refusal(request)

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                extra = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        if refusal:
            await PlainTextResponse(refusal, 403)(scope, receive, with_headers)
        elif len(request.url.path) > LONGEST:
            await PlainTextResponse("not there", 404)(scope, receive, with_headers)
        else:
            await self.app(scope, receive, with_headers)

    def _refusal(self, request: Request) -> str:
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return "another host"
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{name}" for name in self.hosts}:
            return "another origin"
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "another site"
        if request.method == "POST":
            kind = request.headers.get("content-type", "")
            length = request.headers.get("content-length", "")
            if kind.split(";")[0].strip() != "application/json":
                return "expected JSON"
            if length and (_number_of(length) is None or int(length) > LARGEST):
                return "too large"
        return ""


def application(desk: Desk, hosts: frozenset[str]) -> Starlette:
    """Return the web application.

    Parameters
    ----------
    desk
        what it works on.
    hosts
        names and ports under which it may be asked, such as 127.0.0.1:8000.
    """

    def page(_: Request) -> Response:
        return HTMLResponse(render(desk.atlas))

    def part(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return PlainTextResponse("not there", 404)
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(asset(name), media_type=kind)

    def all_specimens(_: Request) -> Any:
        if desk.session is None:
            return {"working": desk.working, "problem": desk.problem, "specimens": []}
        return overview(desk.session, desk.until)

    def one_specimen(request: Request) -> Any:
        session = desk.ready()
        seen = _number_of(request.query_params.get("seen", ""))
        return specimen_state(session, _number(request, session), desk.until, seen)

    def news(request: Request) -> Any:
        session = desk.ready()
        case = session.cases[_number(request, session)]
        session.catch_up()
        with session.lock:
            return revisions(session, case)

    def slices(request: Request) -> Any:
        session = desk.ready()
        number, row = _number(request, session), request.path_params["row"]
        shown = session.cases[number].shown
        specimen = session.material.specimens.get(shown.name)
        if desk.slicer is None:
            desk.slicer = Slicer(session.material.files)
        if specimen is None or not any(desk.slicer.has(shown.name).values()):
            problem = desk.slicer.why_not(shown.name, specimen is not None)
            return {"planes": [], "channels": [], "problem": problem}
        if not 0 <= row < len(specimen):
            raise EutelyError(f"there is no nucleus {row}")
        reach = WINDOW * spacing(specimen.centroids)
        centre = np.asarray(specimen.centroids[row])
        return desk.slicer.through(shown.name, specimen.ids, centre, reach)

    def correct(session: Session, number: int, told: dict[str, Any]) -> int:
        wanted = {whole(row): None if cell is None else whole(cell) for row, cell in told["cells"]}
        return session.correct(number, wanted, whole(told["seen"]))

    def undo(session: Session, number: int, told: dict[str, Any]) -> int:
        return session.undo(number, whole(told["seen"]))

    def redo(session: Session, number: int, told: dict[str, Any]) -> int:
        return session.redo(number, whole(told["seen"]))

    def written(session: Session, _: Request, told: dict[str, Any]) -> dict[str, Any]:
        if session.read_only:
            raise EutelyError("this curation is read-only; eutely export writes its results")
        folder = session.material.path / "export"
        files = export(session.results(), folder, [str(kind) for kind in told["kinds"]])
        return {"folder": str(folder), "files": [path.name for path in files]}

    routes = [
        Route("/", page),
        Route("/assets/{name}", part),
        Route("/specimens", _answer(all_specimens)),
        Route("/specimens/{number:int}", _answer(one_specimen)),
        Route("/specimens/{number:int}/news", _answer(news)),
        Route("/specimens/{number:int}/slices/{row:int}", _answer(slices)),
        Route("/specimens/{number:int}/correct", _change(desk, correct), methods=["POST"]),
        Route("/specimens/{number:int}/undo", _change(desk, undo), methods=["POST"]),
        Route("/specimens/{number:int}/redo", _change(desk, redo), methods=["POST"]),
        Route("/export", _post(desk, written), methods=["POST"]),
    ]
    guard = Middleware(Guard, hosts=hosts)
    return Starlette(routes=[Mount(f"/{desk.token}", routes=routes)], middleware=[guard])


def _number(request: Request, session: Session) -> int:
    number = int(request.path_params["number"])
    if not 0 <= number < len(session.cases):
        raise EutelyError(f"there is no specimen {number}")
    return number


def _number_of(text: str) -> int | None:
    """Return the number that a short text of digits stands for, or None."""
    return int(text) if len(text) <= DIGITS and text.isascii() and text.isdecimal() else None


def _answer(make: Callable[[Request], Any]) -> Callable[[Request], Response]:
    """Return an endpoint that answers with JSON; Starlette runs it in a thread."""

    def endpoint(request: Request) -> Response:
        try:
            return JSONResponse(make(request))
        except EutelyError as error:
            return JSONResponse({"problem": str(error)}, 404)

    return endpoint


def _change(desk: Desk, make: Callable[[Session, int, dict[str, Any]], int]) -> Any:
    """Return an endpoint that changes pins; it answers when the change is on disk."""

    def changed(session: Session, request: Request, told: dict[str, Any]) -> dict[str, Any]:
        return {"revision": make(session, _number(request, session), told)}

    return _post(desk, changed)


def _post(desk: Desk, make: Callable[[Session, Request, dict[str, Any]], dict[str, Any]]) -> Any:
    """Return an endpoint that does what JSON tells; it answers when that is on disk."""
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Request) -> Response:
        try:
            content = await _body(request)
            if content is None:
                return JSONResponse({"problem": "too large"}, 413, {"connection": "close"})
            told = json.loads(content)
            session = desk.ready()
            return JSONResponse(await run_in_threadpool(make, session, request, told))
        except ConflictError as error:
            known = {"revision": error.revision, "specimens": error.numbers}
            return JSONResponse({"problem": str(error), **known}, 409)
        except EutelyError as error:
            return JSONResponse({"problem": str(error)}, 403 if _read_only(desk) else 400)
        except (ValueError, KeyError, TypeError, RecursionError):
            return JSONResponse({"problem": "not understood"}, 400)
        except ClientDisconnect:  # nobody is there to be answered
            return Response(status_code=400)

    return endpoint


async def _body(request: Request) -> bytes | None:
    """Return what was sent; None if it is too large, whatever its length was said to be."""
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > LARGEST:
            return None
    return bytes(content)


def whole(value: Any) -> int:
    """Return a whole number that was sent; raise a TypeError for anything else."""
    if type(value) is not int:
        raise TypeError("not a whole number")
    return value


def _read_only(desk: Desk) -> bool:
    return desk.session is not None and desk.session.read_only
