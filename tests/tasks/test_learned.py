"""What the report is told of learning."""

from dataclasses import replace

from eutely.find.learn import Learned
from eutely.find.learn.study import Trial
from eutely.learned import Parameters
from eutely.tasks.learned import chosen_of, trials_of


def test_the_taken_trial_is_known_after_scaling() -> None:
    points = [(6, 1.0, 2.0), (6, 3.0, 0.7), (9, 3.0, 0.7)]
    trials = [
        Trial({"least": least, "tau_centroid": centroid, "tau_radius": radius}, (-5.0, 100.0))
        for least, centroid, radius in points
    ]
    taken = replace(Parameters.unlearned(10.0), **trials[1].values).scaled(0.3)
    found = Learned(taken, (0, 1), {"sparsity": trials})
    assert chosen_of(found) == {"sparsity": 1}
    assert [row["number"] for row in trials_of(found)] == [0, 1, 2]
    assert chosen_of(replace(found, trials={})) == {}
