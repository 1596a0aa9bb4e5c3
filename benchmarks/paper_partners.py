"""The paper's method with few partners of each worm: accuracy and time, by costs learned before.

Run ``python benchmarks/paper_partners.py BUILD [--run DIR] [--partners 20 50]``; BUILD is the
folder of ``benchmarks/paper_build.py``, whose learned costs are used (learning does not depend on
the number of specimens). Alignment, matching, synchronisation and the atlas are those of
``eutely build --preset paper`` with ``multi.partners``; the row with all partners is that of the
build. Rows are merged into ``benchmarks/results/paper.json``. Names are read only to count what is
right.
"""

import argparse
import json
from pathlib import Path

from eutely.config import resolve
from eutely.evaluation import pre_atlas
from eutely.execute import open_executor
from eutely.find.learn import aligned, cells_of_cliques, matched, realigned, synchronised
from eutely.learned import Parameters
from eutely.steps import Run
from eutely.store.folder import open_run
from figures import Figures, keep, known, table
from laboratory import RESULTS, Lab, TimedFolder, changed, figures, watch

SECTION = "partners"

STEPS = ("aligned", "realigned", "matched", "synchronised")
"""Steps whose time depends on the number of pairs."""


def row(lab: Lab, parameters: Parameters) -> Figures:
    """Return the accuracies and the processor seconds of a build by these costs."""
    run, frame = lab.run, lab.cohort.frame
    first = run(aligned, frame)
    second = run(realigned, frame, first, parameters)
    matchings = run(matched, second, parameters)
    cells = run(cells_of_cliques, frame, second, run(synchronised, matchings))
    spent = lab.folder.spent()
    return {
        "pairs": len(matchings),
        "processor_seconds": round(sum(spent[step]["processor_seconds"] for step in STEPS), 1),
        "pre_atlas": figures(pre_atlas(lab.cohort.named, cells.labels())),
        "test": lab.accuracy(lab.atlas(cells, parameters.weights()), lab.test),
    }


def all_partners(build: Figures) -> Figures:
    """Return the row of a build with all pairs, from what `paper_build` kept."""
    return {
        "partners": "all",
        "pairs": 4950,
        "processor_seconds": round(sum(build["steps"][step] for step in STEPS), 1),
        "pre_atlas": build["pre_atlas"],
        "test": build["test"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--run", type=Path, default=Path("paper-partners"))
    parser.add_argument("--partners", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    learned = json.loads((given.build / "parameters.json").read_text())["learned"]
    parameters = Parameters.from_dict(learned)
    results = RESULTS / "paper.json"
    rows = []
    for number in given.partners:
        config = changed(resolve(preset="paper"), "multi", partners=number)
        with open_executor(given.workers) as executor, open_run(given.run / str(number)) as folder:
            timed = TimedFolder(folder.path)
            lab = Lab(timed, Run(config, executor, timed, watch), given.workers, 100)
            rows.append({"partners": number, **row(lab, parameters)})
        everyone = all_partners(known(results)["build, preset paper"])
        keep(results, SECTION, {"rows": [*rows, everyone]})
    table(SECTION, [*rows, everyone])


if __name__ == "__main__":
    main()
