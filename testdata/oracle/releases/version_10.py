"""Checks that models come back from version 10 with the same types. `version_10.py TYPELIFT MODELS` writes each for
2021.4, lets OpenVINO read both files, and compares the element types of all layers with the same name. Inputs and
outputs may differ as `Core.read_model` changes them in version 10, for example f16 to f32 with a Convert at the input
or output.
"""

import collections
import subprocess
import sys
import tempfile
from pathlib import Path

import openvino as ov

import targets


def types(model: ov.Model) -> dict[str, list[set]]:
    """Returns the types of the outputs of each layer with a name of its own. For an output next to a Convert at an
    input or output of the model, it adds the type on the other side.
    """
    operations = [op for op in model.get_ops() if op.get_type_name() != "Result"]
    names = collections.Counter(op.get_friendly_name() for op in operations)
    found = {}
    for op in operations:
        if names[op.get_friendly_name()] != 1:
            continue
        ports = [{str(port.get_element_type())} for port in op.outputs()]
        users = [[user.get_node() for user in port.get_target_inputs()] for port in op.outputs()]
        if op.get_type_name() == "Parameter":
            ports[0] |= {str(user.get_output_element_type(0)) for user in users[0] if user.get_type_name() == "Convert"}
        if op.get_type_name() == "Convert" and any(user.get_type_name() == "Result" for user in users[0]):
            ports[0].add(str(op.get_input_element_type(0)))
        found[op.get_friendly_name()] = ports
    return found


def main() -> None:
    typelift, models = sys.argv[1], sorted(Path(sys.argv[2]).rglob("*.xml"))
    core, counts = ov.Core(), collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for at, given in enumerate(models):
            model, out = targets.with_weights(given, Path(scratch) / str(at)), Path(scratch) / f"{at}.xml"
            if model is None or subprocess.run([typelift, "convert", "--target", "2021.4", str(model), "-o", str(out)], capture_output=True).returncode:
                continue
            counts["written"] += 1
            before, after = types(core.read_model(model)), types(core.read_model(out))
            # The first revision of MaxPool does not have the second output.
            same = {name for name in before.keys() & after.keys() if all(a & b for a, b in zip(before[name], after[name]))}
            counts["layers compared"] += len(before.keys() & after.keys())
            counts["layers of the same types"] += len(same)
            for name in sorted((before.keys() & after.keys()) - same):
                print(f"{given.name}: {name}: {before[name]}, now {after[name]}")
    print(dict(counts))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
