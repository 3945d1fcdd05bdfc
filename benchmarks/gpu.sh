#!/bin/sh
# All figures of a GPU in one command of under ten minutes, on the machine that has it:
#
#     sh benchmarks/gpu.sh [PYTHON] [MORE MODELS]
#
# Measures each form and compares their states; results go to benchmarks/results/gpu.json.
set -e
cd "$(dirname "$0")/.."
python="${1:-.venv/bin/python}"
[ $# -gt 0 ] && shift
out="${OUT:-benchmarks/results}"
PYTHONPATH=. "$python" benchmarks/gpu.py --minutes 8.5 --json "$out/gpu.json" \
  --models humanoid quadruped pile "$@"
