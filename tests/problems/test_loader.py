"""Loading problems from files and class paths, and the errors a user sees."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest
import torch

from kernelpro.errors import UserError
from kernelpro.problems import check_problem, load_problem
from kernelpro.problems.instantiate import ProblemModule
from kernelpro.schema.problem import Problem
from kernelpro.text import content_hash

GOOD = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, size=3, bias=True):
        super().__init__()
        self.linear = nn.Linear(size, 2, bias=bias)

    def forward(self, x):
        return self.linear(x)

def get_inputs():
    return [torch.randn(4, 3)]

def get_init_inputs():
    return []
"""


def load(tmp_path: Path, source: str, **options: object) -> Problem:
    path = tmp_path / "my_problem.py"
    path.write_text(source)
    return load_problem(path, **options)  # type: ignore[arg-type]


def refused(tmp_path: Path, source: str, *, check: bool = False) -> str:
    with pytest.raises(UserError) as failure:
        problem = load(tmp_path, source)
        if check:
            check_problem(problem)
    message = str(failure.value)
    assert "Traceback" not in message
    assert "my_problem.py" in message
    return message


def test_a_file(tmp_path: Path) -> None:
    problem = load(tmp_path, GOOD)
    assert (problem.name, problem.kind, problem.precision) == ("my_problem", "file", "strict")
    assert problem.source_hash == content_hash(GOOD)
    check_problem(problem)


def test_a_problem_passes_through(tmp_path: Path) -> None:
    problem = load(tmp_path, GOOD)
    assert load_problem(problem) is problem


def test_precision_and_input_sets(tmp_path: Path) -> None:
    extra = "PRECISION = 'tf32'\nINPUT_SETS = [get_inputs, lambda: [torch.randn(1, 3)]]\n"
    problem = load(tmp_path, GOOD + extra)
    assert (problem.precision, problem.input_sets) == ("tf32", 2)
    module = ProblemModule(problem)
    assert [module.make_inputs(i)[0].shape[0] for i in (0, 1)] == [4, 1]
    with pytest.raises(UserError, match="no input set 2"):
        module.make_inputs(2)
    assert load(tmp_path, GOOD + extra, precision="half").precision == "half"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("class Model", "class Modle"), "there is no class Model"),
        (("def get_inputs", "def inputs"), "no function get_inputs()"),
        (("def get_init_inputs", "def init_inputs"), "no function get_init_inputs()"),
        (("import torch\n", "import torhc\n"), "Install 'torhc'"),
        (("return [torch.randn(4, 3)]", "return [torch.randn(4, 3)"), "SyntaxError"),
        (("def get_inputs", "1 / 0\ndef get_inputs"), "at line 13 (1 / 0): ZeroDivisionError"),
        (("def get_inputs", "exit(3)\ndef get_inputs"), "SystemExit"),
        (("def get_inputs", "import os\nos._exit(0)\ndef get_inputs"), "os._exit(0)"),
        (("def get_inputs", "PRECISION = 'bf16'\ndef get_inputs"), "PRECISION is 'bf16'; use"),
        (("def get_inputs", "INPUT_SETS = 3\ndef get_inputs"), "INPUT_SETS must be"),
        (("class Model", "def Model(x):\n    return x\nclass Other"), "not a class"),
    ],
)
def test_incomplete_files(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    assert expected in refused(tmp_path, GOOD.replace(*change))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("return self.linear(x)", "raise ValueError('boom')"), "line 11 (raise ValueError"),
        (("[torch.randn(4, 3)]", "torch.randn(4, 3)"), "returned Tensor; return a list"),
        (("[torch.randn(4, 3)]", "[]"), "returned an empty list"),
        (("[torch.randn(4, 3)]", "[1, 'a']"), "returned no tensor"),
        (("[torch.randn(4, 3)]", "[torch.randn(4, 5)]"), "Check get_inputs() against"),
        (("[torch.randn(4, 3)]", "[torch.randn(4, 3, device='cuda:77')]"), "get_inputs() failed"),
        (("[torch.randn(4, 3)]", "[torch.empty(4, 3, device='meta')]"), "on the meta device"),
        (("    return []", "    return [3, True, 5]"), "constructing Model failed"),
        (("    return []", "    return 3"), "get_init_inputs() returned int"),
        (("return self.linear(x)", "return 'text'"), "nothing to compare"),
        (("(nn.Module)", ""), "is not a torch.nn.Module"),
    ],
)
def test_check_problem_names_the_fault(
    tmp_path: Path, change: tuple[str, str], expected: str
) -> None:
    assert expected in refused(tmp_path, GOOD.replace(*change), check=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[5]", ((5,), {})),
        ("(5, False)", ((5, False), {})),
        ("{'size': 5}", ((), {"size": 5})),
        ("[[5], {'bias': False}]", ((5,), {"bias": False})),
        ("[]", ((), {})),
    ],
)
def test_constructor_arguments(tmp_path: Path, text: str, expected: object) -> None:
    source = GOOD.replace("    return []", f"    return {text}")
    module = ProblemModule(load(tmp_path, source))
    assert module.init_args() == expected
    module.make_model()


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load_problem(tmp_path / "absent.py")
    with pytest.raises(UserError, match="is a folder"):
        load_problem(tmp_path)
    binary = tmp_path / "binary.py"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(UserError, match="not UTF-8"):
        load_problem(binary)
    with pytest.raises(UserError, match=r"3 \(int\) is not a problem"):
        load_problem(3)  # type: ignore[arg-type]


def test_a_file_does_not_take_inputs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="makes its own"):
        load(tmp_path, GOOD, inputs=[torch.randn(1)])


def test_a_class_in_a_package_with_relative_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shop_of_models"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("SIZE = 3\n")
    body = GOOD.replace("class Model", "class Tower").replace("(4, 3)", "(4, SIZE)")
    (package / "towers.py").write_text("from .sizes import SIZE\n" + body)
    monkeypatch.syspath_prepend(str(tmp_path))
    problem = load_problem("shop_of_models.towers:Tower")
    assert (problem.kind, problem.reference_class) == ("class", "Tower")
    assert "from shop_of_models.sizes import SIZE" in problem.source
    check_problem(problem)
    with pytest.raises(UserError, match="there is no class Spire"):
        load_problem("shop_of_models.towers:Spire")


def test_unknown_modules() -> None:
    with pytest.raises(UserError, match="no module 'nowhere_to_be_found'"):
        load_problem("nowhere_to_be_found:Model")
    with pytest.raises(UserError, match="finding module"):
        load_problem("nowhere_to_be_found.inner:Model")
    with pytest.raises(UserError, match="no Python source"):
        load_problem("math:Model")


def test_source_can_be_found_by_inspect_and_the_module_by_name(tmp_path: Path) -> None:
    module = ProblemModule(load(tmp_path, GOOD))
    model = module.make_model()
    assert "self.linear(x)" in inspect.getsource(type(model))
    assert sys.modules[type(model).__module__] is module.module


def test_a_failed_import_leaves_no_module_behind(tmp_path: Path) -> None:
    before = {name for name in sys.modules if name.startswith("kernelpro_problem_")}
    refused(tmp_path, "1 / 0\n")
    assert {name for name in sys.modules if name.startswith("kernelpro_problem_")} == before


def test_inputs_are_drawn_from_the_current_seed(tmp_path: Path) -> None:
    module = ProblemModule(load(tmp_path, GOOD))
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(module.make_inputs()[0])
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
