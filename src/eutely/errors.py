"""Errors for users: one line with what was found, what was expected, and what to do."""

from collections.abc import Sequence
from numbers import Integral, Real


class EutelyError(Exception):
    """Base of all errors that a user can correct; the command line prints one line, exit code 2."""


class SpecimenError(EutelyError):
    """The nuclei of a specimen are not usable."""


class ReadError(EutelyError):
    """A file cannot be read, or does not have the expected content."""


class WriteError(EutelyError):
    """An output cannot be written to the requested place."""


class ProblemError(EutelyError):
    """A matching problem or a set of matchings is malformed."""


class ExecuteError(EutelyError):
    """Work cannot run on the requested workers."""


class ConfigError(EutelyError):
    """A setting is unknown or has an invalid value."""


class RunFolderError(EutelyError):
    """A run folder is in use, damaged, or not a run folder."""


class AtlasError(EutelyError):
    """An atlas is malformed, or does not fit the specimens."""


class CompareError(EutelyError):
    """Groups of animals cannot be compared."""


def install(extra: str) -> str:
    """Return how to install what an extra of the package brings, in a checkout too.

    >>> install("nwb")
    "run: pip install 'eutely[nwb]' (in a checkout: pip install '.[nwb]')"
    """
    return f"run: pip install 'eutely[{extra}]' (in a checkout: pip install '.[{extra}]')"


def expect_whole(what: str, value: object, error: type[EutelyError] = EutelyError) -> None:
    """Raise ``error`` unless ``value`` is a whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise error(f"{what} is {value!r}; give a whole number")


def expect_number(what: str, value: object, error: type[EutelyError] = EutelyError) -> None:
    """Raise ``error`` unless ``value`` is a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise error(f"{what} is {value!r}; give a number")


LONGEST_NAME = 1000
"""Characters of a name at most: more are a mistake, and take memory in every table."""


def check_texts(texts: Sequence[str], what: str, error: type[EutelyError]) -> None:
    """Raise ``error`` if a text cannot be a name: undecodable bytes, NUL, far too long."""
    longest = max(texts, key=len, default="")
    if len(longest) > LONGEST_NAME:
        raise error(f"{what} has {len(longest)} characters ({longest[:20]!a}...); shorten it")
    joined = "".join({*texts})  # many may share a long one
    if "\0" not in joined and (joined.isascii() or _encodable(joined)):
        return
    bad = next(text for text in texts if "\0" in text or not _encodable(text))
    raise error(f"{what} is not text: {bad!a}; rename it")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
