"""Compares `typelift convert --types` with OpenVINO's internal pass ConvertPrecision: the types of every port, bodies included.

    python3 types.py --typelift target/debug/typelift [--random 200] [--seed 1] [--models FOLDER …] [--show 20]

Needs openvino 2026.4.1, numpy and g++: `convert_precision.cpp` runs the pass, which no header and no Python declares. Models are those of
`../random/graphs.py`, without those whose text is spoiled, and the .xml files of folders. A layer counts where both files have it.
Where OpenVINO throws, typelift must refuse, or write what OpenVINO reads.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

import openvino as ov

HERE = pathlib.Path(__file__).resolve().parent
MAPS = [("f32=f16", ""), ("f32=f16", "o"), ("f64=f32", ""), ("i64=i32", ""), ("bf16=f32", ""), ("f16=f32", "")]
BODIES = ("body", "then_body", "else_body")


def build(folder):
    root = pathlib.Path(ov.__file__).parent
    library = next((root / "libs").glob("libopenvino.so.*"))
    program = f"{folder}/convert_precision"
    subprocess.run(["g++", "-O1", "-std=c++17", HERE / "convert_precision.cpp", f"-I{root}/include", library, f"-Wl,-rpath,{library.parent}",
                    "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-o", program], check=True)
    return program


def port_types(xml):
    """The types of the outputs of each layer, by its path; names of layers that OpenVINO invents are not compared."""
    found = {}

    def walk(net, path):
        for layer in net.find("layers") or ():
            name = path + layer.get("name")
            ports = layer.find("output")
            found[name] = [] if ports is None else [port.get("precision") for port in ports]
            for body in BODIES:
                if layer.find(body) is not None:
                    walk(layer.find(body), f"{name}/{body}/")
    walk(ET.parse(xml).getroot(), "")
    return found


def is_read(xml):
    code = "import sys, openvino as ov; ov.Core().read_model(sys.argv[1]).validate_nodes_and_infer_types()"
    return subprocess.run([sys.executable, "-c", code, xml], capture_output=True).returncode == 0


def models(arguments, folder):
    sys.path.insert(0, str(HERE.parent / "random"))
    import graphs

    for number in range(arguments.random):
        if number % 8 != 7:
            xml = folder / f"{number}.xml"
            text, weights = graphs.make(arguments.seed, number)
            xml.write_text(text)
            xml.with_suffix(".bin").write_bytes(weights)
            yield f"graph {number}", xml
    for models in arguments.models:
        for xml in sorted(models.glob("*.xml")):
            if xml.with_suffix(".bin").exists():
                yield xml.stem, xml


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--typelift", required=True)
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--show", type=int, default=20)
    arguments = parser.parse_args()
    right, all, misses = collections.Counter(), collections.Counter(), []

    def count(what, is_right, detail):
        all[what] += 1
        right[what] += bool(is_right)
        if not is_right:
            misses.append(f"{what}: {detail}")

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = build(folder)
        for name, xml in models(arguments, folder):
            theirs, ours, plain = folder / "theirs.xml", folder / "ours.xml", folder / "plain.xml"
            read = f"{xml}\t{plain}\tu1=u1\t\n"
            for map, flags in MAPS:
                what = f"--types {map}" + " --keep-io" * ("o" in flags)
                for old in (plain, theirs, ours):
                    old.unlink(missing_ok=True)
                line = f"{xml}\t{theirs}\t{map}\t{flags}\n"
                said = subprocess.run([program], input=read + line, capture_output=True, text=True).stdout.splitlines()
                if not said or not said[0].startswith("OK"):
                    break  # OpenVINO does not read the model
                done = subprocess.run([arguments.typelift, "convert", xml, "--types", map, *["--keep-io"] * ("o" in flags), "-o", ours], capture_output=True, text=True)
                if len(said) < 2 or not said[1].startswith("OK"):
                    count(f"{what}, where OpenVINO throws", done.returncode == 1 or is_read(ours), f"{name}: not read")
                    continue
                if done.returncode:
                    count(f"{what}, written", False, f"{name}: {done.stderr.strip()[:300]}")
                    continue
                count(f"{what}, written", True, "")
                count(f"{what}, read by OpenVINO", is_read(ours), name)
                mine, source = port_types(ours), port_types(plain)
                for layer, types in port_types(theirs).items():
                    if layer in source:
                        count(f"{what}, layers", mine.get(layer) == types, f"{name}: {layer} is {mine.get(layer)}, OpenVINO has {types}, was {source[layer]}")
    for what in sorted(all):
        print(f"{right[what]} of {all[what]} {what}")
    for miss in misses[:arguments.show]:
        print("   ", miss)


if __name__ == "__main__":
    main()
