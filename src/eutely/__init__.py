"""eutely names every cell of an animal without a single training label."""

import typing as _typing

if _typing.TYPE_CHECKING:
    __version__: str
    from eutely.annotation import Annotation
    from eutely.atlas import Atlas
    from eutely.comparison import Comparison, Design
    from eutely.config import Config
    from eutely.curate.export import export
    from eutely.errors import EutelyError
    from eutely.io import read
    from eutely.multi import synchronise
    from eutely.simulation import simulate
    from eutely.specimen import Specimen
    from eutely.tasks.annotate import annotate
    from eutely.tasks.build import Built, build
    from eutely.tasks.compare import compare
    from eutely.tasks.evaluate import evaluate, name
    from eutely.tasks.inputs import orient, solve
    from eutely.tasks.match import match

_HOMES = {
    "Annotation": "annotation",
    "Atlas": "atlas",
    "Built": "tasks.build",
    "Comparison": "comparison",
    "Config": "config",
    "Design": "comparison",
    "EutelyError": "errors",
    "Specimen": "specimen",
    "annotate": "tasks.annotate",
    "build": "tasks.build",
    "compare": "tasks.compare",
    "evaluate": "tasks.evaluate",
    "export": "curate.export",
    "match": "tasks.match",
    "name": "tasks.evaluate",
    "orient": "tasks.inputs",
    "read": "io",
    "simulate": "simulation",
    "solve": "tasks.inputs",
    "synchronise": "multi",
}
"""Public name -> module that defines it."""

__all__ = [
    "Annotation",
    "Atlas",
    "Built",
    "Comparison",
    "Config",
    "Design",
    "EutelyError",
    "Specimen",
    "__version__",
    "annotate",
    "build",
    "compare",
    "evaluate",
    "export",
    "match",
    "name",
    "orient",
    "read",
    "simulate",
    "solve",
    "synchronise",
]


def __getattr__(key: str) -> object:
    """Import a public name when it is first used: compiled code takes its time."""
    if key == "__version__":
        from importlib.metadata import version

        return version("eutely")
    if key in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"eutely.{_HOMES[key]}"), key)
    raise AttributeError(f"module 'eutely' has no attribute {key!r}")


def __dir__() -> list[str]:
    """Return the public names: what an editor offers."""
    return sorted(__all__)
