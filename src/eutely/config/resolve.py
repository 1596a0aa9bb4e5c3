"""Presets, a file's settings and options become one checked Config, or one clear line."""

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from eutely.config.model import Config, Section
from eutely.errors import ConfigError

PAPER: Mapping[str, Any] = {
    "method": "learn",
    "costs": {"neighbours": 8},
    "realign": {"iterations": 7, "base": True},
    "learn": {
        "specimens": 15,
        "loss": "sync",
        "trials_linear": 500,
        "trials_sparsity": 500,
        "trials_offsets": 500,
        "c0": 10000.0,
        "most_candidates": 12000,
        "tolerance": 0.0005,
    },
    "multi": {"synchronisation": "dense", "c0": 40.0},
    "atlas": {"c0": 10000.0},
    "estimate": {"features": "none"},
}
"""What the two presets with the paper's method have in common."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "paper": {
        **PAPER,
        "realign": {"iterations": 7, "base": True, "warp": False},
        "atlas": {"c0": 10000.0, "model": "offsets", "rounds": 0},
    },
    "paper-plus": {**PAPER, "atlas": {"c0": 10000.0, "model": "joint", "rounds": 2}},
}
"""What differs from the defaults of the settings, by name of the preset. ``paper`` is the paper's
method step by step; ``paper-plus`` adds a smooth warp, cells that predict each other, and two
rounds of matching all specimens to atlases of others."""


def resolve(
    given: Mapping[str, Any] | None = None,
    *,
    preset: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    source: str = "settings",
) -> Config:
    """Put the settings together; the later of preset, ``given`` and ``overrides`` wins.

    Parameters
    ----------
    given
        settings and sections as a TOML file holds them, optionally ``preset``.
    preset
        name of a preset; overrules the one in ``given``.
    overrides
        ``section.key`` -> value; None means not given.
    source
        of ``given``, for error messages.
    """
    values = dict(given or {})
    in_file = values.pop("preset", "default")
    chosen = preset if preset is not None else in_file
    if not isinstance(chosen, str) or chosen not in PRESETS:
        named = "" if preset is not None else f"{source}: "
        raise ConfigError(f"{named}preset = {chosen!r}: expected one of {', '.join(PRESETS)}")
    values = _merged(PRESETS[chosen], values)
    for key, value in (overrides or {}).items():
        if value is not None:
            *path, last = key.split(".")
            nested: dict[str, Any] = {last: value}
            for name in reversed(path):
                nested = {name: nested}
            values = _merged(values, nested)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{source}: {line_of(error)}") from error


def line_of(error: ValidationError) -> str:
    """Return one line that states what is wrong with settings."""
    details = error.errors(include_url=False, include_context=False)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return _line(details[0]) + more


def keys(section: type[Section] = Config, before: str = "") -> list[str]:
    """Return all settings and sections as dotted keys, in order."""
    names = []
    for name, field in section.model_fields.items():
        names.append(before + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            names += keys(field.annotation, f"{before}{name}.")
    return names


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``under`` with the values of ``over``, section by section."""
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[name] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return merged


def _line(detail: ErrorDetails) -> str:
    """Return one line that states what is wrong with a setting."""
    key = ".".join(map(str, detail["loc"]))
    if key == "preset":
        return "a preset is no setting: config='paper', or config={'preset': 'paper', ...}"
    if detail["type"] == "extra_forbidden":
        near = _nearest(key)
        hint = f"did you mean {near}?" if near else "'eutely config' prints all known keys"
        return f"unknown key {key}; {hint}"
    if detail["type"] in ("model_type", "model_attributes_type"):
        return f"{key} = {detail['input']!r}: expected a section [{key}]"
    expected = detail["msg"].replace("Input should be", "expected").replace("\n", " ")
    return f"{key} = {detail['input']!r}: {expected}"


def _nearest(key: str) -> str | None:
    """Return the known key that a user most likely meant, rather in the same section."""
    section, _, last = key.rpartition(".")

    def likeness(known: str) -> float:
        where, _, name = known.rpartition(".")
        return SequenceMatcher(None, last, name).ratio() + 0.25 * (where == section)

    best = max(keys(), key=likeness)
    return best if likeness(best) > 0.6 else None
