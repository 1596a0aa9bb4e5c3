"""Where results of steps are kept: in memory, or in a run folder."""

from __future__ import annotations

import math

from eutely.record import Record
from eutely.steps import Journal


class Memory:
    """Keeps results while the process lasts; implements `eutely.steps.Store`."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], Record] = {}
        self._seconds: dict[tuple[str, str], float] = {}

    def get(self, name: str, key: str) -> Record | None:
        """Return a result, or None."""
        return self._records.get((name, key))

    def put(self, name: str, key: str, record: Record, seconds: float) -> None:
        """Keep a result, and how long it took."""
        self._records[name, key] = record
        self._seconds[name, key] = seconds

    def seconds(self, name: str, key: str) -> float:
        """Return how long a result took; NaN where not known."""
        return self._seconds.get((name, key), math.nan)

    def journal(self, name: str, key: str) -> Journal:  # noqa: ARG002
        """Return an empty journal: what is interrupted here is gone."""
        entries: list[object] = []
        return entries
