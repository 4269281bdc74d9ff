"""Kills the program while it writes: `kills.py TYPELIFT [--times 75] [--command WORD] [--seed 0]`.

Every command that writes is ended by KILL, TERM, HUP and INT, `times` moments each, spread over its run and denser at the end. After each
run the output must be the old pair or the new one. A kill may also leave the weights alone, if the next command that writes completes the
pair. TERM, HUP and INT leave no other file behind. `reduce` ends with the best model so far, which must load.
Prints a line for each failure, and a summary. The exit status is 1 if there are failures. Needs no package.
"""

import argparse
import collections
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS = {
    "convert": ["convert", "in.xml", "-o", "out.xml"],
    "convert-canonical": ["convert", "--canonical", "in.xml", "-o", "out.xml"],
    "convert-in-place": ["convert", "--compress", "f16", "--in-place", "out.xml"],
    "compact": ["convert", "--weights", "compact", "in.xml", "-o", "out.xml"],
    "types": ["convert", "--types", "f32=f16", "in.xml", "-o", "out.xml"],
    "strip": ["convert", "--strip-weights", "random", "in.xml", "-o", "out.xml"],
    "quantize": ["convert", "--quantize", "int8_sym", "in.xml", "-o", "out.xml"],
    "dequantize": ["convert", "--dequantize", "quantized.xml", "-o", "out.xml"],
    "fix": ["check", "--fix", "in.xml", "-o", "out.xml"],
    "fix-in-place": ["check", "--fix", "--in-place", "out.xml"],
    "rewrite": ["rewrite", "--use", "all", "in.xml", "-o", "out.xml"],
    "rename-in-place": ["rewrite", "-e", "rename * y_*", "--in-place", "out.xml"],
    "join": ["rewrite", "-e", 'join "other.xml" as y_', "in.xml", "-o", "out.xml"],
    "cut": ["rewrite", "-e", "cut m3 .. m20", "in.xml", "-o", "out.xml"],
    "infer": ["infer", "in.xml", "-o", "out.xml"],
    "view": ["view", "in.xml", "-o", "out.html"],
    "reduce": ["reduce", "--finding", "unknown-operation", "--max-runs", "30", "in.xml", "-o", "out.xml"],
}
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
PRODUCT = 256


def model(count, seed, broken=False):
    """Returns a chain of products with matrices, as text and weights. A broken one has a misspelt type, which `check --fix` corrects."""
    layers = [f'<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,{PRODUCT}" element_type="f32"/>'
              f'<output><port id="0" precision="FP32" names="x"><dim>1</dim><dim>{PRODUCT}</dim></port></output></layer>']
    edges, size = [], 4 * PRODUCT * PRODUCT
    for at in range(count):
        w, m, before = 2 * at + 1, 2 * at + 2, (0, 0) if at == 0 else (2 * at, 2)
        ty = "Cnst" if broken and at == 0 else "Const"
        layers.append(f'<layer id="{w}" name="w{at}" type="{ty}" version="opset1"><data element_type="f32" shape="{PRODUCT}, {PRODUCT}" '
                      f'offset="{at * size}" size="{size}"/><output><port id="0" precision="FP32"><dim>{PRODUCT}</dim><dim>{PRODUCT}</dim>'
                      '</port></output></layer>')
        layers.append(f'<layer id="{m}" name="m{at}" type="MatMul" version="opset1"><data transpose_a="false" transpose_b="false"/><input>'
                      f'<port id="0"/><port id="1"/></input><output><port id="2" precision="FP32" names="m{at}"><dim>1</dim><dim>{PRODUCT}</dim>'
                      '</port></output></layer>')
        edges.append(f'<edge from-layer="{before[0]}" from-port="{before[1]}" to-layer="{m}" to-port="0"/>'
                     f'<edge from-layer="{w}" from-port="0" to-layer="{m}" to-port="1"/>')
    last = 2 * count + 1
    layers.append(f'<layer id="{last}" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>')
    edges.append(f'<edge from-layer="{2 * count}" from-port="2" to-layer="{last}" to-port="0"/>')
    text = '<net name="n" version="11">\n<layers>\n' + "\n".join(layers) + "\n</layers>\n<edges>\n" + "\n".join(edges) + "\n</edges>\n</net>\n"
    numbers = random.Random(seed)
    row = struct.pack(f"<{PRODUCT}f", *(numbers.uniform(-1, 1) for _ in range(PRODUCT)))
    return text.encode(), row * PRODUCT * count


class Writer:
    """A folder with an old output and a command that replaces it."""

    def __init__(self, program, command, folder, seed):
        self.program, self.name, self.folder, self.arguments = program, command, Path(folder), COMMANDS[command]
        self.outputs = ["out.html"] if command == "view" else ["out.xml", "out.bin"]
        broken = command in ("fix", "fix-in-place", "reduce")
        given = model(24, seed, broken)
        old = given if "--in-place" in self.arguments else model(3, seed + 1)
        self.put("in", given)
        self.put("other", model(2, seed + 2))
        if command == "dequantize":
            self.run(["convert", "--quantize", "int8_sym", "in.xml", "-o", "quantized.xml"])
        self.old = list(old)[:len(self.outputs)]
        self.reset()
        self.inputs = set(os.listdir(self.folder)) - set(self.outputs)
        self.longest = min(self.timed() for _ in range(3))
        self.new = self.read()
        assert self.new != self.old and None not in self.new, command
        assert not self.left(), (command, self.left())
        self.completed = [self.filled(pair) for pair in (self.old, self.new)] if len(self.new) == 2 else []

    def put(self, stem, pair):
        for ending, content in zip(("xml", "bin"), pair):
            (self.folder / f"{stem}.{ending}").write_bytes(content)

    def reset(self):
        for name, content in zip(self.outputs, self.old):
            (self.folder / name).write_bytes(content)

    def run(self, arguments):
        run = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True)
        assert run.returncode == 0, (arguments, run.stderr)

    def timed(self):
        """Returns the seconds that a run takes."""
        self.reset()
        started = time.monotonic()
        self.run(self.arguments)
        return time.monotonic() - started

    def filled(self, pair):
        """Returns a pair with the ports that `infer` adds."""
        self.put("out", pair)
        self.run(["infer", "--in-place", "out.xml"])
        return self.read()

    def read(self):
        paths = [self.folder / name for name in self.outputs]
        return [path.read_bytes() if path.exists() else None for path in paths]

    def left(self):
        """Returns the names of other files."""
        return sorted(set(os.listdir(self.folder)) - self.inputs - set(self.outputs))

    def killed(self, sent, delay):
        """Ends a run after a time. Returns what was found: old, new, ended, completed, or a failure."""
        self.reset()
        process = subprocess.Popen([self.program, *self.arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(sent)
        process.wait()
        found = self.judged()
        if sent != signal.SIGKILL and self.left():
            return f"LEFT {self.left()}"
        if sent != signal.SIGKILL and found == "completed":
            return "LOST the graph until the next command"
        return found

    def judged(self):
        pair = self.read()
        if pair == self.old:
            return "old"
        if pair == self.new:
            return "new"
        if None not in pair and self.name == "reduce":
            # The best model so far has the finding, and its constants are in its weights.
            run = subprocess.run([self.program, "check", "--format", "github", "out.xml"], cwd=self.folder, capture_output=True)
            is_whole = run.returncode == 1 and run.stdout.count(b"::error") == run.stdout.count(b"title=unknown-operation::") > 0
            return "best so far" if is_whole else f"MIXED {run.stdout[:300]}"
        if len(pair) == 2 and pair[0] is None and pair[1] in (self.old[1], self.new[1]):
            subprocess.run([self.program, "infer", "--in-place", "out.xml"], cwd=self.folder, capture_output=True)
            return "completed" if self.read() in self.completed else "LOST"
        return f"MIXED {[part and len(part) for part in pair]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=75, help="kills with each signal for each command")
    parser.add_argument("--command", action="append", choices=COMMANDS)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    program, kills, failures = os.path.abspath(chosen.program), 0, 0
    # A shell starts programs in the background with SIGINT ignored, and nohup with SIGHUP.
    for one in SIGNALS[1:]:
        signal.signal(one, signal.SIG_DFL)
    moments = random.Random(chosen.seed)
    for command in chosen.command or COMMANDS:
        folder = tempfile.mkdtemp()
        writer, found = Writer(program, command, folder, chosen.seed), collections.Counter()
        for sent in SIGNALS:
            # A run that succeeds removes what the kills before left.
            writer.reset()
            writer.run(writer.arguments)
            for at in range(chosen.times):
                share = ((at + moments.random()) / chosen.times) ** 0.5
                state = writer.killed(sent, share * writer.longest * 1.1)
                found[state] += 1
                kills += 1
                if state.split()[0].isupper():
                    failures += 1
                    print(f"{command}, {sent.name} at {share:.3f}: {state}", flush=True)
        writer.reset()
        writer.run(writer.arguments)
        if writer.left():
            failures += 1
            print(f"{command}: the next run leaves {writer.left()}")
        print(f"{command}: {dict(found)}", flush=True)
        shutil.rmtree(folder)
    print(f"{kills} kills, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
