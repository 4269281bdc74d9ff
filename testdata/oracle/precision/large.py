"""Measures the time to convert the weights of a large model to f16, compared with a copy and with OpenVINO.

    python3 large.py --typelift target/release/typelift [--folder FOLDER] [--rounds 5]

Needs openvino 2026.4.1, numpy and 3 GB in the folder. The model has 15 constants f32[4096,4096], 1.007 GB of random numbers of a normal
distribution. Of each command the median of the rounds: seconds, seconds of processor time in user and in system mode, and peak memory.
"""
import argparse
import multiprocessing
import os
import pathlib
import shlex
import statistics
import sys
import tempfile
import time

SAVE = "import sys, openvino as ov; ov.save_model(ov.Core().read_model(sys.argv[1]), sys.argv[2], compress_to_fp16=True)"


def make(xml):
    import numpy as np
    import openvino as ov
    from openvino import opset13 as op

    rng = np.random.default_rng(1)
    x = op.parameter([1, 4096], np.float32, name="x")
    node = x
    for _ in range(15):
        node = op.matmul(node, op.constant(rng.standard_normal((4096, 4096), np.float32) / 64), False, False)
    ov.save_model(ov.Model([op.result(node)], [x], "large"), xml, compress_to_fp16=False)


def run(command):
    """Seconds, processor seconds, and MB at most."""
    start = time.monotonic()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"{command} failed")
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--typelift", required=True)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    typelift = shlex.split(arguments.typelift)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        xml, out = f"{folder}/large.xml", f"{folder}/out.xml"
        # In a process of its own: the peak of a child begins with what its parent has.
        maker = multiprocessing.Process(target=make, args=[xml])
        maker.start()
        maker.join()
        commands = {
            "cp": ["cp", f"{folder}/large.bin", f"{folder}/copy.bin"],
            "typelift": [*typelift, "convert", "--compress", "f16", xml, "-o", out],
            "typelift -j 1": [*typelift, "convert", "--compress", "f16", "-j", "1", xml, "-o", out],
            "save_model": [sys.executable, "-c", SAVE, xml, out],
        }
        rounds = [{name: run(command) for name, command in commands.items()} for _ in range(arguments.rounds)]
    medians = {name: [statistics.median(taken[name][at] for taken in rounds) for at in range(3)] for name in commands}
    print("| | seconds | to `cp` | processor seconds | MB |\n|---|---:|---:|---:|---:|")
    for name, (seconds, processor, memory) in medians.items():
        print(f"| {name} | {seconds:.2f} | {seconds / medians['cp'][0]:.1f} | {processor:.2f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
