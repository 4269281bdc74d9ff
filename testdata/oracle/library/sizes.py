"""Compares the length of a family's rules with OpenVINO's file of matchers for it, in characters with comments.

python sizes.py    prints a table. The sizes of OpenVINO's files, in
                   `src/common/transformations/src/transformations`, are those of its public repository.
"""

import re
from pathlib import Path

LIBRARY = Path(__file__).parents[3] / "crates/typelift/src/rewrite/library"

# Family, OpenVINO's file, its size, the sets with the names of the rules and definitions, all where there are none.
FAMILIES = [
    ("GELU", "gelu_fusion", 14850, {"fuse-gelu": ()}),
    ("HSwish", "hswish_fusion", 9764, {"fuse-hswish": (), "common": ("clamp",)}),
    ("HSigmoid", "hsigmoid_fusion", 12729, {"activations": ("hsigmoid",), "common": ("clamp",)}),
    ("Swish", "swish_fusion", 8186, {"activations": ("swish",)}),
    ("Mish", "mish_fusion", 2023, {"activations": ("mish",), "common": ("softplus",)}),
    ("SoftPlus", "softplus_fusion", 1983, {"activations": ("softplus",)}),
    ("PRelu", "prelu_fusion", 9508, {"activations": ("prelu", "negative", "one_slope")}),
    ("Clamp", "clamp_fusion", 3442, {"activations": ("clamp",)}),
    ("MVN", "mvn_fusion", 15816, {"norms": ("mvn",), "common": ("mean",)}),
    ("NormalizeL2", "normalize_l2_fusion", 6568, {"norms": ("l2",)}),
    ("RMS", "rms_fusion", 4186, {"fuse-rms": ()}),
    ("attention", "sdpa_fusion", 12439, {"fuse-sdpa": (), "common": ("up",)}),
    ("Multiply into Convolution", "conv_mul_fusion", 15352, {"affine": ("conv", "deconv", "group")}),
    ("BatchNorm", "batch_norm_decomposition", 6362, {"affine": ("bn",)}),
    ("linear chains", "lin_op_sequence_fusion", 6430, {"affine": ("chain",)}),
    ("Pad into Convolution", "pad_fusion", 20580, {"affine": ("pad",)}),
    ("DepthToSpace", "depth_to_space_fusion", 8542, {"movement": ("space",)}),
    ("ShuffleChannels", "shuffle_channels_fusion", 7127, {"movement": ("shuffle",)}),
    ("no-ops", "nop_elimination", 61350, {"no-ops": ()}),
]


def size(name, wanted):
    """The characters of the rules and definitions of a set that have these names."""
    found, total = [], 0
    for line in (LIBRARY / f"{name}.rules").read_text().splitlines():
        if re.match(r"(once )?try |def ", line):
            found.append(line)
        elif found and line and not line.startswith("#"):
            found[-1] += "\n" + line
    for text in found:
        name = re.match(r"(?:once )?try (\w+):|def (\w+)", text)
        if not wanted or name and (name[1] or name[2]) in wanted:
            total += len(text) + 1
    return total


if __name__ == "__main__":
    print("| family | OpenVINO's file | characters | ours | ratio |\n|---|---|--:|--:|--:|")
    for family, file, theirs, sets in FAMILIES:
        ours = sum(size(*rules) for rules in sets.items())
        print(f"| {family} | `{file}.cpp` | {theirs:,} | {ours:,} | {ours / theirs:.2f} |")
