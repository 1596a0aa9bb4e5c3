"""How many questions a curator must answer: the queue, lowest confidence first, and at random.

A simulated curator knows the truth and answers every question rightly; after each answer the
specimen is matched again around all answers, as ``eutely curate`` does it. A question counts
whether the name shown was right or wrong.

    python benchmarks/curate.py worms        test2 by the built-in atlas (of train100, unsupervised)
    python benchmarks/curate.py degraded     the same worms with 9% missing, spurious segments
    python benchmarks/curate.py heads        scored NeuroPAL heads, eight corrections each
    python benchmarks/curate.py time         processor seconds of an answer
    python benchmarks/curate.py page DIR     first paint and answers in Chromium, of a folder of
                                             ``eutely annotate``; by the clock

Strategies: ``queue`` (specimens of one folder in the order of their names, so that answers in
earlier ones count), ``queue, each alone`` (a folder for each specimen), ``lowest confidence``,
``random``. Needs the real data (``EUTELY_DATA``). Figures go to ``benchmarks/results/curate.json``.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import eutely
from eutely import Annotation, Specimen
from eutely.atlas import Atlas
from eutely.cliques import UNMATCHED
from eutely.curate.cohort import Cohort
from eutely.curate.experience import Experience
from eutely.curate.placed import Placed
from eutely.curate.queue import Known, questions
from eutely.evaluation import comparable
from eutely.results import Shown
from worms import worms

RESULTS = Path(__file__).resolve().parent / "results" / "curate.json"

GOAL = 0.99
"""Share of the nuclei that must be right."""

MOST = 200
"""Questions after which a specimen is given up; it then counts as that many."""

CORRECTIONS = 8
"""Questions about a head."""

SECTIONS = ("worms", "degraded", "heads", "time", "page")

Choice = Callable[[Placed, Experience | None, Known], int]


def by_queue(specimen: Placed, experience: Experience | None, known: Known) -> int:
    """Return the most valuable question."""
    return questions(specimen, experience, known)[0].row


def by_confidence(specimen: Placed, experience: Experience | None, known: Known) -> int:  # noqa: ARG001
    """Return the open nucleus with the lowest confidence."""
    return int(np.argmin(np.where(specimen.pins == -1, specimen.sure, 2.0)))


def at_random(specimen: Placed, experience: Experience | None, known: Known) -> int:  # noqa: ARG001
    """Return any open nucleus; the same ones in every run."""
    rng = np.random.default_rng((len(specimen.ids), int((specimen.pins != -1).sum())))
    return int(rng.choice(np.flatnonzero(specimen.pins == -1)))


class Strategy(NamedTuple):
    """How questions are chosen.

    Attributes
    ----------
    choose
        returns the next nucleus to ask about.
    learns
        whether answers in earlier specimens count.
    stride, most
        answers before the specimen is matched again, and answers after which it is given up.
    """

    choose: Choice
    learns: bool = False
    stride: int = 1
    most: int = MOST


STRATEGIES = {
    "queue": Strategy(by_queue, learns=True),
    "queue, each alone": Strategy(by_queue),
    "lowest confidence": Strategy(by_confidence),
    # So many questions that they are counted by tens, which spares time.
    "random": Strategy(at_random, stride=10, most=600),
}
"""The strategies that are compared."""

USUAL_STRATEGIES = ["queue", "lowest confidence", "random"]
"""Those that are run unless others are asked for."""

FEWER = {"degraded": 15}
"""Specimens of sections that take long, unless another number is asked for."""


def truth_of(atlas: Atlas, specimen: Specimen) -> NDArray[np.int32]:
    """Return (n,), the true cell of each nucleus: -1 for none, -3 where it is not known."""
    number = {comparable(name): cell for cell, name in enumerate(atlas.names) if name}
    spurious = specimen.features.get("spurious")
    cells = [number.get(comparable(name), -3) if name else -3 for name in specimen.names or ()]
    truth = np.array(cells, dtype=np.int32)
    return truth if spurious is None else np.where(spurious > 0, UNMATCHED, truth)


def wrong(specimen: Placed, truth: NDArray[np.int32]) -> int:
    """Return how many nuclei of known truth are wrong."""
    known = truth != -3
    return int((specimen.nuclei.cells != truth)[known].sum())


def curated(
    start: Placed,
    truth: NDArray[np.int32],
    strategy: Strategy,
    experience: Experience | None,
    stop: Callable[[int, int], bool],
) -> tuple[Placed, list[int]]:
    """Answer questions until ``stop(questions, wrong)``; return the specimen and the wrong counts.

    A question about a nucleus whose truth is not known is answered by what is shown.
    """
    specimen, pins, counts = start, {}, [wrong(start, truth)]
    known: Known = {}
    while not stop(len(pins), counts[-1]) and len(pins) < min(len(truth), strategy.most):
        for _ in range(min(strategy.stride, len(truth) - len(pins))):
            row = strategy.choose(specimen, experience, known)
            pins[row] = int(truth[row] if truth[row] != -3 else specimen.nuclei.cells[row])
            specimen = specimen.pinned(pins) if strategy.stride > 1 else specimen
            counts.append(counts[-1])
        specimen = specimen.around(pins)
        counts[-1] = wrong(specimen, truth)
    return specimen, counts


def run(
    cohort: Cohort,
    truths: dict[str, NDArray[np.int32]],
    strategy: str,
    stop: Callable[[NDArray[np.int32]], Callable[[int, int], bool]],
) -> list[list[int]]:
    """Curate all specimens of a cohort; return the number of wrong nuclei after each question."""
    how = STRATEGIES[strategy]
    if stop is a_few:
        how = how._replace(stride=1)
    done: list[Placed] = []
    counts = []
    for name in sorted(truths):
        experience = Experience.of(done, len(cohort.atlas)) if how.learns else None
        specimen, found = curated(
            cohort.placed(name), truths[name], how, experience, stop(truths[name])
        )
        done.append(specimen)
        counts.append(found)
        print(f"{strategy}: {len(counts)} of {len(truths)}, {name}: {found[0]} wrong, "
              f"{len(found) - 1} questions, {found[-1]} wrong", flush=True)  # fmt: skip
    return counts


def cohort_of(
    atlas: Atlas, specimens: Sequence[Specimen], annotations: Sequence[Annotation]
) -> Cohort:
    """Return a cohort as ``eutely curate`` has it after annotating."""
    shown = [Shown(a.specimen, a.places, a.cells, a.confidence, a.ids) for a in annotations]
    return Cohort(atlas, shown, {specimen.name: specimen for specimen in specimens})


def figures(counts: Sequence[Sequence[int]], known: Sequence[int]) -> dict[str, Any]:
    """Return questions needed, names corrected per question and per question that was wrong."""
    asked = np.array([len(found) - 1 for found in counts])
    corrected = np.array([found[0] - found[-1] for found in counts])
    steps = np.concatenate([-np.diff(found) for found in counts if len(found) > 1] or [[]])
    return {
        "specimens": len(counts),
        "questions": round(float(asked.mean()), 2),
        "median": float(np.median(asked)),
        "given_up": int(sum(1 - c[-1] / n < GOAL for c, n in zip(counts, known, strict=True))),
        "wrong_at_first": round(float(np.mean([found[0] for found in counts])), 2),
        "accuracy_before": round(
            float(np.mean([1 - c[0] / n for c, n in zip(counts, known, strict=True)])), 4
        ),
        "accuracy_after": round(
            float(np.mean([1 - c[-1] / n for c, n in zip(counts, known, strict=True)])), 4
        ),
        "corrected_per_question": round(float(corrected.sum() / max(asked.sum(), 1)), 3),
        "corrected_per_correction": round(float(steps[steps > 0].mean()), 3)
        if (steps > 0).any()
        else None,
        "first_half": round(float(asked[: len(asked) // 2].mean()), 2),
        "second_half": round(float(asked[len(asked) // 2 :].mean()), 2),
        "by_specimen": asked.tolist(),
    }


def until_goal(truth: NDArray[np.int32]) -> Callable[[int, int], bool]:
    """Stop when the goal is reached."""
    allowed = (1 - GOAL) * (truth != -3).sum()
    return lambda asked, wrong_now: wrong_now <= allowed  # noqa: ARG005


def a_few(truth: NDArray[np.int32]) -> Callable[[int, int], bool]:  # noqa: ARG001
    """Stop after `CORRECTIONS` questions."""
    return lambda asked, wrong_now: asked >= CORRECTIONS  # noqa: ARG005


def keep(key: str, value: dict[str, Any]) -> None:
    """Add figures to the results."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[key] = {**value, "command": "python benchmarks/curate.py"}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(key, {k: v for k, v in value.items() if k != "by_specimen"}, flush=True)


def worm_sections(which: str, most: int | None) -> tuple[Cohort, dict[str, NDArray[np.int32]]]:
    """Annotate the test worms, whole or degraded, as one series."""
    atlas = Atlas.load("celegans-l1")
    if which == "worms":
        specimens = list(worms("test2")[:most])
    else:
        from robustness import USUAL, degraded

        specimens = degraded("test2", 101, most, **USUAL)
    annotations = eutely.annotate(atlas, [worm.without_names() for worm in specimens], workers=1)
    truths = {worm.name: truth_of(atlas, worm) for worm in specimens}
    if which == "degraded":  # segments that a person rejected are no cell
        names = {
            worm.name: np.array([bool(name) for name in worm.names or ()]) for worm in specimens
        }
        truths = {name: np.where(names[name], truths[name], UNMATCHED) for name in truths}
    return cohort_of(atlas, specimens, annotations), truths


def head_rows(strategies: Sequence[str], most: int | None) -> dict[str, list[list[int]]]:
    """Curate the scored heads, each laboratory and fold by an atlas of the other folds."""
    from neuropal import atlas_of, heads, splits

    counts: dict[str, list[list[int]]] = {}
    atlases: dict[tuple[str, ...], Atlas] = {}
    known: list[int] = []
    for number, (train, test) in enumerate(splits(heads("raw"), "retrain")):
        if most is not None and number >= most:
            break
        key = tuple(head.specimen.name for head in train)
        if key not in atlases:
            atlases[key] = atlas_of(train, "retrain")
        atlas = atlases[key]
        specimens = [head.specimen for head in test]
        annotations = eutely.annotate(atlas, [one.without_names() for one in specimens], workers=1)
        truths = {one.name: truth_of(atlas, one) for one in specimens}
        cohort = cohort_of(atlas, specimens, annotations)
        known += [int((truths[name] != -3).sum()) for name in sorted(truths)]
        for strategy in strategies:
            counts.setdefault(strategy, []).extend(run(cohort, truths, strategy, a_few))
    for strategy, found in counts.items():
        keep(f"heads, {strategy}", figures(found, known))
    return counts


def timing(count: int = 30) -> None:
    """Measure an answer: matching again, and the queue after it."""
    cohort, truths = worm_sections("worms", 3)
    name = min(truths)
    specimen, pins = cohort.placed(name), {}
    again, asking = [], []
    known: Known = {}
    for _ in range(count):
        begin = time.process_time()
        row = by_queue(specimen, None, known)
        asking.append(time.process_time() - begin)
        pins[row] = int(truths[name][row])
        begin = time.process_time()
        specimen = specimen.around(pins)
        specimen.nuclei  # noqa: B018
        again.append(time.process_time() - begin)
    rows = {"nuclei": len(specimen.ids), "questions": count}
    keep("time", {**rows, "match_again_processor_seconds": round(float(np.median(again)), 3),
                  "queue_processor_seconds": round(float(np.median(asking)), 3)})  # fmt: skip


PAINT = """() => [performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000,
                  performance.now() / 1000]"""

ANSWERED = """() => { const { open } = eutely.desk, saved = document.getElementById('saved');
                     return saved.textContent === 'saved' && open.solved === open.revision; }"""


def processor_seconds(process: int) -> float:
    """Return the processor seconds of a running process (Linux)."""
    user, system = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def page(given: Path, count: int = 10) -> None:
    """Measure a page in Chromium by the clock: first paint, first question, answers.

    The first window comes as soon as the address is printed, the second one when all is loaded.
    """
    from playwright.sync_api import sync_playwright

    folder = Path(shutil.copytree(given, Path(tempfile.mkdtemp()) / "copy"))
    (folder / "pins.csv").unlink(missing_ok=True)
    code = "from eutely.cli import main; main()"
    words = [sys.executable, "-c", code, "curate", str(folder), "--no-browser"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    processor = [processor_seconds(server.pid)]
    software = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    windows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=software
        )
        for _ in range(2):
            window = browser.new_page(viewport={"width": 1400, "height": 950})
            window.goto(address)
            window.locator("#queue .row").first.wait_for(timeout=300_000)
            windows.append(window.evaluate(PAINT))
            processor.append(processor_seconds(server.pid))
        answers = []
        for _ in range(count):
            begin = time.perf_counter()
            window.keyboard.press("Enter")
            while not window.evaluate(ANSWERED):
                window.wait_for_timeout(5)
            answers.append(time.perf_counter() - begin)
        processor.append(processor_seconds(server.pid))
        browser.close()
    server.send_signal(signal.SIGINT)
    server.wait()
    shutil.rmtree(folder.parent)
    (first, first_question), (paint, question) = windows
    keep("page", {
        "first_window_paint_seconds": round(first, 2),
        "first_window_question_seconds": round(first_question, 2),
        "first_paint_seconds": round(paint, 2),
        "first_question_seconds": round(question, 2),
        "answer_seconds": round(float(np.median(answers)), 2),
        "server_processor_seconds": {
            "address": round(processor[0], 2),
            "first question": round(processor[1], 2),
            "second window": round(processor[2] - processor[1], 2),
            "an answer": round((processor[3] - processor[2]) / count, 3),
        },
        "load": [round(each, 1) for each in os.getloadavg()],
    })  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("section", choices=SECTIONS)
    parser.add_argument("folder", nargs="?", type=Path, help="for the section page")
    parser.add_argument(
        "--strategies", nargs="*", choices=list(STRATEGIES), default=USUAL_STRATEGIES
    )
    parser.add_argument("--most", type=int, help="specimens (heads: folds); default all")
    given = parser.parse_args()
    if given.section == "time":
        timing()
    elif given.section == "page":
        page(given.folder)
    elif given.section == "heads":
        head_rows(given.strategies, given.most)
    else:
        most = given.most or FEWER.get(given.section)
        cohort, truths = worm_sections(given.section, most)
        known = [int((truths[name] != -3).sum()) for name in sorted(truths)]
        stop = until_goal
        for strategy in given.strategies:
            counts = run(cohort, truths, strategy, stop)
            keep(f"{given.section}, {strategy}", figures(counts, known))


if __name__ == "__main__":
    main()
