"""OpenVINO's own rewrite of models must show nothing but names.

    rewrite.py TYPELIFT OUT MODEL.xml...

Reads each model with OpenVINO, saves it to OUT, and compares both with `typelift diff`. Needs openvino. Models with
ConvertPromoteTypes are compared as they are: saving does not lower them.
"""

import json
import subprocess
import sys
from pathlib import Path

import openvino as ov


def main(typelift, out, models):
    out, failed, compared = Path(out), 0, 0
    out.mkdir(parents=True, exist_ok=True)
    core = ov.Core()
    for model in map(Path, models):
        saved = out / model.name
        if not saved.exists():
            try:
                ov.save_model(core.read_model(model), saved, compress_to_fp16=False)
            except RuntimeError as error:
                print(f"{model.name}: OpenVINO refuses it: {str(error).splitlines()[0]}")
                continue
        run = subprocess.run([typelift, "diff", "--format", "json", model, saved], capture_output=True, text=True)
        changes = [change for change in json.loads(run.stdout)["changes"] if change["kind"] != "names"]
        compared += 1
        failed += bool(changes)
        for change in changes[:5]:
            what = [change["kind"], change["path"], change.get("subject"), change["before"], change["after"]]
            print(f"{model.name}: {len(changes)} changes:", *what)
    print(f"{compared} models compared, {failed} differ in more than names")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
