"""Errors for users: one line with what was found, what was expected, and what to do."""


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
