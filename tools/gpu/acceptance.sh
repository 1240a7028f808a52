#!/usr/bin/env bash
# Checks and times kernels on the first NVIDIA GPU, and writes one page about it: OUT/gpu.md, and OUT/gpu.json.
#
#   tools/gpu/acceptance.sh [--emulate] [--corpus FOLDER] [--ops] [--out FOLDER] [MODEL...]
#
# ARK models, plans, and ONNX files are compiled to libraries; their results are compared with evaluations in 64 bits, and
# their times are measured, as are those of products, of models whose time is that of their bytes, and, with --corpus, of
# a layer of Llama 2 7B; the corpus's plans of several ranks run as one kernel. If the Python has torch for the GPU, it is
# measured too. --ops runs ONNX's test cases of all ops. --emulate compares what is small enough on an emulated GPU,
# without times. The page is written after each case.
#
# IRC names the program; otherwise it is built, and `./irc-dev setup` installs what is missing. PYTHON names a Python with
# numpy, onnx, and, if wanted, torch; by default python3, or if it lacks them that of `./irc-dev setup`.
set -euo pipefail

if [[ " $* " == *" --help "* || " $* " == *" -h "* ]]; then
  sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
gpu="an emulated GPU"
if [[ " $* " != *" --emulate "* ]]; then
  if ! nvidia-smi -L >/dev/null 2>&1; then
    echo "acceptance.sh: there is no NVIDIA GPU with a driver on this machine; --emulate runs the comparisons without one" >&2
    exit 1
  fi
  gpu=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader --id=0)
fi
is_enough() { "$1" -c 'import numpy, onnx' 2>/dev/null; }
irc=${IRC:-}
python=${PYTHON:-python3}
if [[ -z $irc ]] || { [[ -z ${PYTHON:-} ]] && ! is_enough "$python"; }; then
  "$root/irc-dev" setup >&2
fi
if [[ -z ${PYTHON:-} ]] && ! is_enough "$python"; then
  python=$root/target/venv/bin/python
fi
if ! is_enough "$python"; then
  echo "acceptance.sh: $python has no numpy and onnx; name another in PYTHON" >&2
  exit 1
fi
if [[ -z $irc ]]; then
  (cd "$root" && cargo build --locked --package irc-tools --bins) >&2
  irc=$root/target/debug/irc
fi
exec "$python" "$root/tools/gpu/acceptance.py" --irc "$irc" --gpu "$gpu" "$@"
