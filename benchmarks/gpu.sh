#!/usr/bin/env bash
# Everything docs/cuda.md reports, on any machine with an NVIDIA GPU:
#
#   benchmarks/gpu.sh                     all steps, some forty minutes
#   benchmarks/gpu.sh tests examples      the steps named
#
# Steps: tests, exploits, examples, timing, kernelbench (needs a checkout in third_party/KernelBench).
# A step that fails or runs over its limit does not end the others; the exit code says how many did.
# OUT: where records go (default benchmarks/results). LIMIT_S: seconds a step may take (default 900).
# PYTHON: the interpreter (default .venv/bin/python).
set -u
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
out=${OUT:-benchmarks/results}
limit=${LIMIT_S:-900}
name=$("$python" -c 'import torch; print(torch.cuda.get_device_name(0))' 2>/dev/null) || {
    echo "No NVIDIA GPU that torch can use: see '$python -m kernelpro doctor'" >&2
    exit 5
}
# "NVIDIA H200" -> h200, as the records under benchmarks/results are named.
tag=$(echo "$name" | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')
mkdir -p "$out"
failed=0

step() {
    local title=$1
    shift
    local began=$SECONDS
    echo "== $title"
    timeout -k 10 "$limit" "$@" || {
        echo "== $title: exit code $? after $((SECONDS - began)) s" >&2
        failed=$((failed + 1))
    }
}

[ $# -gt 0 ] || set -- tests exploits examples timing kernelbench
for what in "$@"; do
    case $what in
    tests) step tests "$python" -m pytest -q -m gpu tests ;;
    exploits) step exploits "$python" -m kernelpro.testing.exploits --device cuda \
        --json "$out/referee_suite_$tag.json" ;;
    examples) step examples "$python" benchmarks/examples.py --device cuda --evaluations 30 \
        --out "$out/$tag-examples.json" ;;
    timing) step timing "$python" benchmarks/timing.py --device cuda --json "$out/$tag-timing.json" ;;
    kernelbench)
        if [ -d third_party/KernelBench ]; then
            step kernelbench "$python" benchmarks/kernelbench/throughput.py \
                --output "$out/$tag-kernelbench-throughput.json"
        else
            echo "== kernelbench: skipped, third_party/KernelBench is not there" >&2
        fi
        ;;
    *)
        echo "Unknown step '$what': tests, exploits, examples, timing, kernelbench" >&2
        exit 2
        ;;
    esac
done
exit "$failed"
