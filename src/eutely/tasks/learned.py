"""What the report tells of learning: all trials, and those that were taken."""

from __future__ import annotations

from math import isclose

from eutely.find.learn import Learned

STAGES = ("linear", "sparsity", "offsets")


def trials_of(found: Learned) -> list[dict[str, object]]:
    """Return all trials as the report takes them: stage, number, values, params."""
    return [
        {"stage": stage, "number": number, "values": list(trial.losses), "params": trial.values}
        for stage in STAGES
        for number, trial in enumerate(found.trials.get(stage, []))
    ]


def chosen_of(found: Learned) -> dict[str, int]:
    """Return the number of the trial that was taken from the Pareto front of stage 2.

    All costs are scaled after learning, and thresholds with them; their ratio stays.
    """
    final = found.parameters
    ratio = final.tau_centroid / final.tau_radius
    taken = [
        number
        for number, trial in enumerate(found.trials.get("sparsity", []))
        if trial.values["least"] == final.least
        and isclose(trial.values["tau_centroid"] / trial.values["tau_radius"], ratio)
    ]
    return {"sparsity": taken[0]} if taken else {}
