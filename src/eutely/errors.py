"""Errors that reach a user: one line that says what was found, what was expected, what to do."""


class EutelyError(Exception):
    """Anything a user can put right; the command line prints it as one line and exits with 2."""


class SpecimenError(EutelyError):
    """The nuclei of one individual are not usable as given."""


class ReadError(EutelyError):
    """A file cannot be read, or does not hold what it should."""


class WriteError(EutelyError):
    """An output cannot be written where it was asked for."""


class ProblemError(EutelyError):
    """A matching problem, or a set of matchings, is malformed."""


class ExecuteError(EutelyError):
    """Work cannot run where it was asked to run."""


class ConfigError(EutelyError):
    """A setting is unknown, or has a value that it cannot have."""


class RunFolderError(EutelyError):
    """A run folder is in use, damaged, or not a run folder."""


class AtlasError(EutelyError):
    """An atlas is malformed, or does not fit what it is used on."""
