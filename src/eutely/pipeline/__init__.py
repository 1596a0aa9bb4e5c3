"""The whole method, stage by stage: what the commands build, name, annotate and evaluate do."""

from eutely.pipeline.apply import annotate, evaluate, name
from eutely.pipeline.stages import build

__all__ = ["annotate", "build", "evaluate", "name"]
