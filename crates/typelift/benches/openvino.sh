#!/usr/bin/env bash
# Measures a conversion beside OpenVINO's own on the same graphs, and prints both.
#
#   crates/typelift/benches/openvino.sh [VENV]
#
# VENV is a Python environment with openvino; without one, one is made for the run. TYPELIFT names the program whose whole
# process is measured; without it, it is built as `cargo install` does. MODELS is a folder of real models; without it, it is
# testdata/models. UPDATE_DOCS=1 writes the table into docs/benchmarks.md. Needs a C++17 compiler, and without VENV python3 with venv and a package index.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

venv=${1:-$scratch/venv}
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet openvino==2026.4.1
fi
package=$("$venv/bin/python" -c 'import openvino, os; print(os.path.dirname(openvino.__file__))')
library=$(basename "$package"/libs/libopenvino.so.*)
"${CXX:-c++}" -O2 -std=c++17 "$here/openvino.cpp" -I"$package/include" \
    -L"$package/libs" -l:"$library" -Wl,-rpath,"$package/libs" -o "$scratch/phases"

cd "$here/.."
if [ -z "${TYPELIFT:-}" ]; then
    cargo build --quiet --release --package typelift-cli
    TYPELIFT=${CARGO_TARGET_DIR:-$here/../../../target}/release/typelift
fi
FILE_SYSTEM=$(stat -f -c %T "$scratch" 2>/dev/null || echo an unknown file system)
export TYPELIFT FILE_SYSTEM
OPENVINO_PHASES=$scratch/phases cargo bench --bench openvino
