"""Ways to find cells: which nucleus of each specimen is which, all behind one function.

`METHODS` lists them. Each takes a run, a frame and, for the method ``named`` alone, the names of
the nuclei; it returns `Found`. tests/find/test_contract.py runs one suite against all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eutely.find import learn, named, refine
from eutely.find.found import Found, Labels
from eutely.frame import Frame
from eutely.steps import Run

__all__ = ["METHODS", "Found", "Labels", "Method"]

Method = Callable[[Run, Frame, Labels], Found]

METHODS: Mapping[str, Method] = {
    "refine": refine.find,
    "learn": learn.find,
    "named": named.find,
}
"""Name, as in the setting ``method`` -> how cells are found."""
