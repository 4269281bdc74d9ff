"""Records OpenVINO 2026.4.1's result for each model here when it saves it with compress_to_fp16=True.

python take.py     writes answers.json: NAME -> {constants, marks, decompressions, bin}

constants: [path, type, shape, CRC-32 of the bytes, whether a Convert marked `decompression` takes it], sorted
marks: the paths of layers marked DisablePrecisionConversion or precise; bin: bytes of the .bin
Values of NaN, and the sign of zero, are those of x86-64.
"""

import json
import tempfile
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path

import openvino as ov

HERE = Path(__file__).parent
BODIES = ("body", "then_body", "else_body")


def names(layer):
    found = layer.find("rt_info")
    return [] if found is None else [attribute.get("name") for attribute in found]


def walk(net, path, data, facts):
    layers = {layer.get("id"): layer for layer in net.find("layers")}
    edges = [] if net.find("edges") is None else [(e.get("from-layer"), e.get("to-layer")) for e in net.find("edges")]
    for id, layer in layers.items():
        name = path + layer.get("name")
        users = [layers[to] for start, to in edges if start == id]
        if layer.get("type") == "Const":
            at = layer.find("data")
            start = int(at.get("offset"))
            crc = zlib.crc32(data[start:start + int(at.get("size"))])
            behind = any("decompression" in names(user) for user in users)
            facts["constants"].append([name, at.get("element_type"), at.get("shape"), crc, behind])
        if {"DisablePrecisionConversion", "precise"} & set(names(layer)):
            facts["marks"].append(name)
        facts["decompressions"] += "decompression" in names(layer)
        for body in BODIES:
            if layer.find(body) is not None:
                walk(layer.find(body), f"{name}/{body}/", data, facts)


def main():
    answers = {}
    for xml in sorted(HERE.glob("*.xml")):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out.xml")
            ov.save_model(ov.Core().read_model(xml), out, compress_to_fp16=True)
            data = out.with_suffix(".bin").read_bytes()
            facts = {"constants": [], "marks": [], "decompressions": 0, "bin": len(data)}
            walk(ET.parse(out).getroot(), "", data, facts)
        facts["constants"].sort()
        facts["marks"].sort()
        answers[xml.stem] = facts
    lines = (f" {json.dumps(name)}: {json.dumps(facts)}" for name, facts in answers.items())
    HERE.joinpath("answers.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
