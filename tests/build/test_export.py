"""An exported file runs with torch alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpro.build.export import MODULES, export_candidate
from kernelpro.errors import UserError

CANDIDATE = '''"""Doubles."""

from __future__ import annotations

import torch

{imports}

SOURCE = r"""
extern "C" int twice(const float* x, float* y, long n) {{
  for (long i = 0; i < n; i++) y[i] = 2 * x[i];
  return 0;
}}
"""
_module = {cpp}(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        _module.twice(x, y, x.numel())
        return y
'''
USES = (
    ("from kernelpro import inline", "inline.cpp"),
    ("from kernelpro import (\n    inline as native,\n)", "native.cpp"),
    ("from kernelpro.inline import cpp as build_cpp", "build_cpp"),
    ("import kernelpro.inline as loader", "loader.cpp"),
    ("import kernelpro.inline", "kernelpro.inline.cpp"),
)
RUNNER = """
import importlib.abc, runpy, sys

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "kernelpro":
            raise ModuleNotFoundError("kernelpro is not installed")

sys.meta_path.insert(0, Block())
import torch
for path in sys.argv[1:]:
    names = runpy.run_path(path)
    assert names["ModelNew"]()(torch.ones(3)).tolist() == [2.0, 2.0, 2.0], path
assert "kernelpro" not in sys.modules
"""


def test_exported_files_run_where_kernelpro_cannot_be_imported(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    paths = []
    for index, (imports, cpp) in enumerate(USES):
        path = tmp_path / f"candidate_{index}.py"
        path.write_text(export_candidate(CANDIDATE.format(imports=imports, cpp=cpp)))
        paths.append(str(path))
    environment = {**os.environ, "KERNELPRO_BUILD_DIR": str(tmp_path / "build")}
    subprocess.run([sys.executable, "-c", RUNNER, *paths], env=environment, check=True)


def test_docstring_future_imports_and_note_stay_where_python_wants_them() -> None:
    text = export_candidate(
        CANDIDATE.format(imports=USES[0][0], cpp=USES[0][1]), note="Made by kernelpro\nspeed-up 2"
    )
    assert text.startswith('# Made by kernelpro\n# speed-up 2\n"""Doubles."""')
    compile(text, "exported.py", "exec")
    assert "from kernelpro" not in text.replace("r'''", "")


def test_a_file_without_kernelpro_is_left_alone() -> None:
    source = "import torch\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
    assert export_candidate(source) == source


@pytest.mark.parametrize("line", ["from kernelpro import schema", "import kernelpro.testing",
                                  "from kernelpro.search.base import Strategy"])  # fmt: skip
def test_other_parts_of_kernelpro_cannot_be_carried(line: str) -> None:
    with pytest.raises(UserError, match="line 1 imports"):
        export_candidate(line)


def test_every_loader_module_travels() -> None:
    from kernelpro import inline

    folder = Path(inline.__file__).parent
    assert {f"{name or '__init__'}.py" for name in MODULES} == {p.name for p in folder.glob("*.py")}
