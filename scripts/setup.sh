#!/usr/bin/env bash
# Creates the virtual environment with kernelpro and the extras named (`setup.sh dev`). Where the base Python already has torch (GPU images), it is
# used as it is; otherwise torch is installed.
set -euo pipefail
python=${PYTHON:-python3}
venv=${VENV:-.venv}
torch=${TORCH:-torch}
extras=${1:-dev}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "kernelpro needs Python 3.11 or newer; '$python' is $("$python" -V 2>&1). Set PYTHON=..." >&2
  exit 2
}
if [ ! -x "$venv/bin/python" ]; then
  if "$python" -c 'import torch' 2>/dev/null; then
    "$python" -m venv --system-site-packages "$venv"
  else
    "$python" -m venv "$venv"
  fi
fi
"$venv/bin/python" -c 'import torch' 2>/dev/null ||
  "$venv/bin/python" -m pip install -q "$torch" numpy
"$venv/bin/python" -m pip install -q -e ".[$extras]"
"$venv/bin/kernelpro" --version
