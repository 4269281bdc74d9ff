"""Random models around each shipped rule, compared by value before and after.

python fuzz.py PROGRAM [--seed N] [--each N] [--only TEXT] [--keep FOLDER] [--jobs N]

For each rule of `PROGRAM rewrite --source`: builds N models in which its pattern occurs, or nearly occurs; applies the
rule alone, and `--use all`, and that once more; asks OpenVINO's reference kernels (`Model.evaluate`, the CPU plugin in f32
where an operation has no kernel) what the models compute. Prints what changed, smallest first, and how often each rule was
applied. The exit status is 1 if a value changed, if OpenVINO refuses a model, if a second run changes it, or if a rule was
applied to fewer than 20 models.
"""

import argparse
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import openvino as ov

import build
import coded
import patterns

LEAST = 20
# Sets of rules that keep every value. Of the others the intermediate values must be finite.
EXACT = {"no-ops", "common-subexpressions", "constant-ifs", "slices", "movement", "converts-below-movement"}
# Models are drawn this many times over, and those that a rule is applied to are compared first.
DRAWN = 12
TOLERANCE = {"f64": 1e-5, "f32": 2e-4, "f16": 2e-2, "bf16": 1e-1}
# Rounding of intermediate values near 1, such as that in `Log(1 + Exp(x))`.
LEAST_DIFFERENCE = {"f64": 1e-8, "f32": 2e-7, "f16": 2e-3, "bf16": 1e-2}
CORE = ov.Core()
CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
SPECIAL = [0, -0.0, 0.5, 1, -1, 2, -2, 3, -3, 6, -6, 1e-3, -1e-3, 10, -10, 100, -100, 1e-7, 250, -250]
EXTREME = [*SPECIAL, np.inf, -np.inf, np.nan, 3e4, -3e4, 65504, -65504, 1e30, -1e30, 3.4028234e38, -3.4028234e38, 1e-30, 1e-42, 6e-8]


def inputs_of(shapes, types, seed, kind):
    random = np.random.default_rng(seed)
    values = []
    for shape, type in zip(shapes, types):
        if type == "boolean":
            values.append(random.integers(0, 2, shape).astype(np.bool_))
        elif type in build.FLOATS:
            drawn = random.normal(size=shape) * 2 if kind == "normal" else random.choice(SPECIAL if kind == "special" else EXTREME, size=shape)
            with np.errstate(all="ignore"):
                values.append(np.asarray(drawn).astype(np.float32 if type == "bf16" else build.NUMPY[type]))
        else:
            numbers = np.iinfo(build.NUMPY[type])
            drawn = random.integers(-20 if numbers.min < 0 else 0, 20, shape)
            if kind == "extreme":
                limits = np.array([numbers.min, numbers.max, numbers.max - 1], build.NUMPY[type])
                drawn = np.where(random.random(shape) < 0.3, random.choice(limits, size=shape), np.asarray(drawn).astype(build.NUMPY[type]))
            values.append(np.asarray(drawn).astype(build.NUMPY[type]))
    return values


def load(path):
    """The model; what is bf16 outside of it is f32."""
    return without_bf16(CORE.read_model(path))


def without_bf16(model):
    """The model with f32 in place of bf16 at its inputs and outputs. A PrePostProcessor would also optimize it."""
    convert, parameters = build.FACTORIES[1].create, []
    for old in model.get_parameters():
        parameters.append(old)
        if old.get_element_type() == ov.Type.bf16:
            parameters[-1] = new = ov.op.Parameter(ov.Type.f32, old.get_partial_shape())
            users = list(old.output(0).get_target_inputs())
            narrow = convert("Convert", [new.output(0)], {"destination_type": "bf16"})
            for user in users:
                user.replace_source_output(narrow.output(0))
    model = ov.Model(model.get_results(), parameters, "f32")
    for result in model.get_results():
        if result.get_element_type() == ov.Type.bf16:
            wide = convert("Convert", [result.input_value(0)], {"destination_type": "f32"})
            result.input(0).replace_source_output(wide.output(0))
            result.validate_and_infer_types()
    model.validate_nodes_and_infer_types()
    return model


def reference(model, values):
    outputs = [ov.Tensor(output.get_element_type(), ov.Shape([0] if output.get_partial_shape().is_dynamic else output.get_shape())) for output in model.outputs]
    with_inputs = [ov.Tensor(np.array(value, order="C")) for value in values]
    if not model.evaluate(outputs, with_inputs):
        raise RuntimeError("no reference")
    return [np.array(output.data) for output in outputs]


def plugin(model, values):
    request = CORE.compile_model(model, "CPU", CONFIG).create_infer_request()
    request.infer(dict(enumerate(values)))
    return [np.array(request.get_output_tensor(at).data) for at in range(len(model.outputs))]


def difference(before, after, type, most=1e3):
    """What differs between two arrays, or nothing. Rounding is relative to the largest value, at most `most`."""
    if before.shape != after.shape or before.dtype != after.dtype:
        return f"{before.dtype}{list(before.shape)} → {after.dtype}{list(after.shape)}"
    if type not in build.FLOATS:
        return None if np.array_equal(before, after) else f"{before.ravel()[:6]} → {after.ravel()[:6]}"
    a, b = before.astype(np.float64), after.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        scale = min(np.abs(a[np.isfinite(a)]).max(initial=0), most)
        near = np.abs(a - b) <= TOLERANCE[type] * (np.abs(a) + scale) + LEAST_DIFFERENCE[type]
    wrong = ~(same | near)
    if not wrong.any():
        return None
    return f"{a[wrong][:4]} → {b[wrong][:4]}"


def types_of(ports):
    name = lambda port: {"float": "f32"}.get(port.get_element_type().get_type_name(), port.get_element_type().get_type_name())
    return [name(port) for port in ports]


def fixed(model, shapes):
    """The model for inputs of these shapes, where it takes them: some reference kernels do not take open ones."""
    before = {port: port.get_partial_shape() for port in model.inputs}
    try:
        model.reshape({port: ov.PartialShape(shape) for port, shape in zip(model.inputs, shapes)})
    except Exception:
        model.reshape(before)
    return model


def other_shapes(model, shapes, seed):
    """Other shapes that the open inputs of a model may have; none if it has no open inputs."""
    random, ports = np.random.default_rng(seed), [port.get_partial_shape() for port in model.inputs]
    for _ in range(2 if any(port.is_dynamic for port in ports) else 0):
        yield [other_shape(port, shape, random) for port, shape in zip(ports, shapes)]


def other_shape(port, shape, random):
    if port.rank.is_dynamic:
        least = int(random.integers(len(shape) + 1))
        return [[], shape[least:], [1] * len(shape), [1, *shape], [2, *shape]][random.integers(5)]
    drawn = []
    for dim, size in zip(port, shape):
        most = dim.get_max_length() if dim.get_max_length() >= 0 else size + 1
        likely = [1, 1, size, size + 1, 2, *([0] if random.random() < 0.05 else [])]
        fits = [it for it in likely if dim.get_min_length() <= it <= most]
        drawn.append(size if dim.is_static or not fits else int(fits[random.integers(len(fits))]))
    return drawn


def compare(before, after, shapes, seed, kinds, is_exact=True):
    """How a rewritten model computes something else, at these shapes or at others; None where it does not."""
    found = compare_at(before, after, shapes, seed, kinds, is_exact)
    # An attention is fused in the belief that keys and values are equally long.
    if "ScaledDotProductAttention" in Path(after).read_text():
        return found
    for other in other_shapes(CORE.read_model(before), shapes, seed):
        # Kernels do not check shapes that the original does not take.
        if found is None and takes(before, other, seed):
            if takes(after, other):
                found = compare_at(before, after, other, seed, ["normal"], is_exact)
            elif runs(before, other, seed):
                found = "refused", f"{other}"
    return found


def runs(path, shapes, seed):
    """True if the CPU plugin computes a model of these shapes."""
    model = fixed(load(path), shapes)
    try:
        return bool(plugin(model, inputs_of(shapes, types_of(model.inputs), seed, "normal")))
    except Exception:
        return False


def takes(path, shapes, seed=None):
    """True if OpenVINO accepts these shapes of a model's inputs, and with a seed, if outputs get shapes that it infers."""
    model = load(path)
    inferred = [port.get_partial_shape() for port in model.outputs]
    try:
        model.reshape({port: ov.PartialShape(shape) for port, shape in zip(model.inputs, shapes)})
        outputs = [] if seed is None else reference(model, inputs_of(shapes, types_of(model.inputs), seed, "normal"))
    except Exception as error:
        # An operation without a kernel says nothing against the shapes.
        return "Evaluation failed on" in str(error)
    return all(known.compatible(ov.PartialShape(list(output.shape))) for known, output in zip(inferred, outputs))


def compare_at(before, after, shapes, seed, kinds, is_exact):
    try:
        new = fixed(load(after), shapes)
    except Exception as error:
        return "refused", str(error)[:300]
    old = fixed(load(before), shapes)
    raw = CORE.read_model(before)
    types, out_types = types_of(raw.inputs), types_of(raw.outputs)
    if types_of(CORE.read_model(after).outputs) != out_types:
        return "types", f"{out_types} → {types_of(CORE.read_model(after).outputs)}"
    for kind in kinds:
        values = inputs_of(shapes, types, seed, kind)
        # The reference kernel of MVN crashes on an empty tensor, which the plugin computes.
        if any(0 in shape for shape in shapes) and any(node.get_type_name() == "MVN" for node in new.get_ops()):
            continue
        try:
            expected, run = reference(old, values), reference
        except Exception:
            run = plugin
        try:
            if run is reference:
                try:
                    found = reference(new, values)
                except Exception:
                    run = plugin
            if run is plugin:
                # The plugin leaves what a Convolution of an empty tensor gives as it was in memory.
                if kind == "extreme" or set(types) & {"i64", "u64", "f64"} or any(0 in shape for shape in shapes):
                    continue
                try:
                    expected = plugin(old, values)
                except Exception:
                    return None
                found = plugin(new, values)
        except Exception as error:
            return "refused", str(error)[-300:]
        for at, (one, other, type) in enumerate(zip(expected, found, out_types)):
            if not is_exact and one.shape == other.shape and type in build.FLOATS:
                # An intermediate value was not finite.
                other = np.where(np.isnan(one), one, other)
            # Sums of large products cancel. Extreme inputs would hide differences of ordinary values.
            differs = difference(one, other, type, np.inf if kind == "normal" else 1e3)
            if differs and run is plugin and not difference_unfused(old, new, values, at, type):
                continue
            if differs and not devices_differ(old, values, at, one, other, type):
                return kind, f"{run.__name__}, output {at}: {differs}"
    return None


def difference_unfused(before, after, values, at, type):
    """What differs where the plugin fuses no layers: some of its fused kernels are wrong, such as those of bf16 attention."""
    try:
        one, other = (plugin(unfused(model), values)[at] for model in (before, after))
    except Exception:
        return "not computed"
    return difference(one, other, type, np.inf)


def unfused(model):
    """The model with every floating-point layer as an output."""
    model, convert = model.clone(), build.FACTORIES[1].create
    for node in model.get_ordered_ops():
        if node.get_type_name() not in ("Parameter", "Constant", "Result") and node.get_output_size() == 1 and node.get_element_type().is_real():
            model.add_results([ov.op.Result(convert("Convert", [node.output(0)], {"destination_type": "f32"}).output(0))])
    return model


def devices_differ(model, values, at, expected, found, type):
    """True if only NaN differs, and OpenVINO's devices, or orders of operands, differ there before the rewrite too.

    The reference gives 6 for `Minimum(6, NaN)`, and the CPU plugin 0 for `Clamp(NaN) {min=0, max=6}`.
    """
    if type not in build.FLOATS or expected.shape != found.shape:
        return False
    lost = np.isnan(expected.astype(np.float64)) != np.isnan(found.astype(np.float64))
    if not lost.any() or difference(np.where(lost, 0, expected), np.where(lost, 0, found), type):
        return False
    other = exchanged(model)
    for run, of in ((reference, other), (plugin, model), (plugin, other)):
        try:
            if difference(expected[lost], np.asarray(run(of, values)[at])[lost], type):
                return True
        except Exception:
            continue
    return False


def exchanged(model):
    """The model with the operands of each Maximum and Minimum in the other order."""
    other = model.clone()
    for node in other.get_ops():
        if node.get_type_name() in ("Maximum", "Minimum"):
            node.set_arguments([node.input_value(1), node.input_value(0)])
    return other


def isolated(*arguments):
    """`compare` in a process of its own: OpenVINO can crash."""
    return isolated_all([arguments])[0]


def isolated_all(jobs, function=compare):
    """The answers of a function in processes of their own, each of which takes jobs until OpenVINO crashes."""
    answers = []
    while len(answers) < len(jobs):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reader)
                with os.fdopen(writer, "w") as out:
                    for job in jobs[len(answers) :]:
                        signal.alarm(120)
                        out.write(json.dumps(function(*job)) + "\n")
                        out.flush()
            except Exception as error:
                print(f"{job}: {error}", file=sys.stderr)
                os._exit(1)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            answers += [json.loads(line) for line in answer]
        os.waitpid(child, 0)
        if len(answers) < len(jobs) > 1:
            # An earlier job may have damaged the memory of the process.
            answers += isolated_all([jobs[len(answers)]], function)
        elif len(answers) < len(jobs):
            # A model on which OpenVINO crashes before it is changed says nothing.
            before, after, *others = jobs[len(answers)]
            crashes = before == after or isolated_all([(before, before, *others)], function)[0]
            answers.append(None if crashes and before != after else ["crash", "OpenVINO crashes"])
    return answers


def rewrite(program, options, source, target):
    target.mkdir(parents=True)
    report = target.with_suffix(".json")
    run = subprocess.run([program, "rewrite", str(source), "-o", f"{target}/", "--report", str(report), "-j", "1", *options], capture_output=True, text=True)
    documents = json.loads(report.read_text()) if report.exists() else []
    documents = documents if isinstance(documents, list) else [documents]
    return {Path(document["file"]).stem: document for document in documents if "file" in document and "applied" in document}, run


def same_file(one, other):
    """True if two models are equal byte by byte."""
    return all(one.with_suffix(it).read_bytes() == other.with_suffix(it).read_bytes() for it in (".xml", ".bin"))


def work(job):
    program, key, seeds, folder = job
    rule = RULES[key]
    folder = Path(folder)
    name = rule if isinstance(rule, str) else rule.set
    is_exact = name in EXACT and (isinstance(rule, str) or "Reduce" not in rule.text)
    source = folder / "in"
    source.mkdir(parents=True)
    kept = {}
    drawn = [seed * DRAWN + at for seed in seeds for at in range(DRAWN)]
    for seed in drawn:
        random = np.random.default_rng([seed, zlib.crc32(key.encode())])
        for _ in range(30):
            try:
                model, shapes, builder = coded.model(rule, RULES, random) if isinstance(rule, str) else build.model(rule, random)
                ov.save_model(model, str(source / f"{seed}.xml"), compress_to_fp16=False)
            except (build.Lack, IndexError, ZeroDivisionError):
                continue
            except Exception as error:
                if "Check '" not in str(error) and "incompatible" not in str(error):
                    raise
                continue
            kept[str(seed)] = shapes
            break
    statements = folder / "own.rules"
    statements.write_text("" if isinstance(rule, str) else rule.source)
    own = ["--rules", str(statements)] if not isinstance(rule, str) else ["--use", "all" if rule == "mixed" else rule]
    found, counts = [], collections.Counter()
    alone, _ = rewrite(program, own, source, folder / "own")
    # Those that the rule is applied to first, and some others.
    ranked = sorted(kept, key=lambda name: not alone.get(name, {}).get("applied") and int(name) % 7 > 0)
    for name in ranked[len(seeds) :]:
        del kept[name]
        for ending in (".xml", ".bin"):
            (source / f"{name}{ending}").unlink()
    counts["models"] = len(kept)
    every, _ = rewrite(program, ["--use", "all"], source, folder / "all")
    twice, _ = rewrite(program, ["--use", "all"], folder / "all", folder / "twice")
    compared = []
    for name, shapes in kept.items():
        for what, documents in (("own", alone), ("all", every)):
            document = documents.get(name)
            if document is None:
                found.append((what, name, "fails", "the program refuses"))
                continue
            if not document["applied"]:
                continue
            counts[what] += 1
            if what == "all" and name in alone and same_file(folder / "own" / name, folder / "all" / name):
                continue
            kinds = ["normal", "special", *(["extreme"] if is_exact and what == "own" else [])]
            compared.append((what, name, (str(source / f"{name}.xml"), str(folder / what / f"{name}.xml"), shapes, int(name), kinds, is_exact and what == "own")))
        if name in twice and twice[name]["applied"]:
            rules = sorted({site["rule"] for site in twice[name]["applied"]})
            found.append(("twice", name, "twice", ", ".join(rules)))
    answers = isolated_all([arguments for _, _, arguments in compared])
    found += [(what, name, *differs) for (what, name, _), differs in zip(compared, answers) if differs]
    bad = {name for _, name, *_ in found}
    for name in bad:
        for part in ("in", "own", "all", "twice"):
            for ending in (".xml", ".bin"):
                path = folder / part / f"{name}{ending}"
                if path.exists():
                    (folder / "bad").mkdir(exist_ok=True)
                    shutil.copy(path, folder / "bad" / f"{name}.{part}{ending}")
    for part in ("in", "own", "all", "twice"):
        shutil.rmtree(folder / part, ignore_errors=True)
    return key, counts, found


RULES = {}


def prepare(program):
    # Loads the reader of files once, and not in each process.
    CORE.read_model(str(next(Path(__file__).parent.glob("cases/*.xml"))))
    text = subprocess.run([program, "rewrite", "--source"], capture_output=True, text=True, check=True).stdout
    rules, names = patterns.read(text)
    RULES.update({rule.key: rule for rule in rules} | {name: name for name in [*names, "keep-compressed", "mixed"]})


def options():
    """Returns the options that this script and `passes.py` share."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    return parser


def main():
    parser = options()
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    prepare(args.program)
    folder = Path(args.keep or tempfile.mkdtemp(prefix="rules"))
    shutil.rmtree(folder, ignore_errors=True)
    jobs = []
    for key in RULES:
        if args.only in key:
            first = args.seed * 1_000_000
            jobs.append((args.program, key, list(range(first, first + args.each)), str(folder / key)))
    totals, kinds, rare = collections.Counter(), collections.Counter(), []
    with ProcessPoolExecutor(args.jobs, initializer=prepare, initargs=(args.program,)) as pool:
        for (key, counts, found), job in zip(pool.map(guarded, jobs), jobs):
            totals.update(counts)
            print(f"{key}: {counts['models']} models, applied to {counts['own']}", file=sys.stderr, flush=True)
            for what, name, kind, text in found:
                kinds[kind] += 1
                print(f"{key} {name} {what} {kind}: {text}".replace("\n", " ")[:400], flush=True)
            if counts["own"] < min(LEAST, args.each):
                rare.append((key, counts["own"], counts["models"]))
    for key, applied, models in rare:
        print(f"rare: {key} applied to {applied} of {models}")
    print(f"{totals['models']} models, the rule applied to {totals['own']}, rewritten by all {totals['all']}; {dict(kinds)}; rules applied to fewer than {LEAST}: {len(rare)}")
    if not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(bool(kinds or rare))


def guarded(job):
    try:
        return work(job)
    except Exception as error:
        return job[1], collections.Counter(), [("build", "-", "script", f"{type(error).__name__}: {error}")]


if __name__ == "__main__":
    main()
