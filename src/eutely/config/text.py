"""Settings as text: a commented TOML file, and the reference in the documentation."""

import json
from textwrap import wrap
from typing import Any, get_args

from pydantic.fields import FieldInfo

from eutely.config.model import Config, Section
from eutely.config.resolve import PRESETS, resolve

WIDTH = 96


def to_toml(config: Config) -> str:
    """Return ``config`` as TOML, each setting under a comment that explains it."""
    lines = ["# Settings of eutely. Every key may be left out; it then has the preset's value."]
    for name, section, fields in _sections():
        values = config if section is Config else getattr(config, name)
        if section is not Config:
            lines += ["", f"[{name}]", *_comment(section.__doc__ or "")]
        for key, field in fields.items():
            lines += ["", *_comment(_explained(field)), f"{key} = {_toml(getattr(values, key))}"]
    return "\n".join(lines) + "\n"


def reference() -> str:
    """Return the page of the documentation that lists all settings (Markdown)."""
    presets = {name: resolve(preset=name) for name in PRESETS}
    head = ["key", "meaning", "unit or values", *presets]
    lines = [
        "# Settings",
        "",
        "`eutely build --config F.toml` reads settings from a TOML file; `eutely config` prints a",
        "complete one to start from. A key that is left out has the value of the preset",
        f'({", ".join(PRESETS)}), which `preset = "..."` at the top of the file chooses. Unknown',
        "keys and values of another type are errors.",
        "",
        "This page is made by `eutely config --reference > docs/config.md`.",
    ]
    for name, section, fields in _sections():
        lines += ["", f"## {name or 'At the top of the file'}", ""]
        if section is not Config:
            lines += [f"`[{name}]` {section.__doc__}", ""]
        lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        for key, field in fields.items():
            values = [
                f"`{_toml(getattr(config if section is Config else getattr(config, name), key))}`"
                for config in presets.values()
            ]
            row = [f"`{key}`", _explained(field, unit=False), _unit(field), *values]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _sections() -> list[tuple[str, type[Section], dict[str, FieldInfo]]]:
    """Return (name, class, settings) of the top and of each section, in order."""
    top: dict[str, FieldInfo] = {}
    below: list[tuple[str, type[Section], dict[str, FieldInfo]]] = []
    for name, field in Config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            below.append((name, field.annotation, dict(field.annotation.model_fields)))
        else:
            top[name] = field
    return [("", Config, top), *below]


def _explained(field: FieldInfo, unit: bool = True) -> str:
    """Return what a setting is, what raising it does, and its unit."""
    extra: Any = field.json_schema_extra
    text = field.description or ""
    if extra["raising"]:
        text += f" Raising it {extra['raising']}"
    return f"{text} ({_unit(field)})" if unit and _unit(field) else text


def _unit(field: FieldInfo) -> str:
    """Return the unit of a setting, or the words it may be."""
    extra: Any = field.json_schema_extra
    words = [word for word in get_args(field.annotation) if isinstance(word, str)]
    return " or ".join(words) if words else str(extra["unit"])


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in wrap(text, WIDTH)]


def _toml(value: object) -> str:
    """Return one value as TOML; its strings, numbers and truth values are those of JSON."""
    return json.dumps(value, ensure_ascii=True)


MOST_SHOWN = 4
"""Settings that `differing` names."""


def differing(config: Config) -> str:
    """Return the settings that are not those of the preset ``default``, in one line."""
    given, default = config.model_dump(), Config().model_dump()
    found = []
    for name, _, fields in _sections():
        mine, theirs = (given[name], default[name]) if name else (given, default)
        before = f"{name}." if name else ""
        found += [f"{before}{key}={mine[key]!r}" for key in fields if mine[key] != theirs[key]]
    more = f", and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    return ", ".join(found[:MOST_SHOWN]) + more or "default"
