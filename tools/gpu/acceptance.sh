#!/usr/bin/env bash
# Checks and times kernels on the first NVIDIA GPU, and writes one page about it: OUT/gpu.md, and OUT/gpu.json.
#
#   tools/gpu/acceptance.sh [--emulate] [--corpus FOLDER] [--ops] [--out FOLDER] [MODEL...]
#
# ARK models, plans, and ONNX files are compiled to libraries; their results are compared with evaluations in 64 bits, and
# their times are measured, as are those of products, of models whose time is that of their bytes, and, with --corpus, of
# a layer of Llama 2 7B. If the Python has torch for the GPU, it is measured too. --ops runs ONNX's test cases of all
# ops. --emulate compares what is small enough on an emulated GPU, without times.
#
# IRC names the program, which is built otherwise; PYTHON names a Python with numpy, onnx, and, if wanted, torch.
set -euo pipefail

if [[ " $* " == *" --help "* || " $* " == *" -h "* ]]; then
  sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
gpu="an emulated GPU"
if [[ " $* " != *" --emulate "* ]]; then
  if ! nvidia-smi -L >/dev/null 2>&1; then
    echo "acceptance.sh: there is no NVIDIA GPU with a driver on this machine; --emulate runs the comparisons without one" >&2
    exit 1
  fi
  gpu=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader --id=0)
fi
if ! "$python" -c 'import numpy, onnx' 2>/dev/null; then
  echo "acceptance.sh: $python has no numpy and onnx; name another in PYTHON" >&2
  exit 1
fi
irc=${IRC:-}
if [[ -z $irc ]]; then
  (cd "$root" && cargo build --locked --package irc-tools --bins) >&2
  irc=$root/target/debug/irc
fi
exec "$python" "$root/tools/gpu/acceptance.py" --irc "$irc" --gpu "$gpu" "$@"
