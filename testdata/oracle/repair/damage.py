#!/usr/bin/env python3
"""damage.py TOOL [MODELS ...] [--count N] [--seed N] [--jobs N] [--kinds A,B] [--habits] [--keep FOLDER] [--verbose]

Damages models by a seeded rule (`kinds.py`, `editing.py`, and `hostile.py` with `--kinds all`), lets `TOOL check --fix` fix them, and compares the result with the
original. A third of the models are those of the folders (this repository's, if none is given). The others are written by
`natural.py`, `operations.py` and `../random/graphs.py`, or were recorded. It needs `openvino`.

A damage counts if OpenVINO refuses the file or reads another graph from it. The verdicts:

  restored     OpenVINO reads the graph of the original from what was written
  equivalent   it reads another graph that computes the same, by Model.evaluate
  partly       every line that was changed is one of the original, and damage is left
  none         nothing was written
  wrong        something else was written; `status 0` counts those where the program called the result free of errors

`--keep` stores each wrong file as NAME.original.xml, NAME.damaged.xml and NAME.fixed.xml.
"""
import argparse, collections, concurrent.futures, copy, hashlib, json, pathlib, random, re, shutil, subprocess, sys, tempfile
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "random")]
LARGEST = 300_000

SERVER = r"""
import hashlib, os, sys, tempfile
import numpy as np, openvino as ov
core = ov.Core()

def graph(path):
    model = core.read_model(path)
    with tempfile.TemporaryDirectory() as room:
        out = os.path.join(room, "out.xml")
        ov.serialize(model, out)
        digest = hashlib.sha256(open(out, "rb").read() + open(out[:-3] + "bin", "rb").read())
    return digest.hexdigest()

def inputs(model, length):
    rng = np.random.default_rng(7)
    made = []
    for port in model.inputs:
        dims = [d.get_length() if d.is_static else max(length, d.get_min_length()) for d in port.get_partial_shape()]
        ty = port.get_element_type()
        dtype = ty.to_dtype()
        value = rng.standard_normal(dims) * 3 if dtype.kind == "f" else rng.integers(0, 3, dims)
        made.append(ov.Tensor(value.astype(dtype)))
    return made

def values(path, length):
    model = core.read_model(path)
    given = inputs(model, length)
    try:
        outputs = [ov.Tensor(port.get_element_type(), ov.Shape([0])) for port in model.outputs]
        if not model.evaluate(outputs, given):
            raise RuntimeError("not evaluated")
        return [np.array(it.data) for it in outputs]
    except Exception:
        core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        request = core.compile_model(model, "CPU").create_infer_request()
        result = request.infer(dict(enumerate(given)))
        return [np.array(result[port]) for port in result]

def are_same(one, other):
    for length in (2, 4, 1, 8):
        try:
            ours, theirs = values(one, length), values(other, length)
        except Exception:
            continue
        return len(ours) == len(theirs) and all(a.shape == b.shape and np.allclose(a.astype("f8"), b.astype("f8"), rtol=1e-5, atol=1e-6, equal_nan=True) for a, b in zip(ours, theirs))
    return False

def rewrite(path):
    ov.serialize(core.read_model(path), path + ".xml")
    for end in ("xml", "bin"):
        os.replace(path + "." + end, path[:-3] + end)
    return "done"

for line in sys.stdin:
    word, *paths = line.rstrip("\n").split("\t")
    try:
        answer = "OK " + str({"graph": graph, "same": are_same, "rewrite": rewrite}[word](*paths))
    except Exception as error:
        answer = "ERR " + " ".join(str(error).split())[-200:]
    print(answer, flush=True)
"""


class OpenVino:
    """The installed OpenVINO in a process of its own, because some files crash or hang it."""

    process = None

    def __call__(self, *words):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        timer = concurrent.futures.ThreadPoolExecutor(1)
        try:
            self.process.stdin.write("\t".join(map(str, words)) + "\n")
            self.process.stdin.flush()
            return timer.submit(self.process.stdout.readline).result(60).strip() or "CRASH"
        except (BrokenPipeError, TimeoutError, concurrent.futures.TimeoutError):
            self.process.kill()
            return "CRASH"
        finally:
            timer.shutdown(wait=False)


def lines(text):
    """The lines of a file that no parser reads."""
    return collections.Counter(line.strip() for line in text.splitlines())


def plain(text):
    """The elements of a file with numbers in one spelling, for comparison; None if it is not XML."""
    def number(match):
        try:
            return f"{float(match[0]):g}"
        except ValueError:
            return match[0]
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError):
        return None
    rows = []
    def walk(element, path, name):
        # A row for each attribute, so that half of an exchange is a step. Ids can be what is fixed.
        own = f"{path}/{element.tag}#{element.get('name') or name}"
        text = (element.text or "").strip()
        spelt = ((key, re.sub(r", +", ",", re.sub(r"-?\d+\.\d+(e-?\d+)?", number, value))) for key, value in element.attrib.items())
        if element.tag == "edge":
            rows.append(f"{path}/edge {sorted(element.attrib.items())}")
        else:
            rows.extend([f"{own} {text}", *(f"{own} {key}={value}" for key, value in spelt)])
        for place, child in enumerate(element):
            walk(child, own if element.tag in ("layer", "port", "input", "output") else path, place if element.tag in ("input", "output") else "")
    walk(root, "", "")
    return collections.Counter(rows)


def is_step(texts):
    """True if everything new in the last text is in the original, and everything removed is not."""
    rows = [plain(text) for text in texts]
    original, damaged, fixed = rows if None not in rows else map(lines, texts)
    return not (fixed - damaged) - (original - damaged) and not (damaged - fixed) - (damaged - original)


def read(path):
    return path.read_bytes().decode(errors="replace")


class Worker:
    def __init__(self, options, models):
        self.options, self.models, self.openvino = options, models, OpenVino()

    def model(self, rng, room):
        """A random model as a tree and weights."""
        import graphs, natural, operations
        path = room / "model.xml"
        draw = rng.random()
        if draw < 0.35 and self.models:
            path = rng.choice(self.models)
        elif draw < 0.5:
            natural.make(self.options.seed, rng.randrange(1 << 30), path)
        elif draw < 0.7:
            operations.make(self.options.seed, rng.randrange(1 << 30), path)
        elif draw < 0.85:
            text, weights = graphs.make(self.options.seed, 8 * rng.randrange(1 << 27))
            path.write_text(text)
            path.with_suffix(".bin").write_bytes(weights)
        else:
            operations.recorded(rng, path)
        # Half of those without dims get the dims of every port, as OpenVINO writes them.
        if draw >= 0.7 and rng.random() < 0.5:
            self.openvino("rewrite", path)
        weights = path.with_suffix(".bin").read_bytes() if path.with_suffix(".bin").exists() else b""
        root = ET.fromstring(path.read_text())
        if self.options.habits:
            operations.habits(root, rng)
        return path.stem, root, bytearray(weights)

    def run(self, number):
        import kinds
        rng = random.Random(f"{self.options.seed}/{number}")
        wanted = kinds.SETS.get(self.options.kinds) or (self.options.kinds.split(",") if self.options.kinds else kinds.KINDS)
        with tempfile.TemporaryDirectory() as room:
            room = pathlib.Path(room)
            for _ in range(50):
                name, root, weights = self.model(rng, room)
                ET.indent(root)
                others = [rng.choice(self.models).with_suffix(".bin").read_bytes() if self.models else b"other" * 100]
                original = room / "original.xml"
                kinds.write(kinds.Damage(copy.deepcopy(root), weights, others, rng), original)
                meant = self.openvino("graph", original)
                # The order of names and bodies in what OpenVINO writes may differ each time.
                if not meant.startswith("OK") or self.openvino("graph", original) != meant:
                    continue
                kind = wanted[number % len(wanted)]
                for _ in range(4):
                    damage = kinds.Damage(copy.deepcopy(root), bytearray(weights), others, rng)
                    if not getattr(damage, kind)():
                        continue
                    damaged = room / "damaged.xml"
                    kinds.write(damage, damaged)
                    if self.openvino("graph", damaged) != meant:
                        return self.judge(number, name, kind, room, meant)
        return None

    def judge(self, number, name, kind, room, meant):
        original, damaged, fixed = (room / f"{it}.xml" for it in ("original", "damaged", "fixed"))
        done = subprocess.run([self.options.tool, "check", "--fix", damaged, "-o", fixed, "--format", "json"], capture_output=True, text=True, errors="replace")
        row = dict(number=number, model=name, kind=kind, status=done.returncode, error=done.stderr[-300:] if done.returncode not in (0, 1) else "")
        if fixed.exists() and not fixed.with_suffix(".bin").exists():
            shutil.copy(damaged.with_suffix(".bin"), fixed.with_suffix(".bin"))
        row["verdict"] = self.verdict(original, damaged, fixed, meant)
        if row["verdict"] == "wrong":
            row["diff"] = self.difference(damaged, fixed)
            if self.options.keep:
                self.store(f"{number:05}_{kind}", original, damaged, fixed)
        return row

    def verdict(self, original, damaged, fixed, meant):
        if not fixed.exists() or fixed.read_bytes() == damaged.read_bytes() and fixed.with_suffix(".bin").read_bytes() == damaged.with_suffix(".bin").read_bytes():
            return "none"
        if self.openvino("graph", fixed) == meant:
            return "restored"
        if is_step([read(it) for it in (original, damaged, fixed)]):
            return "partly"
        return "equivalent" if self.openvino("same", original, fixed) == "OK True" else "wrong"

    def difference(self, damaged, fixed):
        before, after = (collections.Counter(it.strip() for it in read(path).splitlines()) for path in (damaged, fixed))
        return " ".join(["-" + it for it in before - after] + ["+" + it for it in after - before])[:600]

    def store(self, name, *paths):
        self.options.keep.mkdir(parents=True, exist_ok=True)
        for path in paths:
            for end in (".xml", ".bin"):
                shutil.copy(path.with_suffix(end), self.options.keep / f"{name}.{path.stem}{end}")


WORKER = None


def start(options, models):
    global WORKER
    WORKER = Worker(options, models)


def work(number):
    try:
        return WORKER.run(number)
    except Exception as error:
        return dict(number=number, kind="?", verdict="failed", status=None, error=repr(error), model="?")


def table(rows):
    words = ["restored", "equivalent", "partly", "none", "wrong"]
    print(f"| kind | files | {' | '.join(words)} | wrong, status 0 |")
    print("|---|" + "---:|" * (len(words) + 2))
    kinds = sorted({row["kind"] for row in rows})
    for kind in [*kinds, "all"]:
        some = [row for row in rows if kind in (row["kind"], "all")]
        count = collections.Counter(row["verdict"] for row in some)
        quiet = sum(row["verdict"] == "wrong" and row["status"] == 0 for row in some)
        print(f"| {kind} | {len(some)} | {' | '.join(str(count[it]) for it in words)} | {quiet} |")
    share = sum(row["verdict"] in ("restored", "equivalent") for row in rows) / max(1, len(rows))
    print(f"restored or equivalent: {100 * share:.1f} %")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("tool", type=pathlib.Path)
    arguments.add_argument("models", type=pathlib.Path, nargs="*", default=[HERE.parent.parent / "models"])
    arguments.add_argument("--count", type=int, default=300)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--kinds", default="", help="names with commas, `hostile`, or `all`")
    arguments.add_argument("--habits", action="store_true", help="give models the habits of other writers")
    arguments.add_argument("--keep", type=pathlib.Path)
    arguments.add_argument("--verbose", action="store_true")
    options = arguments.parse_args()
    options.tool = options.tool.resolve()
    paths = [path for folder in options.models for path in sorted(folder.glob("*.xml"))]
    models = [path for path in paths if path.name.count(".") == 1 and path.stat().st_size < LARGEST and path.with_suffix(".bin").exists()]
    rows = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs, initializer=start, initargs=(options, models)) as pool:
        done = (pool.submit(work, number) for number in range(options.first, options.first + options.count))
        for row in map(concurrent.futures.Future.result, concurrent.futures.as_completed(list(done))):
            if row is None:
                continue
            if len(rows) % 100 == 99:
                print(f"{len(rows) + 1} files", file=sys.stderr, flush=True)
            rows.append(row)
            if row["verdict"] in ("wrong", "failed") or row["error"] or options.verbose:
                print(json.dumps(row), flush=True)
    table(rows)


if __name__ == "__main__":
    main()
