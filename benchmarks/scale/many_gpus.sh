#!/usr/bin/env bash
# A campaign over every GPU of one machine, and how busy they were. Needs two GPUs or more.
# See docs/scale.md.
#
#   many_gpus.sh OUT [PROBLEM...]      default problems: examples/*.py
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
shift
PYTHON=${PYTHON:-python3}
problems=("$@")
[ ${#problems[@]} -gt 0 ] || problems=(examples/*.py)
"$PYTHON" -c 'import torch; n = torch.cuda.device_count(); print(n, "GPUs"); exit(n < 2)'
"$PYTHON" -m kernelpro campaign run "$out/campaign" "${problems[@]}" --executor local \
    --evaluations "${EVALUATIONS:-16}" --parallel 4 --json >"$out/many_gpus.json"
"$PYTHON" -m kernelpro campaign show "$out/campaign"
"$PYTHON" - "$out/many_gpus.json" <<'PY'
import json, sys

page = json.load(open(sys.argv[1]))
used = page["utilisation"]
assert len(used["devices"]) >= 2, used["devices"]
print("busy shares:", [round(d["busy_share"], 3) for d in used["devices"]])
PY
