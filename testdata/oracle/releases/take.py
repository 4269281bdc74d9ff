"""Takes anew which OpenVINO release first reads each operation, element type and attribute value. README.md says how to run it.

`take.py packages DIR` unpacks the wheels, `take.py operations|element_types|attribute_values|forms DIR` asks them and prints a table.
"""

import base64
import csv
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
OLD = ["2021.3.0", "2021.4.2", "2022.1.0", "2022.2.0", "2022.3.1"]
NEW = ["2023.0.2", "2023.1.0", "2023.2.0", "2023.3.0", "2024.0.0", "2024.1.0", "2024.2.0", "2024.3.0", "2024.4.0", "2024.5.0"]
NEW += ["2024.6.0", "2025.0.0", "2025.1.0", "2025.2.0", "2025.3.0", "2025.4.0", "2026.0.0", "2026.1.0", "2026.2.1", "2026.3.1", "2026.4.1"]
PLATFORMS = ["manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_27_x86_64"]


def packages(folder: Path) -> None:
    """Unpacks every release into a folder of its own, and builds the reader of those whose Python is too old to install."""
    for release in NEW:
        target = str(folder / release)
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, f"openvino=={release}"], check=True)
    for release in OLD:
        wheels = folder / "wheels" / release
        for python in ["3.9", "3.8"]:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "--python-version", python, "-d", str(wheels)]
            command += [word for platform in PLATFORMS for word in ("--platform", platform)]
            if subprocess.run([*command, f"openvino=={release}"], stderr=subprocess.DEVNULL).returncode == 0:
                break
        for wheel in wheels.glob("*.whl"):
            subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(folder / release)], check=True)
        build(folder / release)


def build(release: Path) -> None:
    """Compiles `reads.cpp` against the library of an old release, which has either of the two string types of GCC."""
    libraries = release / "openvino" / "libs"
    library = next(path for name in ("libopenvino.so*", "libinference_engine.so") for path in sorted(libraries.glob(name)))
    flags = ["-DINFERENCE_ENGINE"] if "inference_engine" in library.name else []
    for strings in (0, 1):
        command = ["g++", "-std=c++17", f"-D_GLIBCXX_USE_CXX11_ABI={strings}", *flags, str(HERE / "reads.cpp"), "-o", str(release / "reads")]
        command += [str(library), f"-Wl,-rpath,{libraries}", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0:
            return
    raise SystemExit(f"reads.cpp does not link to {library}")


def reads(folder: Path, release: str, files: list[Path], as_is: bool = False) -> dict[Path, str]:
    """Returns a release's message for each file, `""` if it reads it. Release 2021 reads version 10 of the file, unless
    `as_is`."""
    environment = dict(os.environ)
    if release in OLD:
        command = [str(folder / release / "reads")]
        environment["LD_LIBRARY_PATH"] = str(folder / release / "openvino" / "libs")
    else:
        command = [sys.executable, str(HERE / "reads.py")]
        environment["PYTHONPATH"] = str(folder / release)
    asked = files if as_is or not release.startswith("2021") else [version_10(file) for file in files]
    text = "".join(f"{path}\n" for path in asked)
    answers = subprocess.run(command, input=text, text=True, env=environment, capture_output=True).stdout.splitlines()
    says = {}
    for answer in answers:
        verdict, _, rest = answer.partition(" ")
        path, _, message = rest.partition("\t")
        if verdict in ("yes", "no"):
            says[Path(path)] = message if verdict == "no" else ""
    return {file: says.get(path, "no answer") for file, path in zip(files, asked)}


def version_10(file: Path) -> Path:
    """The same model as IR 10, the only version that releases before 2022 read."""
    old = file.with_suffix(".v10.xml")
    old.write_text(re.sub(r'(<net [^>]*version=)"11"', r'\1"10"', file.read_text()))
    weights = file.with_suffix(".bin")
    if weights.exists():
        old.with_suffix(".bin").write_bytes(weights.read_bytes())
    return old


def first_releases(folder: Path, files: list[Path], lacks) -> dict[Path, str]:
    """The first release that reads each file and all later ones; `lacks(message)` says whether a refusal counts."""
    first = dict.fromkeys(files, "")
    for release in [*OLD, *NEW]:
        for file, message in reads(folder, release, files).items():
            if message and lacks(message):
                first[file] = ""
            elif not first[file]:
                first[file] = f"<={release}" if release == OLD[0] else release
    return first


def operations(folder: Path) -> None:
    """Asks for each operation in each set that brings it or a revision, and in sets 13 to 17."""
    asked = list(csv.reader(line for line in (HERE / "operations.csv").open() if not line.startswith("#")))[1:]
    with tempfile.TemporaryDirectory() as scratch:
        files = {}
        for name, opset, _ in asked:
            path = Path(scratch) / f"{name}.{opset}.xml"
            path.write_text(ONE_LAYER.format(name=name, opset=opset))
            files[path] = (name, opset)
        missing = ("doesn't contain the operation", "unsupported opset", "Cannot create")
        first = first_releases(folder, list(files), lambda message: any(words in message for words in missing[:2]))
    print_table(["operation", "opset", "first_release"], [[*files[path], release] for path, release in first.items()])


ONE_LAYER = """<?xml version="1.0"?>
<net name="one" version="11"><layers>
<layer id="0" name="one" type="{name}" version="opset{opset}"><output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="1" name="out" type="Result" version="opset1"><input><port id="0"><dim>1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>
"""


def element_types(folder: Path) -> None:
    """Tests a constant of each element type, followed by a Convert."""
    asked = list(csv.reader(line for line in (HERE / "element_types.csv").open() if not line.startswith("#")))[1:]
    with tempfile.TemporaryDirectory() as scratch:
        files = {}
        for name, _ in asked:
            path = Path(scratch) / f"{name}.xml"
            path.write_text(ONE_CONSTANT.format(name=name, size=64 if name == "string" else 8))
            path.with_suffix(".bin").write_bytes(bytes(64))
            files[path] = name
        first = first_releases(folder, list(files), lambda message: True)
    print_table(["element_type", "first_release"], [[files[path], release] for path, release in first.items()])


ONE_CONSTANT = """<?xml version="1.0"?>
<net name="one" version="11"><layers>
<layer id="0" name="c" type="Const" version="opset1"><data element_type="{name}" shape="1" offset="0" size="{size}"/>
<output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="1" name="y" type="Convert" version="opset1"><data destination_type="f32"/><input><port id="0"><dim>1</dim></port></input>
<output><port id="1" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="2" name="out" type="Result" version="opset1"><input><port id="0"><dim>1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>
"""


def attribute_values(folder: Path) -> None:
    """Asks for each value of each enumerated attribute, on a case of `opzoo` with fixed shapes that the newest release reads with it."""
    cases = {}
    with gzip.open(HERE.parent / "opzoo" / "cases.jsonl.gz", "rt") as lines:
        for case in map(json.loads, lines):
            if case["accept"] and case["op"]:
                cases.setdefault((case["op"], str(case["rev"])), []).append(case)
    rows = list(csv.reader(line for line in (HERE / "attribute_values.csv").open() if not line.startswith("#")))[1:]
    with tempfile.TemporaryDirectory() as scratch:
        candidates = {}
        for at, (name, revision, attribute, value, *_) in enumerate(rows):
            known = sorted(cases.get((name, revision), []), key=lambda case: [bool(odd.search(case["xml"])) for odd in ODD])
            known = [(case["xml"], base64.b64decode(case["bin"])) for case in known[:6]]
            known += [(plain(name, *PLAIN[name]), b"")] if name in PLAIN else []
            for number, (xml, weights) in enumerate(known):
                path = Path(scratch) / f"{at}.{number}.xml"
                # Releases before 2023 refuse a port whose type is open, those before 2025 a file of less than 512 bytes.
                text = with_attribute(xml, name, attribute, value).replace("UNSPECIFIED", "FP32")
                path.write_text(text + " " * 512)
                path.with_suffix(".bin").write_bytes(weights)
                candidates.setdefault(at, []).append(path)
        every = [path for paths in candidates.values() for path in paths]
        newest = reads(folder, NEW[-1], every)
        read = [path for path in every if not newest[path]]
        first = first_releases(folder, read, lambda message: True)
    order = {release: at for at, release in enumerate([f"<={OLD[0]}", *OLD[1:], *NEW])}
    table = []
    for at, row in enumerate(rows):
        found = [first[path] for path in candidates.get(at, []) if path in first]
        if not found:
            print(f"nothing reads {row[:4]}: {newest[candidates[at][0]]}", file=sys.stderr)
        table.append([*row[:4], min(found, key=order.__getitem__, default="")])
    print_table(["operation", "revision", "attribute", "value", "first_release"], table)


# Operations whose cases in `opzoo` say too little to releases that read fixed shapes alone: attributes, inputs, output.
PLAIN = {
    "GreaterEqual": ("", [[2, 3]] * 2, [2, 3]),
    "FakeQuantize": ('levels="4"', [[2, 3]] * 5, [2, 3]),
    "DeformableConvolution": (
        'strides="1,1" dilations="1,1" pads_begin="0,0" pads_end="0,0" auto_pad="valid" group="1" deformable_group="1"',
        [[1, 3, 5, 5], [1, 18, 3, 3], [4, 3, 3, 3]],
        [1, 4, 3, 3],
    ),
}


def plain(operation: str, attributes: str, inputs: list[list[int]], output: list[int]) -> str:
    """A model of one operation on Parameters of fixed shapes, with every port written."""

    def port(at: int, dims: list[int], precision: str = "") -> str:
        return f'<port id="{at}"{precision}>{"".join(f"<dim>{dim}</dim>" for dim in dims)}</port>'

    layers, edges, last = "", "", len(inputs)
    for at, dims in enumerate(inputs):
        shape = ",".join(map(str, dims))
        layers += f'<layer id="{at}" name="p{at}" type="Parameter" version="opset1"><data shape="{shape}" element_type="f32"/>'
        precision = ' precision="FP32"'
        layers += f"<output>{port(0, dims, precision)}</output></layer>"
        edges += f'<edge from-layer="{at}" from-port="0" to-layer="{last}" to-port="{at}"/>'
    ports = "".join(port(at, dims) for at, dims in enumerate(inputs))
    precision = ' precision="BOOL"' if operation == "GreaterEqual" else ' precision="FP32"'
    layers += f'<layer id="{last}" name="op" type="{operation}" version="opset1"><data {attributes}/><input>{ports}</input>'
    layers += f"<output>{port(last, output, precision)}</output></layer>"
    layers += f'<layer id="{last + 1}" name="out" type="Result" version="opset1"><input>{port(0, output)}</input></layer>'
    edges += f'<edge from-layer="{last}" from-port="{last}" to-layer="{last + 1}" to-port="0"/>'
    return f'<?xml version="1.0"?>\n<net name="plain" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'


# Patterns that an old release may refuse for reasons of its own, the worst first.
ODD = [re.compile('element_type="(?!f32|i64|i32)'), re.compile("<dim>-1"), re.compile('shape="[^"]*[?.]'), re.compile('shape=""')]


def with_attribute(xml: str, operation: str, attribute: str, value: str) -> str:
    """The model with an attribute of its layers of this operation set to `value`."""

    def set_in(layer: re.Match) -> str:
        text = re.sub(rf'(<data\b[^>]*?)\s{attribute}="[^"]*"', r"\1", layer[0], count=1)
        if "<data" in text:
            return text.replace("<data", f'<data {attribute}="{value}"', 1)
        return re.sub(r"(<layer[^>]*>)", rf'\1<data {attribute}="{value}"/>', text, count=1)

    return re.sub(rf'<layer [^>]*type="{operation}".*?</layer>', set_in, xml, flags=re.DOTALL)


def forms(folder: Path) -> None:
    """Asks for the models in `forms`: the first and the last release that reads each."""
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(shutil.copy(path, scratch)) for path in sorted((HERE / "forms").glob("*.xml"))]
        first, last = dict.fromkeys(files, ""), dict.fromkeys(files, "")
        for before, release in zip(["", *OLD, *NEW], [*OLD, *NEW]):
            for file, message in reads(folder, release, files).items():
                if message and first[file] and not last[file]:
                    last[file] = before
                elif not message and not first[file]:
                    first[file] = f"<={release}" if release == OLD[0] else release
    print_table(["file", "first_release", "last_release"], [[file.stem, first[file], last[file]] for file in files])


def print_table(header: list[str], rows: list[list[str]]) -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(header)
    out.writerows(rows)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("packages", "operations", "element_types", "attribute_values", "forms"):
        sys.exit(__doc__)
    globals()[sys.argv[1]](Path(sys.argv[2]))
