#!/bin/sh
# One sitting's slice of the KernelBench suite; what is done stays done, so call it until nothing is
# pending. Results accumulate under benchmarks/results/kernelbench/<precision>/.
#
#   benchmarks/kernelbench/slice.sh strict 1 8              level 1, eight minutes
#   benchmarks/kernelbench/slice.sh half 2 8 --shard 1/4    any further option of the command
#
# KERNELBENCH: the checkout (default third_party/KernelBench). PYTHON: the interpreter. OUT: if
# set, a copy of the records goes there, for machines that hand back one folder; run folders are
# left out of it (they are large), the winners' sources and raw samples are in it.
set -eu
precision=$1 level=$2 minutes=$3
shift 3
cd "$(dirname "$0")/../.."
suite=benchmarks/results/kernelbench/$precision
PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" "${PYTHON:-python}" -m kernelpro bench kernelbench \
    --root "${KERNELBENCH:-third_party/KernelBench}" --level "$level" --precision "$precision" \
    --output "$suite" --evaluations 6 --task-minutes 0.75 --limit-minutes "$minutes" "$@"
if [ -n "${OUT:-}" ]; then
    mkdir -p "$OUT/$precision"
    cp -r "$suite/suite.json" "$suite/tasks" "$suite/candidates" "$suite"/report.* "$OUT/$precision/"
fi
