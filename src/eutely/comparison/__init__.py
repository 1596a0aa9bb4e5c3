"""What differs between groups of animals, with statistics that hold for few animals and many cells.

Modules: ``measured`` (cells of animals), ``positions``, ``relative`` (to neighbours), ``body``
(whole animals), ``sets`` (of cells), ``design`` (who is compared), ``permutations``, ``scores``
(tests), ``effects`` (sizes, intervals, power), ``doubt`` (uncertain names), ``answer`` (all tests).
"""

from eutely.comparison.comparison import Comparison
from eutely.comparison.design import Design

__all__ = ["Comparison", "Design"]
