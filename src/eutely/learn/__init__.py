"""The paper's own way: costs learned by Bayesian optimisation, without any name."""

from eutely.learn.stages import Learned, learn
from eutely.learn.study import Journal, Trial

__all__ = ["Journal", "Learned", "Trial", "learn"]
