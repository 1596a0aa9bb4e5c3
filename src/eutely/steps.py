"""Steps of a method, and the run that calls them: what a result depends on is what its key holds.

A step is a function of a `Context` and of nouns. It states which settings it reads. A `Run` gives
it these settings and no others, hashes them together with the nouns into a key, and asks its store
for the result under that key before it computes anything. So a stored result cannot be out of
date: whatever a step can see is part of its key.

    @step("refine", "estimate")
    def round(context: Context, cells: Cells, number: int) -> Round:
        return matched(cells, context.settings.refine.folds, context.executor)

    cells = run(round, cells, 3).cells
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, get_type_hints

from eutely.config import Config
from eutely.errors import EutelyError
from eutely.execute import Executor, Progress, Reporting, silent
from eutely.record import Record, digest, pack, unpack

log = logging.getLogger("eutely")

P = ParamSpec("P")
R = TypeVar("R")

VERSION = 14
"""Of the code of all steps; raised when results change while settings and inputs do not."""


class Journal(Protocol):
    """What a long step did so far: a list that a store keeps."""

    def __iter__(self) -> Iterator[Any]:
        """Return the entries, first one first."""
        ...

    def append(self, value: Any, /) -> None:
        """Keep one more entry."""
        ...


class Store(Protocol):
    """Where the results of steps are kept."""

    def get(self, name: str, key: str) -> Record | None:
        """Return a result, or None where there is none that can be read."""
        ...

    def put(self, name: str, key: str, record: Record, seconds: float) -> None:
        """Keep a result, and how long it took."""
        ...

    def seconds(self, name: str, key: str) -> float:
        """Return how long a result took when it was computed; NaN where not known."""
        ...

    def journal(self, name: str, key: str) -> Journal:
        """Return the journal of a step."""
        ...


@dataclass(frozen=True)
class Context:
    """What a step gets besides its inputs.

    Attributes
    ----------
    settings
        those that the step states; reading any other is an error.
    executor
        where to run.
    progress
        callback for long-running work.
    journal
        what the step did before it was interrupted; entries that it adds are kept at once.
    """

    settings: Config
    executor: Executor
    progress: Progress
    journal: Journal


Step = Callable[Concatenate[Context, P], R]


def step(*settings: str) -> Callable[[Step[P, R]], Step[P, R]]:
    """Mark a function as a step that reads these settings, such as ``seed`` or ``realign.trim``."""

    def mark(function: Step[P, R]) -> Step[P, R]:
        function.settings = settings  # type: ignore[attr-defined]
        return function

    return mark


class Part:
    """The part of the settings that a step states; it looks like a `Config` without the rest."""

    def __init__(self, section: Any, keys: tuple[str, ...], before: str = "") -> None:
        self._section = section
        self._keys = keys
        self._before = before

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again: it is sent to workers."""
        return Part, (self._section, self._keys, self._before)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):  # no setting; Dask asks whether it has such methods
            raise AttributeError(key)
        if key in self._keys:
            return getattr(self._section, key)
        below = tuple(k.removeprefix(f"{key}.") for k in self._keys if k.startswith(f"{key}."))
        if not below:
            raise EutelyError(f"a step reads the setting {self._before}{key} and does not state it")
        return Part(getattr(self._section, key), below, f"{self._before}{key}.")


@dataclass
class Run:
    """A method at work: settings, where work runs, where results are kept.

    Attributes
    ----------
    config, executor, store, progress
        all settings, where to run, where results are kept, and the progress callback.
    marks
        further plain values that all results depend on.
    timings
        (name, seconds) of the steps that ran, in order; repeated steps are numbered, unknown times
        are 0.
    """

    config: Config
    executor: Executor
    store: Store
    progress: Progress = silent
    marks: tuple[str, ...] = ()
    timings: list[tuple[str, float]] = field(default_factory=list)

    def __call__(self, function: Step[P, R], *inputs: P.args, **named: P.kwargs) -> R:
        """Return the result of a step: the stored one, or else computed and stored.

        Either way it went through a record, so that an interrupted run cannot differ from one
        that was not.
        """
        stated: tuple[str, ...] = function.settings  # type: ignore[attr-defined]
        values = {key: self.config.value(key) for key in stated}
        name = function.__name__.strip("_").replace("_", "-")
        content = [pack(value).digest for value in (*inputs, named)]
        key = digest([VERSION, name, values, list(self.marks), content])[:16]
        kind = get_type_hints(function)["return"]
        result = self._stored(name, key, kind)
        if result is None:
            context = Context(
                cast(Config, Part(self.config, stated)),
                Reporting(self.executor, self.progress),
                self.progress,
                self.store.journal(name, key),
            )
            self.progress(name, 0, 1, "")
            start = time.monotonic()
            record = pack(function(context, *inputs, **named))
            seconds = time.monotonic() - start
            self.store.put(name, key, record, seconds)
            log.info("step %s: %.1f s", name, seconds)
            result = unpack(record, kind)
        self.progress(name, 1, 1, "")
        count = sum(before.split(" ")[0] == name for before, _ in self.timings)
        label = f"{name} {count + 1}" if count else name
        seconds = self.store.seconds(name, key)
        self.timings.append((label, 0.0 if math.isnan(seconds) else seconds))
        return cast(R, result)

    def _stored(self, name: str, key: str, kind: Any) -> Any:
        record = self.store.get(name, key)
        if record is None:
            return None
        try:
            result = unpack(record, kind)
        except (EutelyError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            log.warning("step %s: its stored result is unusable (%s); computing it", name, error)
            return None
        log.info("step %s: done before", name)
        return result
