"""Ctrl-C that is not lost: Python drops a KeyboardInterrupt that comes up in a destructor."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Notes Ctrl-C beside the usual KeyboardInterrupt, so that it can be raised again."""

    def __init__(self) -> None:
        self._seen = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note them within the block; elsewhere than in the main thread there are none."""
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            yield
            return

        def note(number: int, frame: FrameType | None) -> None:
            self._seen = True
            before(number, frame)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def delivered(self) -> Iterator[None]:
        """Forget what was noted when a KeyboardInterrupt leaves the block: it was not lost."""
        try:
            yield
        except KeyboardInterrupt:
            self._seen = False
            raise

    def check(self) -> None:
        """Raise KeyboardInterrupt if one was noted and lost."""
        if self._seen:
            raise KeyboardInterrupt
