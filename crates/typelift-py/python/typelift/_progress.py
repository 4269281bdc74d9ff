"""Progress of long work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Callable, Union

from typelift import _typelift

#: What takes ``progress``: a function of the stage, how much is done, and how much there is; or ``True`` for a bar.
Progress = Union[bool, Callable[[str, int, int], object]]


@contextmanager
def told(progress: Progress) -> Iterator[None]:
    """Reports the progress of the work inside the ``with`` block."""
    if progress is False:
        yield
        return
    bar = _Bar() if progress is True else None
    outer = _typelift.watch(bar if isinstance(progress, bool) else progress)
    try:
        yield
    finally:
        _typelift.watch(outer)
        if bar is not None:
            bar.close()


class _Bar:
    """Shows a tqdm bar for each stage that is long enough to report progress."""

    def __init__(self) -> None:
        try:
            self._tqdm: Any = import_module("tqdm.auto").tqdm
        except ImportError:
            raise ImportError("progress=True needs tqdm: `pip install tqdm`, or give a function") from None
        self._bar: Any = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._bar is None or (self._bar.desc, self._bar.total) != (stage, total):
            self.close()
            self._bar = self._tqdm(total=total, unit_scale=True)
            self._bar.set_description_str(stage)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
