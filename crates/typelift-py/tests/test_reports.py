"""Reports as data, and their display in notebooks."""

from __future__ import annotations

import pickle

import pytest

import typelift

SOFTMAX = "x = Parameter : f32[2,3]\nc = Const([1, 2, 3]) : f32[3]\ny = Softmax-8(x) {axis=-1}\nz = Add(y, c)\nr = Result(z)"


def chain(length: int) -> typelift.Model:
    lines = ["l0 = Parameter : f16[2]", *(f"l{at} = Relu(l{at - 1})" for at in range(1, length))]
    return typelift.from_text("\n".join([*lines, f"r = Result(l{length - 1})"]))


def test_a_report_for_an_older_release_says_what_was_done() -> None:
    model = typelift.from_text(SOFTMAX)
    report = model.convert(target="2021.4")
    assert report.target is not None
    assert [(site.rule, site.layer) for site in report.target.applied] == [("softmax-8-to-1", "y")]
    assert report.target.format == 10 and report.target.versions == ()
    assert report and len(report) == 0 and report.document["target"]["format"] == 10
    again = model.convert(target="2021.4")
    assert again.target is not None and not again.target and not again
    assert model.convert().target is None


def test_a_report_is_true_when_constants_are_stored_otherwise() -> None:
    model = typelift.from_text(SOFTMAX)
    report = model.convert(compress="f16")
    assert report and [(c["name"], c["from"], c["to"]) for c in report.constants] == [("c", "f32", "f16")]
    assert not model.convert(compress="f16")


def test_a_rule_that_was_refused_is_reported_with_the_reason() -> None:
    model = typelift.from_text(SOFTMAX)
    report = model.rewrite("try narrow: Add(x, c: const f32) => Convert(x) {destination_type=f16}")
    assert not report
    (skipped,) = report.skipped
    assert (skipped.rule, skipped.layer) == ("narrow", "z") and "f16" in skipped.reason


def test_values_that_overflow_in_a_rewrite_are_counted() -> None:
    model = typelift.from_text("x = Parameter : f32[2]\nc = Const([0, 2]) : f32[2]\ny = Divide(x, c)\nr = Result(y)")
    rule = "Divide(x, c: const f32) => Multiply(x, 1 / c)"
    with pytest.raises(typelift.RuleError, match="`allow overflow` lifts that"):
        model.rewrite(rule)
    (site,) = model.rewrite(f"{rule} allow overflow")
    assert site.non_finite == 1


def test_slices_are_reports_of_the_same_kind() -> None:
    why = chain(50).why("l49")
    first = why[:3]
    assert isinstance(first, typelift.Derivation) and [step.layer for step in first] == ["l49", "l48", "l47"]
    assert "<pre" in first._repr_html_() and pickle.loads(pickle.dumps(first)) == first
    diagnostics = chain(3).check()
    assert isinstance(diagnostics[:1], typelift.Diagnostics) and "<table" in diagnostics[:1]._repr_html_()


def test_tables_are_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    why = chain(50).why("l49")
    assert list(pandas.DataFrame(why)["layer"][:2]) == ["l49", "l48"]
    assert len(pandas.DataFrame(why[:5])) == 5
    constants = typelift.from_text(SOFTMAX).convert(compress="f16").constants
    assert list(pandas.DataFrame(constants)["to"]) == ["f16"]


def test_what_a_notebook_shows_of_a_long_report_is_short() -> None:
    why = chain(3000).why("l2999")
    assert len(why) == 3000 and len(repr(why)) < 5000 and "2990 more" in repr(why)
    layers = [f"p{at} = Parameter : f32[2]\ny{at} = Relu(p{at})\nr{at} = Result(y{at})" for at in range(1000)]
    model = typelift.from_text("\n".join(layers))
    other = model.copy()
    other.rewrite("Relu(x) => Tanh(x)")
    shown = typelift.diff(model, other)._repr_html_()
    assert shown.count("<tr>") == 201 and "and 800 more" in shown and len(shown) < 1_000_000


def test_a_model_is_shown_with_another_one_and_in_any_height() -> None:
    model = typelift.from_text(SOFTMAX)
    other = model.copy()
    other.rewrite("Add(x, c) => Multiply(x, c)")
    shown = other.view(model, height=700)._repr_html_()
    assert shown.startswith("<iframe") and "height:700px" in shown and "Multiply" in shown
    assert model._repr_html_() == model.view()._repr_html_()
    large = chain(20_000)
    assert len(large._repr_html_()) < 1_000_000 and "more layers" in large._repr_html_() and len(repr(large)) < 100


def test_names_of_inputs_are_texts() -> None:
    names: list[str] = list(typelift.from_text(SOFTMAX).inputs)
    assert names == ["x"]


def test_parts_of_a_model_say_what_to_pickle_instead() -> None:
    model = typelift.from_text(SOFTMAX)
    for part, advice in ((model["y"], "layer.path"), (model["y"].outputs[0], "tensor.name"), (model.inputs, "the model")):
        with pytest.raises(TypeError, match=f"pickle .*{advice}"):
            pickle.dumps(part)


def test_columns_stay_columns_in_exported_notebooks() -> None:
    model = chain(3)
    assert "font-family:monospace" in model.why("l2")._repr_html_()


def test_statistics_and_findings_are_tables_in_a_notebook() -> None:
    model = chain(3)
    statistics = model.stats()._repr_html_()
    assert "<pre" not in statistics and statistics.count("<table>") == 4 and "stored bytes" in statistics
    assert "min-width:24em" in model.check()._repr_html_()


STALE = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="1" name="y" type="ReLU" version="opset1"><input><port id="0"/></input>
<output><port id="1" precision="I32"><dim>2</dim></port></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"""


def test_a_converted_model_has_no_warnings_about_ports_of_the_old_text() -> None:
    model = typelift.loads(STALE)
    assert "stale-port" in [found.code for found in model.check()]
    model.convert(set_types={"x": "f64"})
    assert "stale-port" not in [found.code for found in model.check()]


def test_messages_name_arguments_and_not_options() -> None:
    with pytest.raises(typelift.RuleError) as caught:
        typelift.promote("u64", "i32")
    help_text = caught.value.diagnostics[0].help
    assert help_text.startswith("promote_unsafe=True allows it") and "--" not in help_text
    model = typelift.from_text("x = Parameter : f16[2]\nc = Const([1, 2]) : f32[2]\ny = Add(x, c)\nr = Result(y)")
    with pytest.raises(ValueError, match="`head` matches no layer"):
        model.convert("pytorch", compress="f16", keep=["head"])
    texts = [text for found in model.check() for text in (found.message, found.help, *found.notes)]
    assert texts and not [text for text in texts if "--" in text]


def test_promotions_as_a_table_and_by_all_rules() -> None:
    table = typelift.promotion_table("pytorch")
    for (first, second), common in table.items():
        try:
            assert typelift.promote(first, second, rules="pytorch") == common
        except typelift.RuleError:
            assert common is None
    found = typelift.compare_promotions("u64", "i32")
    assert found["numpy"] == "f64" and isinstance(found["openvino"], typelift.RuleError)
    with pytest.raises(ValueError):
        typelift.compare_promotions("u64", "i32", op="none")


def test_what_no_file_can_hold_is_refused() -> None:
    model = typelift.from_text("x = Parameter : f32[2,3]\nc = Const([1, 2]) : f32[2]\ny = Relu(x)\nr = Result(y)\n")
    for dim in (-2, 2**70, (5, 2)):
        with pytest.raises(ValueError):
            model.set_shape("x", [dim, 3])
    with pytest.raises((ValueError, typelift.ModelError)), model.edit() as graph:
        graph["y"].attributes["a b"] = "1"
    numpy = pytest.importorskip("numpy")
    with pytest.raises(ValueError, match="masked"):
        model.set_constant("c", numpy.ma.array([1.0, 2.0], mask=[True, False]))
    values = model["c"].numpy(copy=True)
    values[0] = 5
    assert model["c"].numpy().tolist() == [1, 2]
    model.set_constant("c", numpy.zeros((0, 3), numpy.float32))
    assert model["c"].numpy().shape == (0, 3)


def test_text_of_a_file_is_escaped_when_it_is_shown() -> None:
    text = """<net name="n" version="11"><layers>
        <layer id="0" name="x&#27;[2J&#x202e;" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
            <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
        <layer id="1" name="y&#27;c" type="Rellu&#155;2J" version="opset1"><input><port id="0" precision="FP32"><dim>2</dim></port></input>
            <output><port id="1" precision="FP32"><dim>3</dim></port></output></layer>
        <layer id="2" name="r&#13;ok" type="Result" version="opset1"><input><port id="0" precision="FP32"><dim>2</dim></port></input></layer>
        </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"""
    model = typelift.loads(text)
    found = model.check()
    outputs = [str(found), found._repr_html_(), repr(model), str(model), repr(model[0]), repr(model.inputs), str(model.stats())]
    outputs += [model.inputs._repr_html_(), *map(str, found), repr(list(found))]
    for action in (lambda: model["absent"], lambda: model.convert(), lambda: typelift.loads(text.replace("11", "1\x1b[2J"))):
        try:
            action()
        except Exception as error:
            outputs += [str(error), repr(error.args[0])]
    for shown in outputs:
        assert not [char for char in shown if char < " " and char not in "\n\t" or char in "\x7f\x9b\u202e"], shown


def test_computed_values_have_a_limit() -> None:
    numpy = pytest.importorskip("numpy")
    values = numpy.ones(4096, dtype=numpy.float32).tobytes()
    text = typelift.from_text(
        "x = Parameter : f32[64,64]\nc = Const([1, 2]) : f32[2]\ny = Relu(x)\nr = Result(y)\n"
    ).to_bytes()[0]
    model = typelift.loads(text, values, max_memory=8)
    assert model["c"].numpy().tolist() == [1, 1]
    with pytest.raises(OverflowError):
        typelift.loads(text, values, max_memory=-1)
