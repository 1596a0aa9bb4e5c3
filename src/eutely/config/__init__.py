"""Every setting of the method, with its default, its bounds and what raising it does."""

from eutely.config.model import Config
from eutely.config.resolve import PRESETS, resolve
from eutely.config.text import reference, to_toml

__all__ = ["PRESETS", "Config", "reference", "resolve", "to_toml"]
