"""A process that reads one file after the other and says what came of it, as lines of JSON."""

import json
import logging
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from fuzzing.readers import Content, read_again, read_eutely, same

MOST = 600 * 10**6
"""Bytes of memory that reading a file may take, half more than the budget; more is a fault."""

ROOM = 2**30
"""Bytes of address space beyond that, before the system says no."""


class _Warnings(logging.Handler):
    """Counts warnings: what was said is not silent."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.levelno >= logging.WARNING


def peak(reset: bool = False) -> int:
    """Return the peak of resident memory in bytes since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line.split()[1] for line in status if line.startswith("VmHWM")))


def judge(kind: str, path: Path, truth: Content | None, checksummed: bool) -> dict[str, Any]:
    """Read a file; return the verdict and what there is to say.

    Verdicts: refused, same, warned, agreed (a second reader reads the same) are good; traceback,
    lines (an error of several lines), memory and silent (wrong without a word) are faults.
    """
    from eutely.errors import EutelyError

    said = _Warnings()
    logging.getLogger("eutely").addHandler(said)
    before = peak(reset=True)
    begin = time.monotonic()
    content: Content | None = None
    try:
        content = read_eutely(kind, path)
        verdict, detail = "read", ""
    except EutelyError as error:
        verdict, detail = "refused", str(error)
        if "Unable to allocate" in detail or "MemoryError" in detail:
            verdict = "memory"
        elif len(detail.splitlines()) != 1:
            verdict = "lines"
    except Exception as error:  # noqa: BLE001  # this is what the fuzzer looks for
        verdict, detail = "traceback", f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        logging.getLogger("eutely").removeHandler(said)
    seconds, memory = time.monotonic() - begin, peak() - before
    if memory > MOST:
        verdict = "memory"
    if content is not None and verdict == "read":
        verdict = _compared(kind, path, content, truth, said.count > 0, checksummed)
    return {"verdict": verdict, "detail": detail, "seconds": seconds, "memory": memory}


def _compared(
    kind: str, path: Path, content: Content, truth: Content | None, warned: bool, checksummed: bool
) -> str:
    """Return the verdict on what was read."""
    if truth is not None and same(content, truth):
        return "same"
    if warned or (kind == "run" and content["absent"]):
        return "warned"
    if checksummed:
        return "silent"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what it leaves out with a warning is no comparison
            again = read_again(kind, path)
        return "agreed" if same(content, again) else "silent"
    except Exception:  # noqa: BLE001  # a second reader may fail in any way
        return "unchecked"


def limit(room: int | None) -> None:
    """Limit the address space to what is used and ``room``, or lift the limit."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    used = 1024 * int(next(row.split()[1] for row in status if row.startswith("VmSize")))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if room is None else used + room, most))


def main() -> None:
    """Answer tasks until there are no more."""
    truths: dict[str, Content] = {}
    for line in sys.stdin:
        task = json.loads(line)
        answer: dict[str, Any] = {}
        if task["what"] == "seed":
            truths[task["seed"]] = read_eutely(task["kind"], Path(task["path"]))
        elif task["what"] in {"limit", "free"}:
            limit(MOST + ROOM if task["what"] == "limit" else None)
        else:
            truth = truths.get(task["seed"])
            answer = judge(task["kind"], Path(task["path"]), truth, task["checksummed"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
