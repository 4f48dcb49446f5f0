"""Decides which captured kernel is the candidate's own, and says how. Names only, no timing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernelpro.schema.profile import KernelOrigin

_LIBRARY = re.compile(
    r"cublas|cudnn|cusparse|cusolver|cufft|curand|nvjet|xmma|_gemm_(f|h|s|t)\w*_\d+x\d+|"
    r"(ampere|volta|turing|sm\d\d|hopper|blackwell)_\w*(gemm|conv|s1688|s16816|h884|wgrad|dgrad|"
    r"fprop|sgemm)|\bcub::|DeviceReduceKernel|\bthrust::|gemv\w*_kernel|gemvNSP|gemv2[TN]|"
    r"gemmSN|splitKreduce|\bnccl\w*|implicit_convolve|winograd|magma_|cask_|\bcutlass_\d+_",
    re.IGNORECASE,
)
_FRAMEWORK = re.compile(
    r"\bat::|at_cuda_detail|\bc10::|elementwise_kernel|vectorized_elementwise|reduce_kernel<|"
    r"CatArrayBatched|distribution_elementwise|FillFunctor|softmax_warp_|\btriton_(poi|red|per)_|"
    r"\bpytorch_flash::|fmha_cutlass|torch::"
)
_COPY = re.compile(r"^\[?(CUDA )?mem(cpy|set)", re.IGNORECASE)


def base_name(kernel: str) -> str:
    """The bare function name of a demangled signature or a mangled name.

    ``void ns::k<float, 4>(float*, int)`` and ``_ZN2ns1kIfLi4EEEvPfi`` are both ``k``.
    """
    if kernel.startswith("_Z"):
        return _mangled_base(kernel)
    text = _without_brackets(kernel)
    text = text.split("(")[0].strip()
    return text.split(" ")[-1].split("::")[-1]


def _without_brackets(text: str) -> str:
    """Drop template arguments, nested ones included."""
    kept, depth = [], 0
    for character in text.replace("(anonymous namespace)", "anonymous"):
        if character == "<":
            depth += 1
        elif character == ">" and depth:
            depth -= 1
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def _mangled_base(name: str) -> str:
    """Last identifier of the nested name of an Itanium-mangled symbol."""
    rest = name[2:]
    nested = rest.startswith("N")
    rest = rest[1:] if nested else rest
    found = ""
    while match := re.match(r"(?:K|L|St|_)?(\d+)", rest):
        length = int(match.group(1))
        found = rest[match.end() : match.end() + length]
        rest = rest[match.end() + length :]
        if not nested:
            break
    return found or name


def origin(kernel: str, entry_points: Iterable[str] = ()) -> KernelOrigin:
    """Where ``kernel`` comes from. A candidate's own entry point wins over every pattern."""
    own = set(entry_points)
    if kernel in own or base_name(kernel) in {base_name(name) for name in own}:
        return "candidate"
    if _COPY.search(kernel):
        return "copy"
    if _FRAMEWORK.search(kernel):
        return "framework"
    if _LIBRARY.search(kernel):
        return "library"
    return "unknown"


def choose(
    kernels: Sequence[tuple[str, float | None]], entry_points: Iterable[str] = ()
) -> tuple[tuple[KernelOrigin, ...], str]:
    """Origins of ``kernels`` (name, time in us) and a sentence that names the chosen one.

    With known entry points only those are the candidate's. Without, a kernel that no library or
    framework pattern claims is taken for the candidate's, and the sentence says that it was
    inferred. The chosen one is the candidate's kernel with the most time.
    """
    own = tuple(entry_points)
    origins = [origin(name, own) for name, _ in kernels]
    inferred = "candidate" not in origins and "unknown" in origins
    if inferred:
        origins = ["candidate" if o == "unknown" else o for o in origins]
    mine = [(time or 0.0, name) for (name, time), o in zip(kernels, origins, strict=True)
            if o == "candidate"]  # fmt: skip
    if not kernels:
        return (), "no kernel was captured"
    if not mine:
        hottest = max(kernels, key=lambda kernel: kernel[1] or 0.0)[0]
        return tuple(origins), (
            f"no kernel of the candidate's own was captured; the hottest one is {hottest}, "
            "which comes from a library or the framework"
        )
    name = max(mine)[1]
    how = (
        "inferred: no library or framework pattern matches its name"
        if inferred
        else "its name is an entry point that the candidate built"
    )
    others = f"; {len(mine) - 1} more of the candidate's kernels ran" if len(mine) > 1 else ""
    return tuple(origins), f"{base_name(name)} is the candidate's ({how}){others}"
