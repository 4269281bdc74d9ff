#!/usr/bin/env python3
"""Asks the installed OpenVINO which inputs of each operation must have one element type, and which types each input takes.

    python take.py ../opzoo/cases.jsonl.gz > ties.csv

Takes the accepted cases of the operation zoo, puts Converts in front of the inputs of the operation under test and lets
OpenVINO validate it again. Two inputs are tied if no accepted experiment had them differ although they changed. One line
an input: operation, revision, input, the first input of those it is tied with (itself if none), and the types that its
group takes. Seeded: the answer depends on the cases and OpenVINO's version only.
"""
import gzip, itertools, json, random, subprocess, sys

TYPES = "boolean bf16 f16 f32 f64 i4 i8 i16 i32 i64 u1 u2 u3 u4 u6 u8 u16 u32 u64 nf4 f8e4m3 f8e5m2 string f4e2m1 f8e8m0".split()
FLOATS = ["f16", "f32", "f64", "bf16"]
INTEGERS = ["i64", "i32", "u8", "i8", "u64"]


class Case:
    """A graph whose operation under test can be given inputs of other types."""

    def __init__(self, core, ov, case):
        import base64
        import numpy as np
        data = np.frombuffer(base64.b64decode(case["bin"]) or b"\0", dtype=np.uint8).copy()
        self.ov = ov
        self.model = core.read_model(case["xml"].encode(), ov.Tensor(data))
        self.op = next(node for node in self.model.get_ops() if node.get_friendly_name() == "op")
        self.sources = [port.get_source_output() for port in self.op.inputs()]
        self.types = [source.get_element_type().to_string() for source in self.sources]
        self.converts = {}

    def accepts(self, changes):
        """Returns whether OpenVINO accepts the operation with inputs `{position: type}` changed."""
        from openvino import opset13
        for at, ty in changes.items():
            if (at, ty) not in self.converts:
                try:
                    self.converts[at, ty] = opset13.convert(self.sources[at], getattr(self.ov.Type, ty))
                except Exception:
                    return False
            self.op.input(at).replace_source_output(self.converts[at, ty].output(0))
        try:
            self.op.constructor_validate_and_infer_types()
            return True
        except Exception:
            return False
        finally:
            for at in changes:
                self.op.input(at).replace_source_output(self.sources[at])
            try:
                self.op.constructor_validate_and_infer_types()
            except Exception:
                pass


def kind(ty):
    return FLOATS if ty in FLOATS else INTEGERS if ty[0] in "iu" and ty[1:].isdigit() else None


def examine(cases):
    import openvino as ov
    core = ov.Core()
    rng = random.Random(7)
    graphs = []
    for case in cases:
        try:
            graphs.append(Case(core, ov, case))
        except Exception:
            pass
    graphs = [graph for graph in graphs if graph.types and "dynamic" not in graph.types]
    graphs.sort(key=lambda graph: -len(graph.types))
    graphs = graphs[:10]
    count = max((len(graph.types) for graph in graphs), default=0)
    count = min(count, 16)
    seen = []
    for graph in graphs:
        inputs = range(min(len(graph.types), count))
        seen.append({at: graph.types[at] for at in inputs})
        sets = [[at] for at in inputs] + [[b for b in inputs if b != a] for a in inputs]
        sets += [list(pair) for pair in itertools.combinations(inputs, 2)]
        for family in (FLOATS, INTEGERS):
            whole = [at for at in inputs if kind(graph.types[at]) is family]
            sets += [whole] + [[b for b in whole if b != a] for a in whole]
        for chosen in [s for s in sets if s] + [rng.sample(list(inputs), rng.randint(1, len(inputs))) for _ in range(30)]:
            for family in (FLOATS, INTEGERS):
                changes = {at: ty for at in chosen for ty in [rng.choice(family)]}
                one = rng.choice(family)
                for changes in (changes, {at: one for at in chosen}):
                    if graph.accepts(changes):
                        seen.append({at: changes.get(at, graph.types[at]) for at in inputs})
    varied = {at for at in range(count) if len({types[at] for types in seen if at in types}) > 1}
    tied = lambda a, b: a in varied and b in varied and all(t[a] == t[b] for t in seen if a in t and b in t) \
        and any(a in t and b in t for t in seen)
    group = {at: next((b for b in range(at) if tied(b, at)), at) for at in range(count)}
    for at in range(count):
        takes = []
        for ty in TYPES:
            for graph in graphs:
                members = [b for b in range(min(count, len(graph.types))) if group[b] == group[at]]
                # The inputs of OpenVINO's own type of case are accepted anyway.
                if at < len(graph.types) and graph.accepts({b: ty for b in members}):
                    takes.append(ty)
                    break
        yield at, group[at], takes


def main():
    if sys.argv[1] == "--one":
        cases = [json.loads(line) for line in sys.stdin]
        for at, group, takes in examine(cases):
            print(f'{cases[0]["op"]},{cases[0]["rev"]},{at},{group},{" ".join(takes)}')
        return
    by_operation = {}
    with gzip.open(sys.argv[1], "rt") as lines:
        for line in lines:
            case = json.loads(line)
            if case["accept"] and case.get("family") is None:
                by_operation.setdefault((case["op"], case["rev"]), []).append(line)
    print("operation,revision,input,tied_with,takes")
    sys.stdout.flush()
    for (op, rev), lines in sorted(by_operation.items()):
        # A process of its own, because some inputs crash OpenVINO.
        done = subprocess.run([sys.executable, __file__, "--one"], input="".join(lines), text=True, capture_output=True)
        sys.stdout.write(done.stdout)
        sys.stdout.flush()
        if done.returncode:
            print(f"{op}-{rev} ended with {done.returncode}: {done.stderr[-300:]}", file=sys.stderr)


main()
