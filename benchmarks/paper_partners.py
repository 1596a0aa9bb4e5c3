"""The paper's method with few partners of each worm: accuracy and time, by costs learned before.

Run ``python benchmarks/paper_partners.py BUILD [--run DIR] [--partners 20 50]``; BUILD is the
folder of ``benchmarks/paper_build.py``, whose learned costs are used (learning does not depend on
the number of specimens). Alignment, matching, synchronisation and the atlas are those of
``eutely build --preset paper`` with ``multi.partners``. Rows are merged into
``benchmarks/results/paper.json``. Names are read only to count what is right.
"""

import argparse
import json
import time
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


def row(lab: Lab, parameters: Parameters) -> Figures:
    """Return the accuracies and the processor seconds of a build by these costs."""
    start = time.process_time()
    run, frame = lab.run, lab.cohort.frame
    first = run(aligned, frame)
    second = run(realigned, frame, first, parameters)
    matchings = run(matched, second, parameters)
    cells = run(cells_of_cliques, frame, second, run(synchronised, matchings))
    atlas = lab.atlas(cells, parameters.weights())
    seconds = time.process_time() - start
    return {
        "pairs": len(matchings),
        "target": first.target,
        "processor_seconds": round(seconds, 1),
        "pre_atlas": figures(pre_atlas(lab.cohort.named, cells.labels())),
        "test": lab.accuracy(atlas, lab.test),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--run", type=Path, default=Path("paper-partners"))
    parser.add_argument("--partners", type=int, nargs="+", default=[20, 50, 0], help="0 for all")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    learned = json.loads((given.build / "parameters.json").read_text())["learned"]
    parameters = Parameters.from_dict(learned)
    rows = {
        line["partners"]: line
        for line in known(RESULTS / "paper.json").get(SECTION, {}).get("rows", [])
    }
    for number in given.partners:
        config = changed(resolve(preset="paper"), "multi", partners=number)
        with open_executor(given.workers) as executor, open_run(given.run) as folder:
            timed = TimedFolder(folder.path)
            lab = Lab(timed, Run(config, executor, timed, watch), given.workers, 100)
            name = str(number or "all")
            rows[name] = {"partners": name, **row(lab, parameters)}
        keep(RESULTS / "paper.json", SECTION, {"rows": list(rows.values())})
    table(SECTION, list(rows.values()))


if __name__ == "__main__":
    main()
