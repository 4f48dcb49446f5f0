"""Random element-wise and normalising expressions: generated kernels agree with torch."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.proposers.playbook.candidates import compare, problem

from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs

LEAVES = ("x", "y", "r", "c", "s", "x.t().contiguous().t()")
UNARY = ("torch.tanh({a})", "torch.sigmoid({a})", "F.gelu({a})", "({a}).abs()", "-({a})",
         "F.relu({a})", "torch.exp(-({a}).abs())", "torch.log1p(({a}).abs())", "({a}) * 2 - 1",
         "({a}).clamp(-1, 1)", "torch.sin({a})", "F.silu({a})")  # fmt: skip
BINARY = ("({a}) + ({b})", "({a}) - ({b})", "({a}) * ({b})", "({a}) / (1 + ({b}).abs())",
          "torch.maximum({a} + 0 * x, {b} + 0 * x)", "torch.where(x > 0, {a}, {b})")  # fmt: skip
REDUCING = ("({a} + 0 * x).mean({d}, keepdim=True)", "({a} + 0 * x).amax({d}, keepdim=True)",
            "torch.softmax({a} + 0 * x, {d})", "({a} + 0 * x).sum({d}, keepdim=True)")  # fmt: skip
INPUTS = (
    "x = torch.randn({n}, {m}); y = torch.randn({n}, {m}); r = torch.randn({m}); "
    "c = torch.randn({n}, 1); s = torch.tensor(0.3)"
)


expressions = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(lambda f, a: f.format(a=a), st.sampled_from(UNARY), inner),
        st.builds(lambda f, a, b: f.format(a=a, b=b), st.sampled_from(BINARY), inner, inner),
        st.builds(
            lambda f, a, d: f.format(a=a, d=d), st.sampled_from(REDUCING), inner,
            st.sampled_from((0, 1)),
        ),
    ),
    max_leaves=7,
)  # fmt: skip


@pytest.mark.slow
@settings(
    max_examples=25, deadline=None, derandomize=True, database=None,
    phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(
    st.lists(expressions, min_size=2, max_size=4), st.integers(1, 40), st.integers(1, 150),
    st.sampled_from([CpuKnobs(), CpuKnobs(lanes=8, staging="all"), CpuKnobs(grouping="vertical")]),
)  # fmt: skip
def test_random_expressions(texts: list[str], n: int, m: int, knobs: CpuKnobs) -> None:
    body = f"return ({', '.join(f'{t} + 0 * s' for t in texts)},)"
    compare(problem(body, INPUTS.format(n=n, m=m)), knobs)
