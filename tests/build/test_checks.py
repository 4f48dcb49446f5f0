"""Static checks reject what cannot be a candidate; hints only point."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.build.checks import CATEGORIES, MAX_SOURCE_BYTES, check_source, hints

GOOD = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""


@pytest.mark.parametrize("source", [
    GOOD,
    "from elsewhere import ModelNew",
    "class Base:\n    def forward(self, x): return x\nclass ModelNew(Base): pass",
    "import other\nclass ModelNew(other.Net): pass",
    "class A:\n    def forward(self): ...\nModelNew = A",
    "if True:\n    class ModelNew:\n        def forward(self): ...",
])  # fmt: skip
def test_admissible(source: str) -> None:
    assert check_source(source) == ()


@pytest.mark.parametrize(("source", "words"), [
    ("", "empty"),
    ("def f(:\n  pass", "syntax error at line 1, column"),
    ("class Model: pass", "No class 'ModelNew' at the top level (classes found: Model)"),
    ("def f():\n    class ModelNew:\n        def forward(self): ...", "top level"),
    ("import torch.nn as nn\nclass ModelNew(nn.Module): pass", "no method 'forward'"),
    ("class ModelNew(Loop): pass\nclass Loop(ModelNew): pass", "no method 'forward'"),
    ("x = '" + "a" * MAX_SOURCE_BYTES + "'", "at most"),
    ("a\0b", "syntax error|cannot|not Python"),
])  # fmt: skip
def test_problems_are_worded_for_the_writer(source: str, words: str) -> None:
    import re

    (problem,) = check_source(source)
    assert any(part in problem for part in words.split("|")) or re.search(words, problem)


def test_deep_nesting_is_refused_not_crashed_on() -> None:
    assert check_source("(" * 5000 + ")" * 5000)


@pytest.mark.parametrize(("line", "category"), [
    ("y = torch.matmul(x, x)", "library_call"), ("y = F.softmax(x, -1)", "library_call"),
    ("m = torch.compile(f)", "compile"), ("torch.allclose = lambda *a: True", "patching"),
    ("setattr(torch, 'allclose', f)", "patching"), ("g = getattr(torch, a + b)", "dynamic_lookup"),
    ("eval('1')", "dynamic_lookup"), ("import threading", "threads"),
    ("from concurrent.futures import ThreadPoolExecutor", "threads"), ("os.system('x')", "threads"),
    ("torch.backends.cuda.matmul.allow_tf32 = True", "global_flag"),
    ("torch.set_num_threads(9)", "global_flag"), ("s = torch.cuda.Stream()", "stream"),
    ("import gc", "introspection"), ("open('/etc/passwd')", "files"),
])  # fmt: skip
def test_hints(line: str, category: str) -> None:
    source = "import os\nimport torch\nimport torch.nn.functional as F\n" + line
    found = [(hint.category, hint.line) for hint in hints(source)]
    assert (category, 4) in found
    assert category in CATEGORIES


def test_clean_source_has_no_hints_and_fallback_is_seen() -> None:
    assert hints(GOOD) == ()
    guarded = GOOD.replace(
        "return x", "try:\n            return x\n        except E:\n            pass"
    )
    assert [hint.category for hint in hints(guarded)] == ["fallback"]
    assert all(check_source(GOOD + "\neval('1')") == () for _ in range(1))


@given(st.text(max_size=200))
def test_any_text_gets_a_verdict(source: str) -> None:
    problems = check_source(source)
    assert problems == () or all(problems)
