"""A whole build by the paper's method on its training worms: processor seconds, and accuracy.

Run ``python benchmarks/paper_build.py [--preset paper|paper-plus] [--trials 500] [--run DIR]``; it
needs the real data (``EUTELY_DATA``). It does what ``eutely build --preset paper`` does, counts the
processor seconds of all threads, in all and by step, and merges them into
``benchmarks/results/paper.json``. Names are read only to count what is right. DIR must be new.
"""

import argparse
import resource
import time
from pathlib import Path

from eutely import build, evaluate, read
from eutely.config import resolve
from eutely.evaluation import majority_names, pre_atlas
from eutely.store.folder import open_run
from figures import keep, table
from laboratory import RESULTS, TimedFolder, figures
from worms import DATA, worms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=("paper", "paper-plus"), default="paper")
    parser.add_argument("--trials", type=int, default=500, help="of each stage")
    parser.add_argument("--run", type=Path, default=Path("paper-build"))
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    names = ("learn.trials_linear", "learn.trials_sparsity", "learn.trials_offsets")
    config = resolve(preset=given.preset, overrides=dict.fromkeys(names, given.trials))
    with open_run(given.run) as folder:
        timed = TimedFolder(folder.path)
        start = time.process_time()
        built = build(worms(), timed, config=config, workers=given.workers)
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        steps = {name: row["processor_seconds"] for name, row in timed.spent().items()}
    assert built.learned is not None
    labels = tuple(one.names or ("",) * len(one) for one in built.specimens)
    atlas = built.atlas.named(majority_names(built.cells, labels, len(built.atlas)))
    losses = {
        stage: next(
            trial.losses[0]
            for trial in built.learned.trials
            if (trial.stage, trial.number) == (stage, number)
        )
        for stage, number in built.learned.chosen.items()
    }
    row = {
        "trials": given.trials,
        "processor_seconds": round(seconds, 1),
        "gigabytes": round(peak, 2),
        "steps": steps,
        "losses": losses,
        "learned": built.learned.parameters.as_dict(),
        "pre_atlas": figures(pre_atlas(built.specimens, built.cells)),
        "test": figures(
            evaluate(
                atlas,
                list(read(DATA / "rapcat" / "test2")),
                workers=given.workers,
                adapt=False,
            )
        ),
    }
    keep(RESULTS / "paper.json", f"build, preset {given.preset}", row)
    table("build", [{"step": name, "processor seconds": value} for name, value in steps.items()])
    print({name: value for name, value in row.items() if name != "steps"})


if __name__ == "__main__":
    main()
