"""The package from a user's point of view."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Union

import pytest

import typelift

MODELS = Path(os.environ.get("TYPELIFT_MODELS") or Path(__file__).parents[3] / "testdata" / "models")
CHAIN = MODELS / "realcpt_chain.xml"

MIXED = """
    x = Parameter : f16[1,3]
    c = Const(0.5) : f32[]
    y = Multiply(x, c)
    r = Result(y)
"""


def test_a_model_is_a_collection_of_layers() -> None:
    model = typelift.open(CHAIN)
    layers = list(model)
    assert len(model) == len(layers) > 10
    assert all(model[layer.id] == layer for layer in layers)
    assert layers[0] in model and layers[0].name in model and layers[0].id in model
    assert "no such layer" not in model and 10**6 not in model and -1 not in model and None not in model
    assert repr(model).startswith("<Model")


def test_layers_of_bodies_have_paths() -> None:
    model = typelift.open(CHAIN)
    holder = next(layer for layer in model if layer.bodies)
    body, layers = next(iter(holder.bodies.items()))
    inner = layers[0]
    assert inner.path == f"{holder.name}/{body}/{inner.name}"
    assert model[inner.path].id == inner.id


def test_inputs_and_outputs_by_name_and_position() -> None:
    model = typelift.from_text(MIXED)
    assert model.inputs["x"] == model.inputs[0] == model.inputs[-1]
    assert model.inputs["x"].element_type == "f16" and model.inputs["x"].shape == (1, 3)
    assert model.outputs["y"].layer == model["y"] and list(model.outputs) == ["r"]
    assert model["y"].inputs[1] == model["c"].outputs[0]
    assert model["x"].outputs[0].consumers == [model["y"]]
    with pytest.raises(KeyError, match="the model has no input `xx`; it has `x`"):
        model.inputs["xx"]
    with pytest.raises(KeyError):
        model.inputs[1]


def test_findings_are_data() -> None:
    model = typelift.from_text(MIXED)
    (error,) = model.check().errors
    assert (error.code, error.severity, error.layer) == ("type-mismatch", "error", "y")
    assert error.layer is not None and model[error.layer].id == error.layer_id
    assert hash(error) == hash(copy.copy(error))
    with pytest.raises(AttributeError):
        setattr(error, "code", "other")


def test_findings_of_a_file_have_places_and_fixes(tmp_path: Path) -> None:
    model = typelift.from_text(MIXED)
    file = tmp_path / "mixed.xml"
    model.save(file)
    opened = typelift.open(file)
    (error,) = opened.check().errors
    line = file.read_text().splitlines()[(error.line or 0) - 1]
    assert 'name="y"' in line
    assert error.fix is not None and error.fix.startswith("typelift convert")
    assert "type-mismatch" in str(opened.check())
    assert typelift.check(file).errors == [error]


def test_what_is_not_a_model_is_an_error_with_diagnostics(tmp_path: Path) -> None:
    with pytest.raises(typelift.ModelError) as caught:
        typelift.loads("<net name='n' version='11'><layers><layer/></layers></net>")
    assert caught.value.diagnostics[0].code == "missing-attribute"
    assert caught.value.diagnostics[0].line == 1
    assert pickle.loads(pickle.dumps(caught.value)).diagnostics == caught.value.diagnostics
    with pytest.raises(typelift.ModelError):
        typelift.loads(b"\xff\xfe\xfd")
    with pytest.raises(FileNotFoundError) as missing:
        typelift.open(tmp_path / "none.xml")
    assert missing.value.filename == str(tmp_path / "none.xml")
    with pytest.raises(FileNotFoundError):
        typelift.open(CHAIN, weights=tmp_path / "none.bin")
    with pytest.raises(OSError):
        typelift.open(tmp_path)


def test_an_untouched_model_is_saved_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out.xml"
    typelift.open(CHAIN).save(out)
    assert out.read_bytes() == CHAIN.read_bytes()
    assert out.with_suffix(".bin").read_bytes() == CHAIN.with_suffix(".bin").read_bytes()
    text, weights = typelift.open(str(CHAIN)).to_bytes()
    assert (text, weights) == (out.read_bytes(), out.with_suffix(".bin").read_bytes())


def test_a_model_is_saved_over_itself_again_and_again(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    typelift.from_text(MIXED).save(file)
    model = typelift.open(file)
    for old, value in ((0.5, 3), (3, 4), (4, 5)):
        model.rewrite(f"Multiply(x, {old}) => Multiply(x, {value})")
        model.save(file)
        assert typelift.open(file)["y"].inputs[1].layer.numbers() == [value]  # type: ignore[union-attr]


def test_a_file_that_another_program_changed_is_not_saved_over(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    typelift.from_text(MIXED).save(file)
    mine, other = typelift.open(file), typelift.open(file)
    other.rewrite("Multiply(x, 0.5) => Multiply(x, 3)")
    other.save(file)
    mine.rewrite("Multiply(x, 0.5) => Multiply(x, 4)")
    with pytest.raises(OSError, match="was changed or replaced after the model was read"):
        mine.save(file)
    mine.save(tmp_path / "mine.xml")
    for path, value in ((file, 3), (tmp_path / "mine.xml", 4)):
        assert typelift.open(path)["y"].inputs[1].layer.numbers() == [value]  # type: ignore[union-attr]


def test_convert_repairs_or_refuses_whole() -> None:
    model = typelift.from_text(MIXED)
    before = model.to_bytes()
    with pytest.raises(typelift.ModelError) as caught:
        model.convert("off")
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["type-mismatch"]
    assert model.to_bytes() == before
    report = model.convert("pytorch", input_types={"x": "u8"})
    assert {change.action for change in report} >= {"inserted", "retyped"}
    assert model.check().errors == [] and model.inputs["x"].element_type == "u8"
    assert "Convert" in str(report)
    with pytest.raises(ValueError, match="align: expected one of"):
        model.convert("numpy2")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="has no input `z`"):
        model.convert(set_types={"z": "f32"})
    with pytest.raises(ValueError, match="`fp32x` is not an element type"):
        model.convert(set_types={"x": "fp32x"})


def test_convert_writes_for_an_older_release() -> None:
    model = typelift.from_text("x = Parameter : f32[2,3]\ny = Softmax-8(x) {axis=-1}\nr = Result(y)")
    model.convert(target="2021.4")
    assert model.layers[1].attributes == {"axis": "1"}
    with pytest.raises(ValueError, match="2021"):
        model.convert(target="none")


def test_convert_replaces_every_promotion() -> None:
    model = typelift.open(CHAIN)
    assert any(layer.type == "ConvertPromoteTypes" for layer in model)
    model.convert()
    assert not any(layer.type == "ConvertPromoteTypes" for layer in model)


def test_set_shape_and_types() -> None:
    model = typelift.from_text("x = Parameter : f32[?,3]\ny = Parameter : f32[8,3]\nz = Add(x, y)\nr = Result(z)")
    model.set_shape("x", [None, 3])
    model.set_shape("x", ((1, 8), 3))
    assert str(model.inputs["x"].shape) == "[1..8,3]"
    with pytest.raises(typelift.ModelError):
        model.set_shape("x", "[8,4]")
    assert str(model.inputs["x"].shape) == "[1..8,3]"
    with pytest.raises(ValueError, match="not a shape"):
        model.set_shape("x", "[8")
    model.set_input_type("x", "f16")
    model.set_output_type("z", "f16")
    assert (model.inputs["x"].element_type, model.outputs["r"].element_type) == ("f16", "f16")
    with pytest.raises(typelift.ModelError, match="type-mismatch"):
        model.set_type("y", "f16")


def test_layers_are_those_of_the_moment_they_were_asked_for() -> None:
    model = typelift.from_text("x = Parameter : f32[3]\ny = Relu(x)\nr = Result(y)")
    relu = model["y"]
    model.rewrite("Relu(x) => Tanh(x)")
    assert relu.type == "ReLU" and model["y"].type == "Tanh" and relu != model["y"]


def test_rules_that_cannot_be_read_or_applied() -> None:
    model = typelift.from_text("x = Parameter : f32[3]\nc = Const(2) : f32[]\ny = Divide(x, c)\nr = Result(y)")
    with pytest.raises(typelift.RuleError, match="`y` is not in the pattern") as caught:
        model.rewrite("Divide(x, 2) => Multiply(y, 0.5)")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.line, diagnostic.column) == ("invalid-statement", 1, 26)
    with pytest.raises(typelift.RuleError):
        model.rewrite("Divide(x, 2) => Convert(x) {destination_type=f16}")
    with pytest.raises(ValueError, match="no rules are called `nothing`"):
        model.rewrite(use=["nothing"])
    assert model["y"].type == "Divide"
    assert model.rewrite(["halve: Divide(x, 2) => Multiply(x, 0.5)", "expect halve 1"])[0].rule == "halve"


def test_why_and_diff_are_texts_and_data(tmp_path: Path) -> None:
    model = typelift.from_text(MIXED)
    model.convert("pytorch")
    why = model.why("y")
    assert why[0].layer == "y" and why[0].element_type == "f16" and {step.layer for step in why.sources} >= {"x"}
    assert "`x` (Parameter 0" in str(why)
    other = model.copy()
    other.rewrite("Multiply(x, c) => Add(x, c)")
    changes = typelift.diff(model, other)
    assert changes and not typelift.diff(model, model.copy())
    assert "Multiply → Add" in str(changes)
    file = tmp_path / "other.xml"
    other.save(file)
    assert {change.kind for change in model.diff(file)} == {change.kind for change in changes}
    assert not model.diff(other, ignore=[change.kind for change in changes])
    with pytest.raises(KeyError, match="no layer and no tensor is called `yy`"):
        model.why("yy")


def test_promotion_by_the_rules_of_each_framework() -> None:
    assert typelift.promote("f16[2]", "i64[]", rules="pytorch") == "f16[2]"
    assert typelift.promote("u64", "i32", promote_unsafe=True).element_type == "f32"
    assert typelift.promote("u8", "1", rules="numpy").steps
    with pytest.raises(typelift.RuleError) as caught:
        typelift.promote("u64", "i32")
    assert caught.value.diagnostics[0].code == "unsigned-to-signed"
    with pytest.raises(ValueError, match="`excel` is not a rule set"):
        typelift.promote("u64", "i32", rules="excel")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no operation `nothing`"):
        typelift.promote("u64", "i32", op="nothing")
    with pytest.raises(ValueError, match="no setting `setting`|no rules have a setting `setting`"):
        typelift.promote("u64", "i32", setting=True)
    with pytest.raises(ValueError, match="f33"):
        typelift.promote("f33", "i32")


def test_copies_and_pickles_are_models_of_their_own() -> None:
    model = typelift.open(CHAIN)
    for same in (model.copy(), copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert same.to_bytes() == model.to_bytes()
        same.convert()
        assert same.to_bytes() != model.to_bytes()


def test_shapes() -> None:
    for text in ("[]", "[...]", "[1,?,3..5,..8,2..]"):
        shape = typelift.Shape.parse(text)
        assert str(shape) == text and pickle.loads(pickle.dumps(shape)) == shape
    assert typelift.Shape((1, 2)) == [1, 2] == typelift.Shape.parse("1,2") and typelift.Shape() != typelift.Shape(None)
    assert hash(typelift.Shape((1, 2))) == hash((1, 2))


def test_constants_as_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    model = typelift.from_text(
        """
        a = Const([1, 2, 3, 4]) : i64[2,2]
        b = Const([0.5, 1.5]) : bf16[2]
        c = Const([1, 2, 3]) : u4[3]
        ra = Result(a)
        rb = Result(b)
        rc = Result(c)
        """
    )
    assert (model["a"].numpy() == [[1, 2], [3, 4]]).all() and model["a"].numpy().dtype == numpy.int64
    assert model["b"].numpy().tolist() == [0.5, 1.5] and model["c"].numpy().tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="not a constant"):
        model["ra"].numpy()


def test_a_notebook_shows_pictures_and_tables() -> None:
    model = typelift.from_text(MIXED)
    assert "<iframe" in model._repr_html_() and "<table" in model.check()._repr_html_()
    assert "<table" in model.inputs._repr_html_() and "&lt;" not in model.to_html()[:15]
    assert "&lt;b&gt;" in typelift.from_text("'<b>' = Parameter : f32[]\nr = Result('<b>')").inputs._repr_html_()
    assert "<table" in typelift.open(MODELS / "bert.promote.xml").convert()._repr_html_()


def test_threads_share_a_model() -> None:
    model = typelift.open(CHAIN)
    shapes = [(batch, 3) for batch in range(1, 9)]
    name = next(iter(model.inputs))
    rank = model.inputs[name].shape.rank
    faults: list[BaseException] = []

    def work(batch: int) -> None:
        try:
            for _ in range(20):
                model.set_shape(name, [batch] + [None] * ((rank or 1) - 1))
                model.check()
                model.to_bytes()
                list(model)
        except typelift.ModelError:
            pass  # The shape does not fit the others, and the model stays as it was.
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(batch,)) for batch, _ in shapes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults and model.check().errors == []


def run(*arguments: Union[str, Path]) -> subprocess.CompletedProcess[str]:
    """Runs the program."""
    command = [sys.executable, "-m", "typelift", *map(str, arguments)]
    # Any width.
    surroundings = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings)


@pytest.mark.parametrize("name", ["realcpt_chain", "loop_py", "bert.promote"])
def test_the_package_has_what_the_program_prints(name: str) -> None:
    path = MODELS / f"{name}.xml"
    model = typelift.open(path)
    assert model.to_text() == run("show", path).stdout
    assert model.to_text(only=["Add", "Convert"], fold_constants=True) == run(
        "show", "--only", "Add,Convert", "--fold-constants", path
    ).stdout
    near = model.layers[len(model) // 2].name
    assert model.to_dot(near, depth=1) == run("show", "--around", near, "--depth", "1", "--format", "dot", path).stdout
    assert str(model.stats()) == run("stats", "--all", path).stdout
    assert model.to_html() == run("view", path, "-o", "-").stdout
    reference = path.with_suffix(".ref.xml")
    if reference.exists():
        assert typelift.open(reference).to_html(path) == run("view", path, reference, "-o", "-").stdout
        assert str(typelift.diff(path, reference)) == run("diff", path, reference).stdout


def test_stats_are_data() -> None:
    stats = typelift.open(CHAIN).stats()
    document = json.loads(run("stats", "--format", "json", CHAIN).stdout)
    assert (stats.name, stats.version, stats.layers, stats.bodies) == tuple(
        document[key] for key in ("name", "version", "layers", "bodies")
    )
    assert [list(weight) for weight in stats.weights] == [list(weight.values()) for weight in document["weights"]]
    assert {of.type: of.layers for of in stats.operations} == {of["type"]: of["count"] for of in document["operations"]}
    assert [tensor.name for tensor in stats.inputs] == [tensor["name"] for tensor in document["inputs"]]
    assert stats.tensors == document["tensors"] and stats.weight_bytes == document["weight_bytes"]


def test_what_is_asked_for_and_is_not_there() -> None:
    model = typelift.from_text(MIXED)
    with pytest.raises(KeyError, match="no layer and no tensor is called `yy`"):
        model.to_text("yy")
    with pytest.raises(KeyError, match="`Ad` is not an operation"):
        model.to_dot(only=["Ad"])
    assert typelift.explain("stale-port") == run("explain", "stale-port").stdout
    assert typelift.explain() == run("explain").stdout
    with pytest.raises(ValueError, match="did you mean `stale-port`"):
        typelift.explain("stale-ports")


def test_a_converted_constant_is_audited() -> None:
    model = typelift.from_text("x = Parameter : f32[2]\nc = Const([1, 0.1]) : f32[2]\ny = Add(x, c)\nr = Result(y)")
    done = model.convert("pytorch", set_types={"c": "f16"})
    (change,) = (change for change in done if change.action == "converted")
    assert change.layer == "c" and change.audit is not None
    assert (change.audit["values"], change.audit["rounded"]) == (2, 1)


def test_the_program_comes_along(tmp_path: Path) -> None:
    assert run("--version").stdout == f"typelift {typelift.__version__}\n"
    out = tmp_path / "out.xml"
    assert run("convert", CHAIN, "-o", out).returncode == 0 and out.exists()
    assert run("check", tmp_path / "none.xml").returncode == 2


def test_the_library_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    model = typelift.from_text(MIXED)
    with pytest.raises(typelift.ModelError):
        model.convert("off")
    with pytest.raises(ValueError):
        typelift.promote("f33")
    model.check()
    assert capfd.readouterr() == ("", "")
