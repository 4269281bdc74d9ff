"""Takes opset_table.csv anew: which revision of each operation each opset has.

Usage: python opset_table.py OUT.csv      (needs openvino, whose package brings its C++ headers)

A row is an operation, a column an opset, a cell the namespace of the class that the opset registers; `versions` lists them.
"""

import pathlib
import re
import sys

import openvino


def main():
    folder = pathlib.Path(openvino.__file__).parent / "include" / "openvino" / "opsets"
    number = lambda path: int(re.search(r"\d+", path.name)[0])
    headers = sorted(folder.glob("opset*_tbl.hpp"), key=number)
    opsets = {f"opset{number(path)}": dict(re.findall(r"^_OPENVINO_OP_REG\((\w+), ov::op::(v\d+)\)", path.read_text(), re.M)) for path in headers}
    with open(sys.argv[1], "w") as out:
        print("op", *opsets, "versions", sep=",", file=out)
        for operation in sorted(set().union(*opsets.values())):
            revisions = [table.get(operation, "") for table in opsets.values()]
            print(operation, *revisions, " ".join(dict.fromkeys(filter(None, revisions))), sep=",", file=out)


if __name__ == "__main__":
    main()
