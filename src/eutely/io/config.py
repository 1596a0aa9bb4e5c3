"""Settings from a TOML file."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eutely.config import Config, resolve
from eutely.errors import ReadError
from eutely.io.limits import check_memory, check_regular


def load_config(
    path: Path | None = None,
    preset: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """Return the settings of a run: those of the preset, changed by the file, then by overrides.

    Parameters
    ----------
    path
        of a TOML file, or None.
    preset
        name of a preset; None for that of the file, or ``default``.
    overrides
        ``section.key`` -> value, such as options of a command; a value of None is ignored.
    """
    given: dict[str, Any] = {}
    if path is not None:
        check_regular(path)
        try:
            check_memory(path, 100 * path.stat().st_size, "a file of settings of this size")
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
        except ValueError as error:  # also of text that is no UTF-8, and of endless numbers
            raise ReadError(
                f"{path} is not TOML: {error}; 'eutely config' prints an example"
            ) from error
        except RecursionError as error:
            raise ReadError(f"{path}: nested too deeply for settings") from error
    source = "settings" if path is None else str(path)
    return resolve(given, preset=preset, overrides=overrides, source=source)
