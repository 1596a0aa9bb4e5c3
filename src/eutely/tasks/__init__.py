"""The whole method, stage by stage: what the commands build, name, annotate and evaluate do."""

from eutely.tasks.annotate import annotate, evaluate, name
from eutely.tasks.build import build

__all__ = ["annotate", "build", "evaluate", "name"]
