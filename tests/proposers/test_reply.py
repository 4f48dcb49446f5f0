"""Replies as real models write them, and what is said about the useless ones."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.proposers.reply import Unusable, read_reply

from .requests import SOURCE

BARE = """class ModelNew(nn.Module):
    def forward(self, x):
        return F.relu(torch.neg(x))
"""
RECORD = """/* kernelpro-launch
{"inputs": ["x"], "outputs": {"y": {}}, "launches":
 [{"function": "twice", "arguments": ["x", "y", "x.numel()"]}]}
*/
#include <cstdint>
extern "C" void twice(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
}
"""


@pytest.mark.parametrize(
    "reply",
    [
        f"```python\n{SOURCE}```",
        f"Here is the kernel:\n\n```py\n{SOURCE}\n```\nIt is fast.",
        f"````Python title=mine.py\n{SOURCE}````",
        f"~~~\n{SOURCE}~~~",
        f"  ```python\n{SOURCE}  ```",
        SOURCE,
        f"<think>```python\nclass ModelNew: wrong\n```</think>\n```python\n{SOURCE}```",
        f"An old one:\n```python\nclass ModelNew: pass\n```\nBetter:\n```python\n{SOURCE}```",
        f"```cpp\nint main() {{}}\n```\n```python\n{SOURCE}```\n```sh\npython x.py\n```",
        f"```python\n{SOURCE}",
        f"```python\r\n{SOURCE}```".replace("\n", "\r\n").replace("\r\r", "\r"),
    ],
)
def test_the_file_is_found(reply):
    assert read_reply(reply, None).source.strip() == SOURCE.strip()


def test_headers_in_many_dresses():
    reply = (
        "**Title:** fused loop\n- Answers: `thread_scaling`, simd_width.\n> Move: Use Threads\n\n"
        f"One pass is enough.\n\n```python\nTitle = 1\n{SOURCE}```"
    )
    answer = read_reply(reply, None)
    assert answer.title == "fused loop"
    assert answer.answers == ("thread_scaling", "simd_width")
    assert answer.move == "use_threads"
    assert answer.rationale == "One pass is enough."
    none = read_reply(f"Answers: none\nMove: none\n```python\n{SOURCE}```", None)
    assert (none.title, none.answers, none.move) == ("", (), None)


def test_forgotten_imports_are_added_after_what_must_come_first():
    head = '"""Doc."""\n\nfrom __future__ import annotations\n'
    source = read_reply(f"```python\n{head}\n{BARE}```", None).source
    assert source.startswith(head)
    for line in ("import torch\n", "import torch.nn as nn", "import torch.nn.functional as F"):
        assert source.count(line) == 1
    compile(source, "candidate", "exec")


def test_a_file_split_in_blocks_is_joined():
    first = "import torch\nSCALE = 2.0\n"
    second = (
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x * SCALE\n"
    )
    source = read_reply(f"```python\n{first}```\nand\n```python\n{second}```", None).source
    assert "SCALE = 2.0" in source
    assert source.index("SCALE =") < source.index("class ModelNew")


def test_a_bare_source_with_a_launch_record_is_wrapped():
    source = read_reply(f"```cpp\n{RECORD}```", None).source
    ast.parse(source)
    assert "inline.cpp(SOURCE" in source


@pytest.mark.parametrize(
    ("reply", "parent", "cut_off", "said"),
    [
        ("I am sorry.", None, False, "no code block"),
        ("```cpp\nint x;\n```\n```\nfoo\n```", None, False, r"2 code blocks \(cpp, no language\)"),
        ("```python\nclass ModelNew(:\n```", None, False, r"not valid Python \(line 1"),
        ("```python\nclass ModelNew:\n    def forward(self", None, True, "cut off"),
        ("Thinking about", None, True, "cut off .* before any code"),
        ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE", None, False, "no version was given"),
        ("<<<<<<< SEARCH\nzzz\n=======\nb\n>>>>>>> REPLACE", SOURCE, False, "block 1"),
        ("<<<<<<< SEARCH\nzzz\n", SOURCE, False, "1 SEARCH blocks begin"),
        (f"```cpp\n{RECORD.replace('twice(', 'once(')}```", None, False, "launch record"),
        ("", None, False, "no code block"),
    ],
)
def test_useless_replies_are_explained(reply, parent, cut_off, said):
    with pytest.raises(Unusable, match=said):
        read_reply(reply, parent, cut_off=cut_off)


@given(st.text(), st.booleans())
def test_any_text_is_read_or_refused(text, cut_off):
    try:
        assert read_reply(text, SOURCE, cut_off=cut_off).source
    except Unusable as error:
        assert str(error)
