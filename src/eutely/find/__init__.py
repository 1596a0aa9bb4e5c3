"""Ways to find cells: which nucleus of each specimen is which, all behind one function.

`METHODS` lists them. Each takes a run, a frame and, for the method ``named`` alone, the names of
the nuclei; it returns `Found`. tests/find/test_contract.py runs one suite against all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eutely.find.found import Found, Labels
from eutely.find.learn import find as learn
from eutely.find.named import find as named
from eutely.find.refine import find as refine
from eutely.frame import Frame
from eutely.steps import Run

__all__ = ["METHODS", "Found", "Labels", "Method"]

Method = Callable[[Run, Frame, Labels], Found]

METHODS: Mapping[str, Method] = {"refine": refine, "learn": learn, "named": named}
"""Name, as in the setting ``method`` -> how cells are found."""
