"""What the report tells of learning: all trials, and those that were taken."""

from __future__ import annotations

from eutely.learn import Learned

STAGES = ("linear", "sparsity", "offsets")


def trials_of(found: Learned) -> list[dict[str, object]]:
    """Return all trials as the report takes them: stage, number, values, params."""
    return [
        {"stage": stage, "number": number, "values": list(trial.losses), "params": trial.values}
        for stage in STAGES
        for number, trial in enumerate(found.trials.get(stage, []))
    ]


def chosen_of(found: Learned) -> dict[str, int]:
    """Return the number of the trial that was taken from the Pareto front of stage 2."""
    parameters = found.parameters
    taken = [
        number
        for number, trial in enumerate(found.trials.get("sparsity", []))
        if all(getattr(parameters, key) == value for key, value in trial.values.items())
    ]
    return {"sparsity": taken[0]} if taken else {}
