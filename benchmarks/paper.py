"""The paper, table by table, by the present code: our figure beside the published one in each row.

Run ``python benchmarks/paper.py all [--run DIR] [--workers 2]``, or name some of the sections; it
needs the real data (``EUTELY_DATA``). Rows and steps are kept in DIR as soon as they are done: the
same command continues where it was stopped, and sections share what was learned and matched.

``learning``
    the learned costs (supplement B) and the losses of all trials (the first section to run).
``models``, ``losses``, ``terms``
    tables 1 and 2, and the table of supplement C.
``sizes``, ``modes``
    pre-atlas and atlas, the test worms, and the modes of multi-matching over 10 to 100 worms.
``test``
    table 3 and the distribution over the test worms: without names, and with names.
``times``, ``trials``
    the tables of run times.
``partners``
    beyond the paper: each worm matched with a few others only.

Tables are printed and merged into ``benchmarks/results/paper.json``, from which
``benchmarks/paper_pages.py`` makes figures and ``docs/replication.md``. Names are read only to
count what is right, and by supervised rows. Automatic segmentations (supplement E) need the images,
which are not in the data here.
"""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from eutely.config import resolve
from eutely.execute import open_executor
from eutely.steps import Run
from eutely.store.folder import open_run
from laboratory import Lab, TimedFolder, watch
from paper_models import learning, losses, models, terms
from paper_sizes import modes, partners, sizes
from paper_tests import test
from paper_times import times, trials

SECTIONS: dict[str, Callable[[Lab], None]] = {
    "learning": learning,
    "times": times,
    "models": models,
    "terms": terms,
    "sizes": sizes,
    "modes": modes,
    "test": test,
    "partners": partners,
    "trials": trials,
    "losses": losses,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="+", metavar="SECTION", choices=["all", *SECTIONS])
    parser.add_argument("--run", type=Path, default=Path("paper-run"))
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with open_executor(given.workers) as executor, open_run(given.run) as folder:
        timed = TimedFolder(folder.path)
        run = Run(resolve(preset="paper"), executor, timed, watch)
        lab = Lab(timed, run, given.workers)
        for section in SECTIONS if "all" in given.sections else given.sections:
            SECTIONS[section](lab)


if __name__ == "__main__":
    main()
