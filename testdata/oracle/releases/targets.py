"""Rewrites every model of a directory for some releases and asks the releases, and the newest one, about what was written.

`targets.py TYPELIFT PACKAGES MODELS [RELEASE…]` prints a table: how many models each release reads, how many are refused and for what,
and how many compute what the original does. README.md says how to get PACKAGES. Needs openvino and numpy for the values.
"""

import collections
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import take

TARGETS = ["2021.4", "2022.3", "2023.3", "2024.0", "2024.6", "2025.2"]


def main() -> None:
    typelift, packages, models = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    models = sorted(models.rglob("*.xml"))
    print("| release | models | read | refused | not read | values compared | different |\n|---|---|---|---|---|---|---|")
    details = []
    for target in sys.argv[4:] or TARGETS:
        counts, said = ask(typelift, packages, models, target)
        print("|", " | ".join([target, str(len(models)), *(str(counts[key]) for key in ("read", "refused", "unread", "compared", "different"))]), "|", flush=True)
        details.append((target, said))
    for target, said in details:
        print(f"\n{target}")
        for line, count in said.most_common():
            print(f"{count:6} {line}")


def ask(typelift: str, packages: Path, models: list[Path], target: str):
    """What became of each model for one release."""
    counts, said = collections.Counter(), collections.Counter()
    release = next(release for release in [*take.OLD, *take.NEW] if release.startswith(target + "."))
    with tempfile.TemporaryDirectory() as scratch:
        written, sources = {}, {}
        for at, given in enumerate(models):
            model = with_weights(given, Path(scratch) / f"{at}.in")
            out = Path(scratch) / f"{at}.xml"
            run = subprocess.run([typelift, "convert", "--target", target, str(model), "-o", str(out)], capture_output=True, text=True)
            if run.returncode == 0:
                written[out], sources[out] = given, model
                continue
            reasons = reasons_of(run.stderr)
            counts["refused"] += 1
            if not reasons:
                said[f"refused without a reason: {given.name}: {run.stderr[:200]}"] += 1
            said.update(f"refused: {reason}" for reason in reasons)
        for path, message in take.reads(packages, release, list(written), as_is=True).items():
            counts["unread" if message else "read"] += 1
            if message:
                said[f"NOT READ: {written[path].name}: {message}"] += 1
        pairs = "".join(f"{sources[out]}\t{out}\n" for out in written)
        answers = subprocess.run([sys.executable, str(take.HERE / "same.py")], input=pairs, capture_output=True, text=True).stdout
        for verdict, model, _ in (line.split("\t") for line in answers.splitlines()):
            if verdict.startswith("none: "):
                continue
            counts["compared"] += 1
            if verdict != "same":
                counts["different"] += 1
                said[f"DIFFERENT: {Path(model).name}: {verdict}"] += 1
    return counts, said


def with_weights(model: Path, folder: Path) -> Path:
    """The model where its weights are beside it: `a.b.xml` may have those of `a.xml`."""
    stem = model.name.removesuffix(".xml")
    while not (model.parent / f"{stem}.bin").exists() and "." in stem:
        stem = stem.rpartition(".")[0]
    if f"{stem}.xml" == model.name or not (model.parent / f"{stem}.bin").exists():
        return model
    folder.mkdir()
    (folder / model.name).symlink_to(model)
    (folder / model.name).with_suffix(".bin").symlink_to(model.parent / f"{stem}.bin")
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
