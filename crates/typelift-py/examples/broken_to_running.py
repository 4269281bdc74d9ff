# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # From a broken model to a running one
#
# A model whose types do not agree, as exporters write them: half-precision activations meet single-precision constants.

# %%
from pathlib import Path
from tempfile import mkdtemp

import typelift

folder = Path(mkdtemp())
broken = folder / "model.xml"
typelift.from_text(
    """
    images = Parameter : f16[?,4]
    scale = Const([0.5, 0.25, 0.125, 2]) : f32[4]
    scaled = Divide(images, scale)
    shifted = Add(scaled, images)
    scores = Clamp(shifted) {min=0, max=6}
    out = Result(scores)
    """
).save(broken)

# %% [markdown]
# What is wrong, and where?

# %%
model = typelift.open(broken)
findings = model.check()
print(findings)
assert [d.code for d in findings.errors] == ["type-mismatch"]
findings

# %% [markdown]
# Make the types agree as PyTorch would. The report has each Convert and why it is there.

# %%
report = model.convert(align="pytorch")
print(report)
assert not model.check().errors

# %% [markdown]
# Pixels are bytes, batches are at most eight, and a multiplication is cheaper than a division.

# %%
model.set_input_type("images", "u8")
model.set_shape("images", ((1, 8), 4))
applied = model.rewrite("reciprocal: Divide(x, c: const) => Multiply(x, 1 / c)")
assert [application.rule for application in applied] == ["reciprocal"]
print(model)
print(model.why("scores"))

# %% [markdown]
# What did all of that change?

# %%
changes = typelift.diff(broken, model)
print(changes)
changes

# %% [markdown]
# The model as a picture, to search and to click through:

# %%
model

# %% [markdown]
# Save it, or hand it to OpenVINO in memory, where that is installed.

# %%
model.save(folder / "fixed.xml")
try:
    import numpy
    import openvino  # type: ignore[import-untyped,unused-ignore]
except ImportError:
    print("OpenVINO is not installed here")
else:
    text, weights = model.to_bytes()
    compiled = openvino.Core().compile_model(openvino.Core().read_model(text, weights), "CPU")
    print(compiled(numpy.array([[8, 4, 2, 1]], dtype="uint8"))[0])
