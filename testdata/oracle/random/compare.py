"""Compares what typelift infers for random graphs with what OpenVINO infers: types and shapes of every output, bodies
included, and whether the graph is accepted.

Usage: python compare.py --typelift target/release/typelift [--seed 1] [--first 0] [--count 1000] [--keep DIR] [--jobs 1]
                                                                    (needs openvino 2026.4.1 and numpy)

Prints counts, and each graph that differs with the first layer that does. `graphs.py` makes the graph anew from its number;
with --keep it is written to a folder. A model that makes OpenVINO crash or hang costs itself only, and is counted.
"""

import argparse
import collections
import json
import multiprocessing.pool
import pathlib
import re
import subprocess
import sys
import tempfile

import graphs

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bodies"))
import take

BATCH = 200


class Replies:
    """Stands for the pipe that `take.answer` replies to."""

    def __init__(self, connection, number):
        self.connection, self.number = connection, number

    def send(self, reply):
        self.connection.send((self.number, reply))


def worker(models, again, connection):
    for number, xml, weights in models:
        try:
            take.answer(xml, weights, Replies(connection, number), again)
        except BaseException as error:  # the counts say how often this happens
            connection.send((number, {"error": f"{type(error).__name__}: {error}"}))


def ask_openvino(models, again=False):
    """Returns OpenVINO's answer for each model, by number; None if it crashes or hangs. `again` is that of
    `take.answer`."""
    answers = {}
    while len(answers) < len(models):
        rest = [model for model in models if model[0] not in answers]
        receiver, sender = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(target=worker, args=(rest, again, sender))
        process.start()
        sender.close()
        try:
            for _ in rest:
                if not receiver.poll(30):
                    raise EOFError
                number, reply = receiver.recv()
                answers[number] = reply
        except EOFError:
            crashed = next(model[0] for model in models if model[0] not in answers)
            answers[crashed] = None
        process.kill()
        process.join()
    return answers


def ask_typelift(program, folder):
    """Returns typelift's result for each model, by number, and its first error for those that it refuses."""
    run = subprocess.run([program, "infer", "--format", "json", "--jobs", "1", folder], capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise SystemExit(f"typelift infer: {run.stderr[-2000:]}")
    inferred = {int(pathlib.Path(document["file"]).stem): document for document in json.loads(run.stdout)}
    errors = re.findall(r"^(error\[.*)\n --> .*?(\d+)\.xml:", run.stderr, re.MULTILINE)
    return inferred, {int(number): error for error, number in reversed(errors)}


def tensors(layers, path=""):
    """Returns typelift's (type, shape) of each output, by the path of its layer."""
    found = {}
    for layer in layers:
        name = path + layer["name"]
        found[name] = [(port["element_type"], port["shape"]) for port in layer["outputs"]]
        for body, inner in layer.get("bodies", {}).items():
            found |= tensors(inner, f"{name}/{body}/")
    return found


def first_difference(theirs, ours, path=""):
    """The first layer whose outputs differ: its kind, and what the two say; None where there is none."""
    for name, outputs, bodies in theirs:
        for body, inner in bodies.items():
            if found := first_difference(inner, ours, f"{path}{name}/{body}/"):
                return found
        outputs = [tuple(port) for port in outputs]
        # OpenVINO adds constants of its own while it reads, and gives an Assign an output that no file has.
        mine = ours.get(path + name) or outputs
        # An output that the file has no port for can be used by nothing.
        outputs = outputs[: len(mine)]
        if mine != outputs:
            types = [type for type, _ in mine] != [type for type, _ in outputs]
            kind = name.rstrip("0123456789")
            return ("type" if types else "shape"), kind, f"{path}{name}: OpenVINO {outputs}, typelift {mine}"
    return None


def difference(answer, error, inferred):
    """Describes how one graph differs: a class, the operation, and the details; None if it does not."""
    if "error" in answer:
        return None if error else ("only OpenVINO refuses", "", answer["error"])
    if error:
        return "only typelift refuses", "", error
    return first_difference(answer["layers"], tensors(inferred["layers"]))


def compare(task):
    """Compares one batch; counts, and what differs."""
    arguments, numbers = task
    models = [(number, *graphs.make(arguments.seed, number)) for number in numbers]
    with tempfile.TemporaryDirectory() as folder:
        for number, xml, weights in models:
            path = pathlib.Path(folder, f"{number}.xml")
            path.write_text(xml)
            path.with_suffix(".bin").write_bytes(weights)
        inferred, errors = ask_typelift(arguments.typelift, folder)
    counts, found, texts = collections.Counter(), [], {model[0]: model for model in models}
    for number, answer in ask_openvino(models).items():
        if answer is None:
            counts["crashes of OpenVINO"] += 1
            continue
        counts["refused by OpenVINO" if "error" in answer else "accepted by OpenVINO"] += 1
        counts["outputs"] += sum(map(len, tensors(inferred[number].get("layers", [])).values()))
        if differs := difference(answer, errors.get(number), inferred[number]):
            settled = ask_openvino([texts[number]], again=True)[number]
            if settled and not difference(settled, errors.get(number), inferred[number]):
                differs = ("stale body", *differs[1:])
            found.append((number, *differs))
    return counts, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--typelift", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    last = arguments.first + arguments.count
    batches = [(arguments, range(first, min(first + BATCH, last))) for first in range(arguments.first, last, BATCH)]
    counts, classes = collections.Counter(), collections.Counter()
    # Threads, because OpenVINO has processes of its own.
    with multiprocessing.pool.ThreadPool(arguments.jobs) as pool:
        for batch_counts, found in pool.imap(compare, batches):
            counts += batch_counts
            for number, kind, operation, details in found:
                classes[f"{kind} {operation}".strip()] += 1
                print(f"{number}\t{kind}\t{operation}\t{details}", flush=True)
                if arguments.keep:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    xml, weights = graphs.make(arguments.seed, number)
                    (arguments.keep / f"{number}.xml").write_text(xml)
                    (arguments.keep / f"{number}.bin").write_bytes(weights)
    print(f"seed {arguments.seed}, graphs {arguments.first} to {last - 1}: {dict(counts)}")
    print(f"{sum(classes.values())} differ: {dict(classes.most_common())}")


if __name__ == "__main__":
    main()
