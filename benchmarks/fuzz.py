"""Broken and hostile files through the readers: what is refused, what is wrong without a word.

Seeds of every format are made with the library that owns the format. Most inputs are seeds with
flipped bits, absurd numbers, cuts, surplus data or lost files; every fourth is a hostile structure.
Each is read in a process with limits of memory (half more than the budget of 400 MB) and time
(20 s). What is read must be the seed's content, come with a warning, or agree with a second reader
of the format.

Run: python benchmarks/fuzz.py --inputs 10000 --seed 11
"""

import argparse
import json
import os
import platform
import select
import shutil
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from fuzzing.hostile import hostile  # noqa: E402
from fuzzing.mutate import mutate  # noqa: E402
from fuzzing.seeds import SEEDS, Seed  # noqa: E402

RESULTS = HERE / "results" / "fuzz.json"
SECONDS = 20.0
"""Time that reading a file may take."""

START = 300.0
"""Time for a process to start, which may compile."""

MEMORY = "400MB"
"""The budget that the readers are given, see `eutely.io.limits`."""

FULL, LEAST = 10000, 500
"""Inputs of a full run, and inputs of each format in it, at least."""

HOSTILE = 0.25
"""Share of hostile structures."""

GOOD = ("refused", "same", "warned", "agreed", "unchecked")
FAULTS = ("traceback", "crash", "hang", "memory", "lines", "silent")


@dataclass(frozen=True)
class Result:
    """What came of one input."""

    kind: str
    number: int
    how: str
    verdict: str
    detail: str
    seconds: float
    memory: int


class Worker:
    """A process that reads files; a new one replaces it when it crashes or hangs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None
        self.ready: set[str] = set()

    def good(self, kind: str, seed: Seed) -> Path:
        """Return the folder of a seed, which is made where it does not exist."""
        place = self.folder / f"{kind}{SEEDS[kind].index(seed)}"
        if not place.exists():
            place.mkdir()
            seed.write(place)
        return place

    def prepare(self, kind: str) -> None:
        """Start the process, if need be; it reads the seeds of a format, then gets its limits."""
        if self.process is None:
            environment = {**os.environ, "EUTELY_MAX_MEMORY": MEMORY, "PYTHONPATH": _path()}
            self.ready = set()
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "fuzzing.worker"],
                text=True, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
        if kind in self.ready:
            return
        self.ask({"what": "free"}, START)
        for seed in SEEDS[kind]:
            path = self.good(kind, seed) / seed.name
            task = {"what": "seed", "kind": kind, "path": str(path), "seed": seed.name}
            answer = self.ask(task, START)
            if answer:
                raise RuntimeError(f"the seed {seed.name} cannot be read: {answer}")
        self.ask({"what": "limit"}, START)
        self.ready.add(kind)

    def ask(self, task: dict[str, Any], seconds: float = SECONDS) -> dict[str, Any]:
        """Return the answer to a task, or the verdict crash or hang."""
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], seconds)
            line = self.process.stdout.readline() if ready else ""
        except BrokenPipeError:
            ready, line = [1], ""
        if line:
            return json.loads(line)
        self.stop()
        verdict = "crash" if ready else "hang"
        return {"verdict": verdict, "detail": "", "seconds": seconds, "memory": 0}

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def _path() -> str:
    return os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])


def inputs(kind: str, count: int, seed: int) -> Iterator[tuple[int, Seed, np.random.Generator]]:
    """Yield the number of each input, its seed and its random numbers."""
    for number in range(count):
        random = np.random.default_rng([seed, zlib.crc32(kind.encode()), number])
        yield number, SEEDS[kind][number % len(SEEDS[kind])], random


def make(kind: str, path: Path, random: np.random.Generator) -> tuple[str, bool]:
    """Change a good file; return how, and whether it is a mutation of what was there."""
    if random.random() < HOSTILE:
        return hostile(kind, path, random), False
    return mutate(path, random), True


def run_format(worker: Worker, kind: str, count: int, seed: int, keep: Path | None) -> list[Result]:
    """Put inputs of one format through the reader."""
    results = []
    for number, good, random in inputs(kind, count, seed):
        worker.prepare(kind)
        place = worker.folder / f"input{number}"
        shutil.copytree(worker.good(kind, good), place)
        how, mutated = make(kind, place / good.name, random)
        task = {"what": "read", "kind": kind, "path": str(place / good.name), "seed": good.name,
                "checksummed": good.checksummed and mutated}  # fmt: skip
        answer = worker.ask(task)
        answer["detail"] = answer["detail"].replace(str(worker.folder), "")
        results.append(Result(kind, number, how, **answer))
        if keep and answer["verdict"] in (*FAULTS, "unchecked"):
            target = keep / answer["verdict"] / f"{kind}{number}"
            shutil.rmtree(target, ignore_errors=True)
            subprocess.run(["cp", "-r", str(place), str(target)], check=False)
        shutil.rmtree(place)
    return results


def run(
    count: int, seed: int, kinds: Sequence[str], workers: int = 2, keep: Path | None = None
) -> list[Result]:
    """Put ``count`` inputs through the readers, equally many of each format."""
    each = -(-count // len(kinds))

    def work(some: Sequence[str]) -> list[Result]:
        with TemporaryDirectory() as folder:
            worker = Worker(Path(folder))
            try:
                found = [run_format(worker, kind, each, seed, keep) for kind in some]
            finally:
                worker.stop()
        return [result for results in found for result in results]

    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(work, [kinds[first::workers] for first in range(workers)]))
    return [result for results in found for result in results]


def table(results: Sequence[Result]) -> dict[str, dict[str, int]]:
    """Count the verdicts of each format."""
    counts: dict[str, dict[str, int]] = {}
    for kind in dict.fromkeys(result.kind for result in results):
        found = Counter(result.verdict for result in results if result.kind == kind)
        counts[kind] = {"inputs": sum(found.values()), **{key: found[key] for key in GOOD + FAULTS}}
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--formats", default=",".join(SEEDS))
    parser.add_argument("--keep", type=Path, help="folder for the inputs that end in a fault")
    options = parser.parse_args()
    for verdict in (*FAULTS, "unchecked") if options.keep else ():
        (options.keep / verdict).mkdir(parents=True, exist_ok=True)
    kinds = options.formats.split(",")
    enough = LEAST * len(kinds) if options.inputs >= FULL else 0
    results = run(max(options.inputs, enough), options.seed, kinds, options.workers, options.keep)
    counts = table(results)
    for kind, row in counts.items():
        print(f"{kind:8}", "  ".join(f"{key} {value}" for key, value in row.items() if value))
    faults = [asdict(result) for result in results if result.verdict in FAULTS]
    for fault in faults[:40]:
        print({key: fault[key] for key in ("kind", "number", "how", "verdict", "detail")})
    print(f"{len(results)} inputs, {len(faults)} faults; slowest "
          f"{max(r.seconds for r in results):.1f} s, most memory "
          f"{max(r.memory for r in results) / 1e6:.0f} MB")  # fmt: skip
    if kinds == list(SEEDS):
        report = {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": platform.machine(),
            "inputs": len(results),
            "seed": options.seed,
            "faults": len(faults),
            "slowest_seconds": round(max(result.seconds for result in results), 2),
            "most_memory_mb": round(max(result.memory for result in results) / 1e6),
            "formats": counts,
        }
        RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
