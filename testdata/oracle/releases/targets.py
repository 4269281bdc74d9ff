"""Rewrites every model of a directory for some releases and asks the releases, and the newest one, about what was written.

`targets.py TYPELIFT PACKAGES MODELS [RELEASE…]` prints a table with a row for each release. A row counts the models
that are written, read, compared by values, equal, and refused; the reasons of refusals follow. README.md says how to
get PACKAGES. Needs openvino and numpy for the values.
"""

import collections
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import take

TARGETS = ["2021.4", "2022.3", "2023.3", "2024.0", "2024.6", "2025.2"]


COLUMNS = ["written", "read", "compared", "equal", "refused"]


def main() -> None:
    typelift, packages, models = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        models = {model: with_weights(model, Path(scratch) / str(at)) for at, model in enumerate(sorted(models.rglob("*.xml")))}
        apart = sorted(model.name for model, complete in models.items() if not complete)
        models = {model: complete for model, complete in models.items() if complete}
        print(f"{len(models)} models; {len(apart)} without weights are left out\n")
        print("| release |", " | ".join(COLUMNS), "|\n" + "|---" * (len(COLUMNS) + 1) + "|")
        details = []
        for target in sys.argv[4:] or TARGETS:
            counts, said = ask(typelift, packages, models, target)
            print("|", " | ".join([target, *(str(counts[key]) for key in COLUMNS)]), "|", flush=True)
            details.append((target, said))
    for target, said in details:
        print(f"\n{target}")
        for line, count in said.most_common():
            print(f"{count:6} {line}")


def ask(typelift: str, packages: Path, models: dict[Path, Path], target: str):
    """Counts the results of each model for one release."""
    counts, said = collections.Counter(), collections.Counter()
    release = next(release for release in [*take.OLD, *take.NEW] if release.startswith(target + "."))
    with tempfile.TemporaryDirectory() as scratch:
        written = {}
        for at, (given, model) in enumerate(models.items()):
            out = Path(scratch) / f"{at}.xml"
            run = subprocess.run([typelift, "convert", "--target", target, str(model), "-o", str(out)], capture_output=True, text=True)
            if run.returncode == 0:
                written[out] = given, model
                continue
            reasons = reasons_of(run.stderr)
            counts["refused"] += 1
            if not reasons:
                said[f"refused without a reason: {given.name}: {run.stderr[:200]}"] += 1
            said.update(f"refused: {reason}" for reason in reasons)
        counts["written"] = len(written)
        for path, message in take.reads(packages, release, list(written), as_is=True).items():
            counts["read"] += not message
            if message:
                said[f"NOT READ: {written[path][0].name}: {message}"] += 1
        pairs = "".join(f"{model}\t{out}\n" for out, (_, model) in written.items())
        answers = subprocess.run([sys.executable, str(take.HERE / "same.py")], input=pairs, capture_output=True, text=True).stdout
        for verdict, model, _ in (line.split("\t") for line in answers.splitlines()):
            if verdict.startswith("none: "):
                said[f"not compared: {Path(model).name}: {verdict}"] += 1
                continue
            counts["compared"] += 1
            counts["equal"] += verdict == "same"
            if verdict != "same":
                said[f"DIFFERENT: {Path(model).name}: {verdict}"] += 1
    return counts, said


def with_weights(model: Path, folder: Path) -> Path | None:
    """Returns the model next to its weights: `a.b.xml` may use those of `a.xml`, if the size fits."""
    end = max((int(at) + int(size) for at, size in re.findall(r'offset="(\d+)" size="(\d+)"', model.read_text())), default=0)
    stem = model.name.removesuffix(".xml")
    while not (model.parent / f"{stem}.bin").exists() and "." in stem:
        stem = stem.rpartition(".")[0]
    weights = model.parent / f"{stem}.bin"
    if end == 0 or stem == model.name.removesuffix(".xml") and weights.exists():
        return model
    if not weights.exists() or weights.stat().st_size != end:
        return None
    folder.mkdir()
    (folder / model.name).symlink_to(model)
    (folder / model.name).with_suffix(".bin").symlink_to(weights)
    data = model.with_suffix(".io.npz")
    if data.exists():
        (folder / data.name).symlink_to(data)
    return folder / model.name


def reasons_of(text: str) -> set[str]:
    """The kinds of reasons for a refusal, without names."""
    reasons = set()
    for line in text.splitlines():
        if found := re.match(r"error\[([a-z0-9-]+)\]: (.*)", line):
            reasons.add(found[1] + ": " + re.sub(r"`[^`]*`", "`…`", found[2]))
    return reasons


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main()
