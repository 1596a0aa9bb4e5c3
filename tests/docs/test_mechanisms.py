"""The mechanisms that the ablation switches off are there."""

import importlib
import importlib.util
from functools import reduce
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_mechanism_names_code_that_is_there():
    spec = importlib.util.spec_from_file_location("mechanisms", ROOT / "benchmarks/mechanisms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    places = [place for one in module.MECHANISMS for place in one.changes]
    assert len(places) > 40
    for place in places:
        room, _, path = place.partition(":")
        reduce(getattr, path.split("."), importlib.import_module(f"eutely.{room}"))
