"""Compilation: announced once, if it takes long; cached on disk."""

import gc
import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from eutely import kernel as module
from eutely.kernel import PATIENCE, _Compilation


def compilations(monkeypatch, caplog, seconds, of="eutely.solver.local"):
    """Let a listener see compilations that take ``seconds``; return the log."""
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    event = SimpleNamespace(
        data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=of))}
    )
    listener = _Compilation()
    with caplog.at_level(logging.INFO, logger="eutely"):
        for duration in seconds:
            listener.on_start(event)
            clock[0] += duration
            listener.on_end(event)
            clock[0] += 100.0  # between compilations time passes that does not count
    return [record.message for record in caplog.records]


def test_long_compilation_is_announced_once(monkeypatch, caplog):
    (line,) = compilations(monkeypatch, caplog, [PATIENCE * 0.7] * 5)
    assert line.startswith("compiling on first use")


@pytest.mark.parametrize(
    ("seconds", "of"), [([PATIENCE * 0.3] * 3, "eutely.solver.local"), ([99.0], "someone.else")]
)
def test_short_or_foreign_compilation_is_not(monkeypatch, caplog, seconds, of):
    assert compilations(monkeypatch, caplog, seconds, of) == []


def test_an_inner_compilation_tells_before_the_outer_ends(monkeypatch, caplog):
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    function = SimpleNamespace(__module__="eutely.solver.local")
    event = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})
    listener = _Compilation()
    with caplog.at_level(logging.INFO, logger="eutely"):
        listener.on_start(event)
        clock[0] += PATIENCE
        listener.on_start(event)
        clock[0] += 1.0
        listener.on_end(event)
        assert len(caplog.records) == 1
        assert not gc.isenabled()
        listener.on_end(event)
    assert len(caplog.records) == 1
    assert gc.isenabled()


def test_machine_code_is_kept_beside_the_package():
    from eutely.solver.lap_dense import lap_dense

    assert module.CACHE in lap_dense._cache.cache_path


def test_functions_have_room_for_the_frames_of_what_they_call():
    def depth(left: int, *, step: int) -> int:
        return 1 + depth(left - step, step=step) if left > 0 else 0

    roomy = module._with_room(depth)
    assert roomy(60, step=2) == 30
    assert roomy.__code__.co_stacksize == module.ROOM


def test_kernels_are_compiled_with_room():
    from eutely.solver.lap_dense import lap_dense

    assert lap_dense._compile_for_args.__code__.co_stacksize == module.ROOM


def test_kernels_can_be_debugged_as_python():
    code = "import eutely.solver.lap_dense"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
