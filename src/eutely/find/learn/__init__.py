"""The paper's own way: costs learned by Bayesian optimisation, without any name."""

from eutely.find.learn.stages import Learned, learn
from eutely.find.learn.study import Journal, Trial

__all__ = ["Journal", "Learned", "Trial", "learn"]
