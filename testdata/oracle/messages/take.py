"""Records OpenVINO's message for each file that docs/troubleshooting.md shows. Run it in the root of the repository
with the Python that has openvino 2026.4.1."""

import json
import re
from pathlib import Path

import openvino as ov

ROOT = Path(__file__).resolve().parents[3]


def message(core, path):
    try:
        core.read_model(ROOT / path)
    except Exception as error:
        # Names of nodes that OpenVINO makes up are numbered anew each time, and the path is this machine's.
        return " ".join(str(error).split()).replace(str(ROOT) + "/", "")
    return ""


core = ov.Core()
text = (ROOT / "docs/troubleshooting.md").read_text()
paths = sorted(set(re.findall(r"typelift check (testdata/\S+\.xml)", text)))
answers = {path: message(core, path) for path in paths}
Path(__file__).with_name("messages.json").write_text(json.dumps(answers, indent=1) + "\n")
