"""Records nncf 3.4.0's result for each model here when it quantizes the weights without data, on OpenVINO 2026.4.1.

python take.py     writes answers.json: NAME -> [{options, refused | constants, layers, settings}]

options: mode, and where given group_size, ratio, all_layers, backup, fallback
constants: [name, type, shape, CRC-32 of the bytes] of each Const, sorted; names that OpenVINO invents are "~"
layers: number of layers of each type
settings: the entries under nncf/weight_compression in the metadata that say how it was done
"""

import json
import logging
import re
import tempfile
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from pathlib import Path

import nncf
import openvino as ov
from nncf.quantization.advanced_parameters import AdvancedCompressionParameters, GroupSizeFallbackMode

HERE = Path(__file__).parent
INVENTED = re.compile(r"(^|/)[A-Z][A-Za-z]+_\d+$")
SETTINGS = ("mode", "group_size", "ratio", "all_layers", "backup_mode")
PLAIN = [
    {"mode": "int8_asym"},
    {"mode": "int8_sym"},
    {"mode": "int4_sym", "group_size": 32},
    {"mode": "int4_sym", "group_size": -1},
    {"mode": "int4_asym", "group_size": 32},
    {"mode": "int4_asym", "group_size": -1},
    {"mode": "nf4", "group_size": 32},
    {"mode": "fp4", "group_size": 32},
    {"mode": "mxfp4"},
]
MORE = [
    {"mode": "int4_sym", "group_size": 32, "all_layers": True},
    {"mode": "int4_asym", "group_size": 32, "backup": "none"},
    {"mode": "int4_sym", "group_size": 64, "fallback": "ignore"},
    {"mode": "int4_asym", "group_size": 64, "fallback": "adjust"},
    {"mode": "int4_sym", "group_size": 16, "backup": "int8_sym"},
]
RATIO = [{"mode": mode, "group_size": 32, "ratio": ratio} for mode in ("int4_sym", "int4_asym") for ratio in (0.8, 0.5, 0.3)]


def jobs(name):
    if "ratio" in name:
        return PLAIN[:1] + RATIO
    return PLAIN + (MORE if name in ("groups_not_dividing", "convolutions", "gather_kinds", "mm_ranks") else [])


def quantize(path, out, options):
    arguments = {key: options[key] for key in ("group_size", "ratio", "all_layers") if key in options}
    if "backup" in options:
        arguments["backup_mode"] = nncf.BackupMode(options["backup"])
    if "fallback" in options:
        fallback = GroupSizeFallbackMode(options["fallback"])
        arguments["advanced_parameters"] = AdvancedCompressionParameters(group_size_fallback_mode=fallback)
    model = ov.Core().read_model(path)
    model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode(options["mode"]), **arguments)
    ov.save_model(model, out, compress_to_fp16=False)


def facts(path):
    root, data = ET.parse(path).getroot(), path.with_suffix(".bin").read_bytes()
    constants, layers = [], Counter()
    for layer in root.iter("layer"):
        layers[layer.get("type")] += 1
        if layer.get("type") == "Const":
            attributes = layer.find("data")
            offset, size = int(attributes.get("offset")), int(attributes.get("size"))
            name = "~" if INVENTED.search(layer.get("name")) else layer.get("name")
            shape = (attributes.get("shape") or "").replace(" ", "")
            constants.append([name, attributes.get("element_type"), shape, zlib.crc32(data[offset : offset + size])])
    found = root.find("rt_info/nncf/weight_compression")
    settings = {key: found.find(key).get("value") for key in SETTINGS} if found is not None else {}
    return {"constants": sorted(constants), "layers": dict(sorted(layers.items())), "settings": settings}


def take(path, options):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.xml"
        try:
            quantize(path, out, options)
        except Exception:
            return {"options": options, "refused": True}
        return {"options": options} | facts(out)


def main():
    logging.disable(logging.CRITICAL)
    answers = {path.stem: [take(path, options) for options in jobs(path.stem)] for path in sorted(HERE.glob("*.xml"))}
    lines = [f"{json.dumps(name)}: [\n  " + ",\n  ".join(map(json.dumps, taken)) + "\n]" for name, taken in answers.items()]
    (HERE / "answers.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
