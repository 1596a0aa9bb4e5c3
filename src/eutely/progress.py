"""The callback by which long work reports how far it is."""

from collections.abc import Callable

Progress = Callable[[str, int, int, str], None]
"""Called with (what is being done, steps done, steps in all, a short note on how it goes)."""


def silent(what: str, done: int, total: int, note: str) -> None:
    """Report nothing."""
