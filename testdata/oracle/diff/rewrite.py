"""OpenVINO's own rewrite of models must show nothing but names.

    rewrite.py TYPELIFT OUT MODEL.xml...

Reads each model with OpenVINO, saves it to OUT, and compares both with `typelift diff`. Needs openvino. Models with
ConvertPromoteTypes are compared as they are: saving does not lower them. The weights of `NAME.ref.xml` and `NAME.moc.xml` are
those of `NAME.xml` if they have none of their own.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import openvino as ov


def with_weights(model, folder):
    """Copies the model, or links to it next to the weights that it shares with another."""
    weights = [model.with_suffix(".bin"), model.with_name(model.name.split(".ref.")[0].split(".moc.")[0].removesuffix(".xml") + ".bin")]
    weights = next((path for path in weights if path.exists()), None)
    if weights in (None, model.with_suffix(".bin")):
        return model
    link = folder / model.name
    link.symlink_to(model.resolve())
    link.with_suffix(".bin").symlink_to(weights.resolve())
    return link


def main(typelift, out, models):
    with tempfile.TemporaryDirectory() as folder:
        return compare(typelift, Path(out), [with_weights(Path(model), Path(folder)) for model in models])


def compare(typelift, out, models):
    failed, compared = 0, 0
    out.mkdir(parents=True, exist_ok=True)
    core = ov.Core()
    for model in models:
        saved = out / model.name
        if not saved.exists():
            try:
                ov.save_model(core.read_model(model), saved, compress_to_fp16=False)
            except RuntimeError as error:
                print(f"{model.name}: OpenVINO refuses it: {str(error).splitlines()[-2:]}")
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
