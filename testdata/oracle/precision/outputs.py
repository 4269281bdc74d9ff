"""Compares what models compute that `typelift convert --compress f16` compressed with those that OpenVINO compressed.

    python3 outputs.py --typelift target/debug/typelift --models FOLDER …

Needs openvino 2026.4.1 and numpy. Each .xml file of the folders is compressed by both, OpenVINO by `save_model(compress_to_fp16=True)`. The CPU
plugin computes both in f32, from the same random inputs: numbers of a normal distribution, integers from 0 to 2. Models that it does not
compute, or computes differently each time, are counted and left out. Each model has a process of its own and at most 120 s.
"""
import argparse
import collections
import multiprocessing
import pathlib
import subprocess
import tempfile

import numpy as np
import openvino as ov

from differences import inputs

LONGEST = 120


def compute(path):
    model = ov.Core().read_model(path)
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    request = compiled.create_infer_request()
    for at, tensor in enumerate(inputs(model)):
        request.set_input_tensor(at, tensor)
    request.infer()
    return [np.array(request.get_output_tensor(at).data) for at in range(len(compiled.outputs))]


def differ(ours, theirs):
    """The largest difference of two lists of outputs; infinite where shapes or what is no number differ."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape:
            return float("inf")
        if a.dtype.kind not in "fiub":
            worst = max(worst, 0.0 if (a == b).all() else float("inf"))
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        worst = max(worst, float(np.nan_to_num(np.abs(a[~same] - b[~same]), nan=np.inf).max(initial=0)))
    return worst


def one(typelift, xml, answer):
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = f"{folder}/ours.xml", f"{folder}/theirs.xml"
        try:
            ov.save_model(ov.Core().read_model(xml), theirs, compress_to_fp16=True)
            expected = compute(theirs)
            if differ(expected, compute(theirs)):
                raise RuntimeError("not the same twice")
        except (RuntimeError, TypeError, ValueError) as error:
            return answer.send("left out: " + str(error).strip().splitlines()[-1][-60:])
        done = subprocess.run([typelift, "convert", xml, "--compress", "f16", "-o", ours], capture_output=True, text=True)
        if done.returncode:
            return answer.send("refused: " + done.stderr.strip()[-200:])
        try:
            answer.send(differ(compute(ours), expected))
        except RuntimeError as error:
            answer.send("broken: " + str(error).strip()[-200:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--typelift", required=True)
    parser.add_argument("--models", type=pathlib.Path, nargs="+", required=True)
    arguments = parser.parse_args()
    counts = collections.Counter()
    for xml in sorted(xml for folder in arguments.models for xml in folder.glob("*.xml") if xml.with_suffix(".bin").exists()):
        answer, end = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(target=one, args=(arguments.typelift, str(xml), end))
        process.start()
        end.close()
        try:
            found = answer.recv() if answer.poll(LONGEST) else "left out: it takes too long"
        except EOFError:
            found = "left out: OpenVINO crashed"
        process.kill()
        process.join()
        kind = found.split(":")[0] if isinstance(found, str) else "equal to the last bit" if found == 0 else "different"
        counts[kind] += 1
        if found != 0:
            print(f"{xml.stem}: {found}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
