"""Progress of long work, and stopping it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

import pytest

import typelift
from typelift import Match, Model

LAYERS = 1000


def chain() -> Model:
    lines = (f"l{at} = Relu(l{at - 1})" for at in range(1, LAYERS))
    return typelift.from_text("\n".join(["l0 = Parameter : f32[2]", *lines, f"r = Result(l{LAYERS - 1})"]))


def slow(match: Match) -> bool:
    """Each call takes a millisecond, so that all matches take a second."""
    time.sleep(0.001)
    return False


def long_work(model: Model, progress: Any) -> None:
    model.rewrite(typelift.Rule("Relu(x)", "Abs(x)", when=slow), progress=progress)


class Told:
    """Progress that a callback received."""

    def __init__(self, last: float = float("inf"), then: Callable[[], object] = lambda: None) -> None:
        self.list: list[tuple[str, int, int]] = []
        self.threads: set[int] = set()
        self._last, self._then = last, then

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.list.append((stage, done, total))
        self.threads.add(threading.get_ident())
        if len(self.list) == self._last:
            self._then()


def workers() -> int:
    """Returns the number of threads that work for typelift."""
    return sum(name_of(task) == "typelift\n" for task in Path("/proc/self/task").iterdir())


def name_of(task: Path) -> str:
    """Returns the name of a thread, empty if it has ended since it was listed."""
    try:
        return Path(task, "comm").read_text()
    except OSError:
        return ""


def assert_no_worker_is_left() -> None:
    if sys.platform == "linux":
        end = time.monotonic() + 20
        while workers():
            assert time.monotonic() < end, "the work goes on"
            time.sleep(0.01)


def test_a_function_is_told_how_far_long_work_is() -> None:
    told = Told()
    long_work(chain(), told)
    matched = [(done, total) for stage, done, total in told.list if stage == "match"]
    assert len(matched) > 10 and matched == sorted(matched) and {total for _, total in matched} == {LAYERS + 1}
    assert matched[-1][0] == LAYERS + 1 and matched[0][0] < LAYERS / 2
    assert told.threads == {threading.get_ident()}


def test_work_that_is_not_long_is_not_told_of(tmp_path: Path) -> None:
    told = Told()
    path = tmp_path / "m.xml"
    model = typelift.from_text("x = Parameter : f32[2]\ny = Relu(x)\nr = Result(y)")
    model.save(path, progress=told)
    again = typelift.open(path, progress=told)
    again.convert(types={"f32": "f16"}, progress=told)
    assert again.diff(model, progress=told) and not again.fix(progress=told)
    assert not again.check(progress=told).errors and not typelift.check(path, progress=told).errors
    assert told.list == []


def test_an_exception_of_the_function_stops_the_work() -> None:
    def stop() -> None:
        raise RuntimeError("enough")

    model, told = chain(), Told(3, stop)
    with pytest.raises(RuntimeError, match="enough"):
        long_work(model, told)
    assert len(told.list) == 3 and model["l1"].type == "ReLU"
    assert_no_worker_is_left()
    # The next call is not reported to it.
    assert model.rewrite("Relu(x) => Abs(x)") and len(told.list) == 3


def test_a_function_can_look_at_models() -> None:
    model = chain()
    told = Told(2, lambda: model.check().errors)
    long_work(model, told)
    assert len(told.list) > 10


def constants(count: int, values: int, stride: int) -> str:
    """Returns a model of `count` constants of f32, each at a distance of so many bytes from the one before."""
    consts = "".join(
        f'<layer id="{at}" name="c{at}" type="Const" version="opset1"><data element_type="f32" shape="{values}" '
        f'offset="{at * stride}" size="{4 * values}"/><output><port id="0" precision="FP32"><dim>{values}</dim></port></output>'
        f'</layer><layer id="{count + at}" name="r{at}" type="Result" version="opset1"><input><port id="0" precision="FP32">'
        f"<dim>{values}</dim></port></input></layer>"
        for at in range(count)
    )
    edges = "".join(f'<edge from-layer="{at}" from-port="0" to-layer="{count + at}" to-port="0"/>' for at in range(count))
    return f'<net name="n" version="11"><layers>{consts}</layers><edges>{edges}</edges></net>'


def test_ctrl_c_stops_the_work() -> None:
    # All constants are the same bytes, and each of them is read: 25 GB, which takes longer than the test waits.
    model = typelift.loads(constants(400, 1 << 24, 0), bytes(1 << 26))
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.convert(compress="f16", like="all")
    assert_no_worker_is_left()
    assert time.monotonic() - start < 10
    assert model["c3"].outputs[0].element_type == "f32"


def test_a_save_that_is_stopped_leaves_the_old_pair(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    old = typelift.from_text("x = Parameter : f32[2]\nc = Const([1, 2]) : f32[2]\ny = Add(x, c)\nr = Result(y)")
    old.save(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    count, values = 64, 1 << 16
    # The constants differ, so that all are converted, and the conversion happens on writing.
    model = typelift.loads(constants(count, values, 4 * values), b"".join(at.to_bytes(4, "little") * values for at in range(count)))
    model.convert(compress="f16", like="all")

    def stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        model.save(path, progress=Told(1, stop))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    model.save(path)
    assert typelift.open(path)["c3"].type == "Convert"


def test_true_shows_bars_of_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    bars = []

    class Bar:
        def __init__(self, total: int, unit_scale: bool) -> None:
            self.total, self.n, self.desc, self.is_closed = total, 0, "", False
            bars.append(self)

        def set_description_str(self, desc: str) -> None:
            self.desc = desc

        def update(self, more: int) -> None:
            self.n += more

        def close(self) -> None:
            self.is_closed = True

    fake: Any = ModuleType("tqdm.auto")
    fake.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", fake)
    long_work(chain(), True)
    assert [(bar.desc, bar.n, bar.total, bar.is_closed) for bar in bars if bar.desc == "match"] == [
        ("match", LAYERS + 1, LAYERS + 1, True)
    ]
    assert all(bar.is_closed for bar in bars)

    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        chain().check(progress=True)


def test_what_is_shown_of_a_long_answer_does_not_take_longer() -> None:
    model = chain()
    why = model.why(f"l{LAYERS - 1}")
    assert len(why) == LAYERS and len(repr(why)) < 2000 and repr(why).endswith(f"… {LAYERS - 10} more])")
    assert len(str(why)) < 5000 and str(why) != why.full_text and "l500" in why.full_text
    # Only the items that were accessed have been created.
    assert why._items == () and why[-1].layer == "l0" and len(why._items) == LAYERS
