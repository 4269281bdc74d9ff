"""Takes the answers of opzoo/cases.jsonl.gz or ../hostile/cases.jsonl.gz anew: the same models, and what OpenVINO says of them now.

Usage: python retake.py CASES.jsonl.gz OUT.jsonl.gz      (needs openvino and numpy)

Prints the cases whose answer is another one. A case that makes OpenVINO crash is left out of what is written.
"""

import base64
import gzip
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "random"))
import compare

BATCH = 500


def with_answer(case, answer):
    """The case with what OpenVINO says now, in the words of its file."""
    accepted = "layers" in answer
    if "accepts" in case:
        said = case["openvino"] if accepted == case["accepts"] else answer.get("error", "")
        return case | {"accepts": accepted, "openvino": said}
    others, case_outputs = case.get("all"), case.get("outputs", [])
    case = {key: value for key, value in case.items() if key not in ("outputs", "all", "error")} | {"accept": accepted}
    if not accepted:
        return case | {"error": answer["error"]}
    layers = {name: outputs for name, outputs, _ in answer["layers"]}
    # Results are not among the layers; each has what it is given.
    case["outputs"] = layers.get("op", case_outputs)
    # OpenVINO adds constants of its own while it reads.
    return case | ({"all": {name: layers.get(name) for name in others}} if others else {})


def verdict(case):
    """The fields that tests compare."""
    if not case.get("accepts", case.get("accept")):
        return False
    return [case.get("outputs"), sorted((name, outputs) for name, outputs in case.get("all", {}).items())]


def main():
    source, out = sys.argv[1:]
    with gzip.open(source, "rt") as lines:
        cases = [json.loads(line) for line in lines]
    others = 0
    with gzip.GzipFile(out, "wb", mtime=0) as out:
        for first in range(0, len(cases), BATCH):
            batch = cases[first : first + BATCH]
            models = [(number, case["xml"], base64.b64decode(case["bin"] or "")) for number, case in enumerate(batch)]
            for number, answer in sorted(compare.ask_openvino(models).items()):
                name = batch[number].get("name") or f"{batch[number]['op']} {batch[number]['case']}"
                if answer is None:
                    print(f"{name}: OpenVINO crashes")
                    continue
                case = with_answer(batch[number], answer)
                if verdict(case) != verdict(batch[number]):
                    others += 1
                    print(f"{name}: {verdict(batch[number])} -> {verdict(case)}")
                out.write(json.dumps(case, separators=(",", ":")).encode() + b"\n")
    print(f"{len(cases)} cases, {others} with another answer")


if __name__ == "__main__":
    main()
