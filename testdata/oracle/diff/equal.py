"""Records which pairs of one-operation models OpenVINO saves equally: a case of `opzoo`, and the same case with one attribute left out or changed.

    python equal.py > equal.jsonl && gzip -9n equal.jsonl

For each attribute of each revision, one case that writes it. Keys: `xml`, `bin`, `saved` (the case as OpenVINO saves it), `attribute`, `other` (the variant), `same`.
"""
import base64
import gzip
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import openvino

HERE = Path(__file__).parent
ZOO = HERE.parent / "opzoo" / "cases.jsonl.gz"
WORDS = {"true": "false", "false": "true", "valid": "same_upper", "explicit": "valid", "same_upper": "same_lower", "numpy": "none", "floor": "ceil", "ceil": "floor",
         "i64": "i32", "i32": "i64"}


def saved(xml, weights):
    """Returns what OpenVINO saves, or None if it does not read the model. Some attributes crash it, so a process of its own saves."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "a.xml", Path(folder) / "b.xml"
        source.write_text(xml)
        source.with_suffix(".bin").write_bytes(weights)
        child = os.fork()
        if child == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                openvino.save_model(openvino.Core().read_model(source), target, compress_to_fp16=False)
                os._exit(0)
            except BaseException:
                os._exit(1)
        if os.waitpid(child, 0)[1] != 0 or not target.exists():
            return None
        return target.read_text(), target.with_suffix(".bin").read_bytes()


def changed(value):
    if value in WORDS:
        return WORDS[value]
    return re.sub(r"-?\d+(\.\d+)?", lambda number: str(int(float(number[0])) + 1), value, count=1)


def main():
    done, rows = set(), 0
    with gzip.open(ZOO, "rt") as lines:
        for case in map(json.loads, lines):
            if not case["accept"]:
                continue
            layer = re.search(r'<layer id="\d+" name="op".*?</layer>', case["xml"], re.S)
            data = layer and re.search(r"<data ([^>]*?)\s*/?>", layer[0])
            # The attributes of a body's layers are not those of the operation.
            if not data or "<body" in layer[0] or "_body>" in layer[0]:
                continue
            first = None
            for name, value in re.findall(r'([\w:]+)="([^"]*)"', data[1]):
                key = (case["op"], case["rev"], name)
                if key in done or len(value) > 40 or name == "zoo_unknown_attribute":
                    continue
                weights = base64.b64decode(case["bin"])
                first = first or saved(case["xml"], weights)
                if not first:
                    break
                done.add(key)
                at = layer.start() + data.start(1)
                text = f'{name}="{value}"'
                for new in dict.fromkeys(["", f'{name}="{changed(value)}"', f'{name}=""']):
                    if new == text:
                        continue
                    other = case["xml"][:at] + data[1].replace(text, new, 1) + case["xml"][at + len(data[1]):]
                    again = saved(other, weights)
                    if again:
                        row = {"op": case["op"], "rev": case["rev"], "attribute": name, "bin": case["bin"], "xml": case["xml"],
                               "saved": first[0], "saved_bin": base64.b64encode(first[1]).decode(), "other": other, "same": again == first}
                        print(json.dumps(row, separators=(",", ":")))
                        rows += 1
    print(f"{len(done)} attributes, {rows} pairs", file=sys.stderr)


main()
