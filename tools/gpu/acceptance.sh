#!/usr/bin/env bash
# Checks and times kernels on the first NVIDIA GPU, and writes one page about it: OUT/gpu.md, and OUT/gpu.json.
#
#   tools/gpu/acceptance.sh [--emulate] [--out FOLDER] [MODEL...]
#
# Models, plans and ONNX files are compiled to libraries, and their results are compared with those of the reference
# evaluator, or for plans with those on the host; then their latency is measured. Without MODEL it takes the examples, and
# plans of small ones.
# --emulate runs the comparisons on an emulated GPU instead, without times.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
irc=${IRC:-$root/target/debug/irc}
engine=cuda
out=$root/target/gpu
models=()
while (($#)); do
  case $1 in
  --emulate) engine=emulate ;;
  --out)
    out=${2:?--out needs a folder}
    shift
    ;;
  -*)
    echo "acceptance.sh: unknown flag $1" >&2
    exit 2
    ;;
  *) models+=("$1") ;;
  esac
  shift
done
if [[ $engine == cuda ]] && ! nvidia-smi -L >/dev/null 2>&1; then
  echo "acceptance.sh: there is no NVIDIA GPU with a driver on this machine; --emulate runs the comparisons without one" >&2
  exit 1
fi
if ! [[ -x $irc ]]; then
  echo "acceptance.sh: there is no $irc; build it, or name it in IRC" >&2
  exit 1
fi
mkdir -p "$out"
arch=CUDA_80
gpu="an emulated GPU"
if [[ $engine == cuda ]]; then
  gpu=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader --id=0)
  if [[ $gpu == *"9.0" ]]; then arch=CUDA_90; fi
fi
if ((${#models[@]} == 0)); then
  models=("$root"/examples/*.model.json)
  for name in softmax layernorm rmsnorm ffn; do
    plan=$out/$name.plan.json
    "$irc" compile "$root/examples/$name.model.json" -o "$plan" --arch "$arch"
    models+=("$plan")
  done
fi

page=$out/gpu.md
json=$out/gpu.json
failed=0
separator=
{
  printf '# Kernels on %s\n\n' "$gpu"
  printf 'Code is for %s. Results are compared with the reference evaluator, and for plans with the host.\n\n' "$arch"
  printf '| model | result | median ms, with copies | ms on the host |\n|---|---|---|---|\n'
} >"$page"
printf '{"gpu": "%s", "arch": "%s", "models": [' "$gpu" "$arch" >"$json"

median() {
  "$irc" bench "$@" --time 2 --json 2>>"$out/log" | sed -n 's/^ *"median_ms": \([0-9.e+-]*\),*$/\1/p'
}

for model in "${models[@]}"; do
  name=$(basename "$model")
  results=()
  reference=(--backend reference)
  case $name in
  *.plan.json) reference=() ;;
  *.model.json) results=(--results outputs) ;;
  esac
  outcome=agrees
  device=
  host=
  # A model without code for GPUs is a row of the page, not the end of it.
  if ! "$irc" compile "$model" -o "$out/kernel.so" --backend cuda --arch "$arch" 2>"$out/why"; then
    outcome="not compiled: $(head -n 1 "$out/why" | tr -d '|"\\')"
  elif ! "$irc" run "$model" --seed 1 "${results[@]}" "${reference[@]}" --outputs "$out/expected.npz" 2>"$out/why"; then
    outcome="no reference: $(head -n 1 "$out/why" | tr -d '|"\\')"
  elif ! "$irc" run "$out/kernel.so" --backend "$engine" --seed 1 --expected "$out/expected.npz" >"$out/why" 2>&1; then
    outcome="differs: $(head -n 1 "$out/why" | tr -d '|"\\')"
    failed=1
  elif [[ $engine == cuda ]]; then
    device=$(median "$out/kernel.so")
    host=$(median "$model")
  fi
  printf '| %s | %s | %s | %s |\n' "$name" "$outcome" "${device:--}" "${host:--}" >>"$page"
  printf '%s\n  {"model": "%s", "result": "%s", "device_ms": %s, "host_ms": %s}' \
    "$separator" "$name" "$outcome" "${device:-null}" "${host:-null}" >>"$json"
  separator=,
done
printf '\n]}\n' >>"$json"
cat "$page"
exit "$failed"
