"""Reports which files the OpenVINO on the module path reads: paths on standard input, `yes PATH` or `no PATH<tab>message` a line."""

import os
import sys

try:
    from openvino import Core
except ImportError:
    from openvino.runtime import Core

core = Core()
for path in sys.stdin.read().splitlines():
    sys.stdout.flush()
    # Each file is read in a process of its own, because several releases crash on some files.
    child = os.fork()
    if child == 0:
        try:
            core.read_model(path)
            answer = f"yes {path}\n"
        except Exception as error:  # noqa: BLE001
            answer = f"no {path}\t{' '.join(str(error).split())[:400]}\n"
        os.write(1, answer.encode())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        os.write(1, f"no {path}\tcrashed\n".encode())
