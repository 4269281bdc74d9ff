#!/usr/bin/env bash
# Measures the program as it is shipped beside OpenVINO and others on the same graphs, and prints the tables of docs/benchmarks.md.
#
#   crates/typelift/benches/openvino.sh [VENV]
#
# VENV is a Python environment with openvino; without one, one is made for the run, with what others need too. TYPELIFT names the
# program whose whole process is measured; without it, .ci/dist builds it for TARGET, with a profile where that can be learnt.
# OTHER names another build of it, to be measured too. MODELS is a folder of real models; without it, it is testdata/models.
# UPDATE_DOCS=1 writes the tables; QUICK=1 tries whether everything runs. Needs a C++17 compiler, and without VENV python3 with venv
# and a package index. It says what it cannot measure.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
note() { echo "openvino.sh: $1" >&2; }

venv=${1:-$scratch/venv}
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet openvino==2026.4.1
    "$venv/bin/pip" install --quiet onnx onnx-ir onnxscript || note "onnx-ir and onnxscript cannot be installed"
fi
package=$("$venv/bin/python" -c 'import openvino, os; print(os.path.dirname(openvino.__file__))')
library=$(basename "$package"/libs/libopenvino.so.*)
"${CXX:-c++}" -O2 -std=c++17 "$here/openvino.cpp" -I"$package/include" \
    -L"$package/libs" -l:"$library" -Wl,-rpath,"$package/libs" -o "$scratch/phases"

cd "$here/../../.."
if [ -z "${TYPELIFT:-}" ]; then
    target=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
    .ci/dist "$target" >&2 || { note "the program has no profile"; .ci/dist --no-profile "$target" >&2; }
    TYPELIFT=$PWD/target/$target/dist/typelift
    [ -z "${CARGO_TARGET_DIR:-}" ] || TYPELIFT=$(realpath "$CARGO_TARGET_DIR")/$target/dist/typelift
fi
FILE_SYSTEM=$(stat -f -c %T "$scratch" 2>/dev/null || echo an unknown file system)
note "measuring $TYPELIFT"
export TYPELIFT FILE_SYSTEM PYTHON=$venv/bin/python OPENVINO_PHASES=$scratch/phases
cargo bench --package typelift --bench openvino
