#!/usr/bin/env python3
"""Gives the tied inputs of every operation types that differ, has typelift repair that, and asks the installed OpenVINO.

    python pairs.py ../opzoo/cases.jsonl.gz --ties ../ties/ties.csv --typelift target/release/typelift [--cases 2]
    python pairs.py ../bodies/cases.jsonl.gz --typelift target/release/typelift [--cases 2]

With the table of ties: takes accepted cases of each operation, and each pair of types for each group of tied inputs, which
are shared out between the two; an input that takes floating point only gets each integer type. Without it: changes the types
of a few Parameters and constants of each case at random, in bodies too. Variants that OpenVINO reads are dropped. Each of the
others goes through `typelift convert` under several rules:

- what is written must be read by OpenVINO;
- what is refused, although OpenVINO would read it with all inputs of the group of one type, is printed with our reason.

Prints a line for each that is not as it should be, each reason with an example, and the counts.
"""
import argparse, base64, collections, csv, gzip, itertools, json, multiprocessing, os, pathlib, random, re, subprocess, tempfile
import xml.etree.ElementTree as ET

TYPES = "boolean u8 i8 i32 i64 u64 f16 bf16 f32 f64".split()
DTYPES = dict(boolean="?", u8="B", i8="b", i32="<i4", i64="<i8", u64="<u8", f16="<f2", f32="<f4", f64="<f8")
RULES = {"openvino": ["--align", "openvino", "--promote-unsafe"], "pytorch": ["--align", "pytorch"]}
# Tied in some modes only, so that the table does not have them.
CONDITIONAL = {"Pad": [[0, 3]]}


class Case:
    """A model as text and weights, whose sources can be given other types."""

    def __init__(self, case):
        self.net = ET.fromstring(case["xml"])
        self.weights = bytearray(base64.b64decode(case["bin"]))

    def layers(self):
        return [layer for layer in self.net.iter("layer") if layer.get("type") in ("Parameter", "Const")]

    def element_type(self, layer):
        return layer.find("data").get("element_type")

    def retype(self, layer, ty):
        """Gives a Parameter or a constant another type; whether that can be done."""
        import numpy as np
        data = layer.find("data")
        if layer.get("type") == "Const":
            old = data.get("element_type")
            if old not in DTYPES or ty not in DTYPES:
                return False
            offset, size = int(data.get("offset")), int(data.get("size"))
            with np.errstate(all="ignore"):
                values = np.frombuffer(bytes(self.weights[offset:offset + size]), DTYPES[old]).astype(DTYPES[ty])
            self.weights += b"\0" * (-len(self.weights) % 64)
            data.set("offset", str(len(self.weights)))
            data.set("size", str(values.nbytes))
            self.weights += values.tobytes()
        data.set("element_type", ty)
        for port in layer.iter("port"):
            port.set("precision", "UNSPECIFIED")
        return True

    def retype_input(self, at, ty):
        """Gives an input of the layer `op` another type: at its source where nothing else takes that, else with a Convert."""
        layers, edges = self.net.find("layers"), self.net.find("edges")
        op = next(layer for layer in layers if layer.get("name") == "op")
        ports = [port.get("id") for port in op.find("input")]
        edge = next(e for e in edges if e.get("to-layer") == op.get("id") and e.get("to-port") == ports[at])
        source = next(layer for layer in layers if layer.get("id") == edge.get("from-layer"))
        uses = [e for e in edges if e.get("from-layer") == source.get("id")]
        if len(uses) == 1 and source in self.layers() and self.retype(source, ty):
            return
        new = str(1 + max(int(layer.get("id")) for layer in layers))
        layers.append(ET.fromstring(
            f'<layer id="{new}" name="c{new}" type="Convert" version="opset1"><data destination_type="{ty}"/><input>'
            '<port id="0"/></input><output><port id="1" precision="UNSPECIFIED"/></output></layer>'))
        ET.SubElement(edges, "edge", {"from-layer": source.get("id"), "from-port": edge.get("from-port"), "to-layer": new, "to-port": "0"})
        edge.set("from-layer", new)
        edge.set("from-port", "1")

    def text(self):
        return ET.tostring(self.net, encoding="unicode")


class Judge:
    """OpenVINO and typelift."""

    def __init__(self, typelift, folder):
        import openvino as ov
        self.core, self.ov, self.typelift, self.folder = ov.Core(), ov, typelift, folder

    def error(self, text, weights):
        """Why OpenVINO does not read a model."""
        import numpy as np
        try:
            self.core.read_model(text.encode(), self.ov.Tensor(np.frombuffer(bytes(weights) or b"\0", dtype=np.uint8).copy()))
        except Exception as error:
            return str(error).replace("\n", " ")[-250:] or "refused"

    def repair(self, case, rules):
        """The verdict on one repair, with the message that is to be read."""
        source, target = self.folder / "in.xml", self.folder / "out.xml"
        for file in (target, target.with_suffix(".bin")):
            file.unlink(missing_ok=True)
        source.write_text(case.text())
        source.with_suffix(".bin").write_bytes(case.weights)
        done = subprocess.run([self.typelift, "convert", str(source), "-o", str(target), *RULES[rules]], capture_output=True, text=True)
        if done.returncode == 1:
            return "refused", next((line for line in done.stderr.splitlines() if line.startswith("error")), done.stderr)
        if done.returncode:
            return "failed", done.stderr
        weights = target.with_suffix(".bin")
        error = self.error(target.read_text(), weights.read_bytes() if weights.exists() else b"")
        return ("unreadable", error) if error else ("repaired", "")


def groups(ties, op, rev):
    """The groups of inputs that must agree, and the inputs by themselves that take floating point only."""
    tied = collections.defaultdict(list)
    floats = []
    for row in ties:
        if (row["operation"], row["revision"]) == (op, str(rev)):
            at, takes = int(row["input"]), row["takes"].split()
            tied[int(row["tied_with"])].append(at)
            if takes and all(re.match(r"b?f\d|nf4", ty) for ty in takes):
                floats.append([at])
    return [group for group in tied.values() if len(group) > 1] + CONDITIONAL.get(op, []), floats


def pair_variants(cases, ties, limit):
    """Variants with two types among tied inputs: the case, what was changed, and the inputs of the group."""
    op, rev = cases[0]["op"], cases[0]["rev"]
    tied, floats = groups(ties, op, rev)
    rng = random.Random(f"{op} {rev}")
    rng.shuffle(cases)
    for group in tied + floats:
        used = 0
        for case in cases:
            # Unknown types are not guessed.
            if 'element_type="dynamic"' in case["xml"]:
                continue
            op_layer = next(layer for layer in ET.fromstring(case["xml"]).find("layers") if layer.get("name") == "op")
            there = [at for at in group if op_layer.find("input") is not None and at < len(op_layer.find("input"))]
            if not there or len(there) == 1 and group not in floats:
                continue
            pairs = itertools.combinations(TYPES, 2) if len(there) > 1 else [(ty, ty) for ty in TYPES]
            for pair in pairs:
                a, b = rng.sample(pair, 2)
                first = set(rng.sample(there, rng.randint(1, max(1, len(there) - 1))))
                yield case, {at: a if at in first else b for at in there}, there
            used += 1
            if used == limit:
                break


def examine(cases, options):
    ties = options.ties and list(csv.DictReader(options.ties.open()))
    found = []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        judge = Judge(options.typelift, pathlib.Path(folder))
        cases = [case for case in cases if judge.error(case["xml"], base64.b64decode(case["bin"])) is None]
        changed = random_variants(cases, options.cases) if ties is None else pair_variants(cases, ties, options.cases)
        for case, changes, inputs in changed:
            variant = Case(case)
            retype(variant, changes, ties)
            if judge.error(variant.text(), variant.weights) is None:
                continue
            for rules in RULES:
                verdict, message = judge.repair(variant, rules)
                shared = ""
                if verdict == "refused" and ties is not None:
                    shared = " ".join(ty for ty in TYPES if is_read(judge, case, dict.fromkeys(inputs, ty)))
                    verdict = "refused, OpenVINO too" if not shared else verdict
                name = f'{case.get("op", "bodies")}-{case.get("rev", "")}'
                found.append((rules, verdict, name, changes, message, shared, variant.text() if options.show else ""))
    return found


def retype(variant, changes, ties):
    for at, ty in changes.items():
        if ties is None:
            variant.retype(variant.layers()[at], ty)
        else:
            variant.retype_input(at, ty)


def is_read(judge, case, changes):
    variant = Case(case)
    retype(variant, changes, True)
    return judge.error(variant.text(), variant.weights) is None


def random_variants(cases, limit):
    """Variants with a few Parameters and constants of other types, by their positions."""
    for number, case in enumerate(cases):
        rng = random.Random(f"random {number} {case['xml'][:200]}")
        original = Case(case)
        there = [at for at, layer in enumerate(original.layers()) if original.element_type(layer) in TYPES]
        for _ in range(limit if there else 0):
            chosen = rng.sample(there, min(len(there), rng.randint(1, 3)))
            yield case, {at: rng.choice(TYPES) for at in chosen}, []


def work(cases, options, pipe):
    pipe.send(examine(cases, options))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("file", type=pathlib.Path)
    arguments.add_argument("--ties", type=pathlib.Path)
    arguments.add_argument("--typelift", default="typelift")
    arguments.add_argument("--cases", type=int, default=2, help="of each operation, or variants of each case")
    arguments.add_argument("--only", default="", help="these operations, comma-separated")
    arguments.add_argument("--show", action="store_true", help="the models too")
    options = arguments.parse_args()
    batches = collections.defaultdict(list)
    with gzip.open(options.file, "rt") as lines:
        for number, line in enumerate(lines):
            case = json.loads(line)
            if case.get("accept", True) and (options.ties is None or case.get("family") is None):
                batches[(case["op"], case["rev"]) if options.ties else number // 50].append(case)
    found = []
    for key, cases in sorted(batches.items()):
        if options.only and key[0] not in options.only.split(","):
            continue
        # A process of its own, because some inputs crash OpenVINO.
        here, there = multiprocessing.Pipe(False)
        process = multiprocessing.Process(target=work, args=(cases, options, there))
        process.start()
        there.close()
        try:
            found += here.recv()
        except EOFError:
            print(f"{key} crashes OpenVINO")
        process.join()
    reasons = collections.defaultdict(list)
    for rules, verdict, name, changes, message, shared, text in found:
        if verdict in ("unreadable", "failed"):
            print(f"{rules} {verdict}: {name} {changes}: {message}", *([text] if text else []), sep="\n")
        elif verdict == "refused":
            reasons[rules, re.sub(r"\b(boolean|b?f\d+|[iu]\d+)\b", "T", message)].append((name, changes, message, shared, text))
    for (rules, _), examples in sorted(reasons.items(), key=lambda item: -len(item[1])):
        name, changes, message, shared, text = examples[0]
        print(f"{rules} refused {len(examples)} ({', '.join(sorted({example[0] for example in examples}))}), such as {name} {changes}: {message}"
              + (f"; OpenVINO would read {shared}" if shared else ""), *([text] if text else []), sep="\n")
    for rules in RULES:
        counts = collections.Counter(verdict for r, verdict, *_ in found if r == rules)
        print(f"{rules}: {sum(counts.values())} broken; " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))


main()
