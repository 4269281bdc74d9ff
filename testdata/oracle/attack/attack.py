"""Attacks the program with hostile models: `attack.py TYPELIFT [--shape WORDS] [--command WORD] [--sizes 4000 16000]`.

Every shape of `shapes.py` goes through every command at two sizes. For each pair of runs this checks:

- the exit status is 0, 1 or 2, and no run takes longer than a minute;
- time and memory for an element are at most 1.3 times those at the smaller size;
- memory is at most 20 times the size of the files.

Time is that of the processor, and memory the peak of the process, both without those of the smallest model. A pair that misses a limit
is measured again up to three times, and the least counts. With --count, instructions decide on a time that still misses, for a
machine whose time depends on what else it does. Counting takes 50 times as long.
Times below 30 ms and memory below 2 MB are not compared.
Prints a line for each miss, and a summary. The exit status is 1 if there are misses. Needs GNU time and no package.
"""

import argparse
import functools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

RATIO, TIMES, LEAST_TIME, LEAST_MEMORY, LONGEST = 1.3, 20, 0.03, 2 << 20, 60
RULES, TIME, VALGRIND = "rename * y_*", "/usr/bin/time", shutil.which("valgrind")
COUNT = re.compile(rb"I\s+refs:\s+([0-9,]+)")
COMMANDS = {
    "overview": ["m.xml"],
    "check": ["check", "m.xml"],
    "check-all": ["check", "--all", "--format", "json", "m.xml"],
    "check-sarif": ["check", "--format", "sarif", "m.xml"],
    "check-github": ["check", "--format", "github", "m.xml"],
    "check-target": ["check", "--target", "2022.1", "m.xml"],
    "check-for": ["check", "--for", "f16", "--all", "m.xml"],
    "fix": ["check", "--fix", "m.xml", "-o", "o.xml"],
    "fix-diff": ["check", "--fix", "--diff", "m.xml"],
    "convert": ["convert", "m.xml", "-o", "o.xml"],
    "canonical": ["convert", "--canonical", "m.xml", "-o", "o.xml", "--report", "r.json"],
    "align": ["convert", "--align", "openvino", "--promote-unsafe", "m.xml", "-o", "o.xml"],
    "target": ["convert", "--target", "2024.6", "m.xml", "-o", "o.xml"],
    "compress": ["convert", "--compress", "f16", "--keep", "auto", "--mark-keeps", "m.xml", "-o", "o.xml"],
    "decompress": ["convert", "--decompress", "m.xml", "-o", "o.xml"],
    "audit": ["convert", "--compress", "f16", "--audit", "m.xml"],
    "types": ["convert", "--types", "f32=f16,i64=i32", "--keep-io", "m.xml", "-o", "o.xml"],
    "types-wide": ["convert", "--types", "f32=f64", "m.xml", "-o", "o.xml"],
    "quantize": ["convert", "--quantize", "int8_sym", "m.xml", "-o", "o.xml"],
    "dequantize": ["convert", "--dequantize", "m.xml", "-o", "o.xml"],
    "strip": ["convert", "--strip-weights", "zero", "m.xml", "-o", "o.xml"],
    "compact": ["convert", "--weights", "compact", "m.xml", "-o", "o.xml"],
    "dry-run": ["convert", "--dry-run", "m.xml"],
    "rewrite": ["rewrite", "--use", "all", "m.xml", "-o", "o.xml"],
    "rewrite-explain": ["rewrite", "--use", "all", "--explain", "2", "--dry-run", "m.xml"],
    "constant-ifs": ["rewrite", "--use", "constant-ifs", "m.xml", "-o", "o.xml"],
    "statement": ["rewrite", "-e", "ReLU(x) => Tanh(x)", "m.xml", "-o", "o.xml"],
    "two-roots": ["rewrite", "-e", "g = MatMul(x, a: const), u = MatMul(x, b: const) => (g, u) = Split(MatMul(x, Concat(a, b) {axis=0}), 1) {num_splits=2}",
                  "m.xml", "-o", "o.xml"],
    "rename": ["rewrite", "-e", RULES, "m.xml", "-o", "o.xml"],
    "infer": ["infer", "m.xml", "-o", "o.xml"],
    "infer-json": ["infer", "--format", "json", "m.xml"],
    "show": ["show", "m.xml"],
    "show-json": ["show", "--format", "json", "m.xml"],
    "show-dot": ["show", "--fold-constants", "--format", "dot", "m.xml"],
    "show-around": ["show", "--around", "n2", "--depth", "3", "m.xml"],
    "stats": ["stats", "m.xml"],
    "stats-json": ["stats", "--format", "json", "m.xml"],
    "diff": ["diff", "m.xml", "m.xml"],
    "diff-changed": ["diff", "--all", "m.xml", "changed.xml"],
    "why": ["why", "--all", "m.xml", "2"],
    "why-path": ["why", "--path", "m.xml", "2"],
    "view": ["view", "m.xml", "-o", "p.html"],
}


def measured(program, arguments, folder):
    """Runs the program. Returns its exit status, its time in seconds and its peak memory in bytes.

    GNU time starts it: the peak that the system keeps for a child of Python includes that of Python.
    A status above 128 stands for the signal that ended the program.
    """
    process = os.fork()
    if process == 0:
        try:
            os.chdir(folder)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(null, descriptor)
            resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
            os.execv(TIME, [TIME, "-q", "-f", "%M", "-o", "memory.txt", program, *arguments])
        finally:
            os._exit(127)
    _, status, used = os.wait4(process, 0)
    memory = int((Path(folder) / "memory.txt").read_text().split()[-1])
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, memory * 1024


def counted(program, arguments, folder):
    """Returns the number of instructions of a run, by cachegrind."""
    command = [VALGRIND, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", program, *arguments]
    run = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
    return int(COUNT.search(run.stderr)[1].replace(b",", b""))


class Model:
    """A hostile model of one size in its own folder. It is made in a process of its own, so that this one stays small."""

    def __init__(self, shape, size):
        self.folder, self.size = tempfile.TemporaryDirectory(), size
        code = ("import sys, pathlib, shapes; text, weights = shapes.SHAPES[sys.argv[1]](int(sys.argv[2])); p = pathlib.Path(sys.argv[3])\n"
                "for name, text in ('m', text), ('changed', text.replace('ReLU', 'Tanh')):\n"
                "    (p / (name + '.xml')).write_text(text); (p / (name + '.bin')).write_bytes(weights)\n")
        subprocess.run([sys.executable, "-c", code, shape, str(size), self.folder.name], cwd=Path(__file__).parent, check=True)
        self.bytes = sum((Path(self.folder.name) / name).stat().st_size for name in ("m.xml", "m.bin"))


class Pair:
    """Cost of a command at two sizes of a shape."""

    def __init__(self, program, command, models, base):
        self.program, self.command, self.models, self.base = program, command, models, base
        self.costs = [[LONGEST, 1 << 60] for _ in models]
        self.status = [0 for _ in models]
        self.grown, self.work = models[1].size / models[0].size, None

    def run(self):
        for at, model in enumerate(self.models):
            self.status[at], *cost = measured(self.program, COMMANDS[self.command], model.folder.name)
            net = (max(value - least, 0) for value, least in zip(cost, self.base))
            self.costs[at] = [min(pair) for pair in zip(self.costs[at], net)]

    def is_slow(self):
        """True if the time of an element grows with the size."""
        (small, _), (large, _) = self.costs
        return large > LEAST_TIME and large > RATIO * self.grown * small

    def count(self, least):
        """Counts the instructions for an element: time depends on caches and on what else the machine does."""
        small, large = (counted(self.program, COMMANDS[self.command], model.folder.name) - least for model in self.models)
        self.work = large / self.grown / max(small, 1)

    def misses(self):
        """Returns the sentences about limits that do not hold."""
        (small, low), (large, high) = self.costs
        grown, said = self.grown, []
        if any(status not in (0, 1, 2) for status in self.status):
            said.append(f"status {self.status}")
        if self.is_slow() and (self.work is None or self.work > RATIO):
            work = "" if self.work is None else f"{self.work:.2f} times the instructions and "
            said.append(f"{work}{large / grown / max(small, 1e-3):.2f} times the time for an element, {1000 * small:.0f} and {1000 * large:.0f} ms")
        if high > LEAST_MEMORY and high > RATIO * grown * max(low, LEAST_MEMORY):
            said.append(f"memory {high / grown / max(low, 1):.2f} for an element, {low / 1e6:.1f} and {high / 1e6:.1f} MB")
        if high > LEAST_MEMORY and high > TIMES * self.models[1].bytes:
            said.append(f"{high / self.models[1].bytes:.1f} times the files in memory, {high / 1e6:.1f} MB")
        return said


class Base:
    """Cost of commands on a model of three layers."""

    def __init__(self, program):
        self.program, self.model = program, Model("chain of Relu", 1)

    @functools.cache
    def cost(self, command):
        runs = [measured(self.program, COMMANDS[command], self.model.folder.name)[1:] for _ in range(3)]
        return [min(values) for values in zip(*runs)]

    @functools.cache
    def count(self, command):
        return counted(self.program, COMMANDS[command], self.model.folder.name)


def judged(pair, base, times, counts):
    """Runs a pair until it meets the limits, and returns the misses that stay."""
    for _ in range(times):
        pair.run()
        said = pair.misses()
        if not said or any(status not in (0, 1, 2) for status in pair.status):
            return said
    if counts and pair.is_slow():
        pair.count(base.count(pair.command))
    return pair.misses()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--shape", help="only shapes whose name contains this")
    parser.add_argument("--part", type=int, nargs=2, default=[0, 1], metavar=("K", "N"), help="only every Nth shape, from K on")
    parser.add_argument("--command", action="append", choices=COMMANDS)
    parser.add_argument("--sizes", type=int, nargs=2, default=[4000, 16000])
    parser.add_argument("--times", type=int, default=4, help="the most runs of a pair that misses a limit")
    parser.add_argument("--count", action="store_true", help="let the instructions of valgrind decide on times that miss the limit")
    parser.add_argument("--report", help="a file for the figures of all runs, as JSON lines")
    chosen = parser.parse_args()
    program = os.path.abspath(chosen.program)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    code = "import shapes; print('\\n'.join(shapes.SHAPES))"
    names = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True, capture_output=True, text=True).stdout.splitlines()
    commands = chosen.command or list(COMMANDS)
    base = Base(program)
    report = open(chosen.report, "w") if chosen.report else None
    pairs = missed = slow = 0
    first, step = chosen.part
    for name in [name for name in names if (chosen.shape or "") in name][first::step]:
        models = [Model(name, size) for size in chosen.sizes]
        for command in commands:
            pair = Pair(program, command, models, base.cost(command))
            said = judged(pair, base, chosen.times, chosen.count)
            pairs += 1
            slow += pair.is_slow() and not said
            missed += bool(said)
            if said:
                print(f"{name}, {command}: {'; '.join(said)}", flush=True)
            if report:
                row = {"shape": name, "command": command, "bytes": [model.bytes for model in models], "costs": pair.costs, "work": pair.work, "status": pair.status}
                print(json.dumps(row), file=report, flush=True)
    print(f"{pairs} pairs of runs, {missed} with a miss, {slow} slower without more instructions")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
