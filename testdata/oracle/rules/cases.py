"""The models of `cases`, on which rules once changed what a model computes, before and after `--use all`.

python cases.py PROGRAM     prints what differs by OpenVINO's reference kernels; the exit status is 1 if anything does
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import openvino as ov

import fuzz

# They draw random numbers, or OpenVINO has no kernel for them in the type of the case.
RANDOM = {"random_cse_boxmuller", "random_without_seed", "fold_random_with_seed"}


def shapes_of(path):
    """A fixed shape for each input: 3 for a dim that is open, two axes for an unknown rank."""
    shapes = []
    for port in ov.Core().read_model(path).inputs:
        shape = port.get_partial_shape()
        dims = [1, 3] if shape.rank.is_dynamic else [dim.get_length() if dim.is_static else max(3, dim.get_min_length()) for dim in shape]
        shapes.append(dims)
    return shapes


def main():
    program, failed = sys.argv[1], False
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(Path(__file__).parent.glob("cases/*.xml")):
            once, twice = Path(folder) / f"{path.stem}.xml", Path(folder) / f"{path.stem}.twice.xml"
            subprocess.run([program, "rewrite", path, "-o", once, "--use", "all"], check=True, capture_output=True)
            again = subprocess.run([program, "rewrite", once, "-o", twice, "--use", "all"], check=True, capture_output=True, text=True)
            found = [] if "no rule applied" in again.stderr else [again.stderr.strip()]
            if path.stem not in RANDOM:
                found.append(fuzz.isolated(str(path), str(once), shapes_of(path), 1, ["normal", "special"]))
            for what in filter(None, found):
                failed = True
                print(path.stem, what)
    sys.exit(failed)


if __name__ == "__main__":
    main()
