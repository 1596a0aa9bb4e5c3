"""How long work tells that it goes on: one function that whoever is interested provides."""

from collections.abc import Callable

Watch = Callable[[str, int, int, str], None]
"""Called with (what is being done, steps done, steps in all, how it goes in a few words)."""


def nobody(what: str, done: int, total: int, note: str) -> None:
    """Watch nothing."""
