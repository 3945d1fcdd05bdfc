#!/bin/sh
# All figures of a GPU in one command of under ten minutes, on the machine that has it:
#
#     sh benchmarks/gpu.sh [PYTHON] [MORE MODELS]
#
# Results go to benchmarks/results/gpu.json, and those of MuJoCo Warp, where it is installed, to
# gpu_warp.json: it runs alone, since it prints and compiles while others are measured.
set -e
cd "$(dirname "$0")/.."
python="${1:-.venv/bin/python}"
[ $# -gt 0 ] && shift
out="${OUT:-benchmarks/results}"
export PYTHONPATH=.:benchmarks
"$python" benchmarks/gpu.py --minutes 6 --check --profile --json "$out/gpu.json" \
  --models humanoid quadruped pile "$@"
if "$python" -c "import mujoco_warp" 2>/dev/null; then
  JAX_PLATFORMS=cpu "$python" benchmarks/gpu.py --minutes 3 --threads 1 --forms warp \
    --json "$out/gpu_warp.json" --worlds 8192 65536 --models humanoid quadruped pile | grep steps/s
fi
