"""Replaying a plan's launches as one CUDA graph: what is added to the candidate file.

A graph knows addresses, and every call comes with new ones. So it works on buffers of its own:
inputs are copied in, results are copied out, which costs a launch for each of them and their
traffic. That pays only where many short kernels wait for the host, which ``worthwhile`` looks at.
Parameters are read where they are: new values count, and a new address is a new recording.
"""

from __future__ import annotations

from kernelpro.proposers.playbook.plan.ir import AtenCall, MatmulKernel, Plan

RECORDINGS = 4
"""Streams and sets of parameter addresses that are remembered (chosen)."""

HELPERS = f'''\
class _Graphs(dict):
    """Recordings by stream and state; a copy of the model starts without any."""

    def __reduce__(self):
        return _Graphs, ()


def _record(run, inputs, state):
    """(graph, its inputs, its results): ``run`` recorded on buffers that nobody else has."""
    with _torch.cuda.device((*inputs, *state)[0].device):
        held = [_torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
                for t in inputs]
        for to, t in zip(held, inputs):
            to.copy_(t)
        run(*held, *state)  # loads and plans what cannot be while a graph is recorded
        _torch.cuda.synchronize()
        graph = _torch.cuda.CUDAGraph()
        with _torch.cuda.graph(graph, capture_error_mode="thread_local"):
            results = run(*held, *state)
    return graph, held, results


def _copied(results):
    """``results`` in memory of their own: the next replay writes over the graph's."""
    if isinstance(results, _torch.Tensor):
        return results.clone()
    if isinstance(results, dict):
        return {{key: _copied(value) for key, value in results.items()}}
    if isinstance(results, (tuple, list)):
        return type(results)(_copied(value) for value in results)
    return results


def _replay(graphs, run, inputs, state):
    """The results of ``run(*inputs, *state)`` by replaying its graph of this stream and state."""
    if _torch.cuda.is_current_stream_capturing():
        return run(*inputs, *state)
    device = (*inputs, *state)[0].device
    key = (_torch.cuda.current_stream(device).cuda_stream, *(t.data_ptr() for t in state))
    if key not in graphs:
        if len(graphs) >= {RECORDINGS}:
            graphs.clear()
        graphs[key] = (*_record(run, inputs, state), state)  # state stays alive with its graph
    graph, held, results, _ = graphs[key]
    for to, t in zip(held, inputs):
        to.copy_(t)
    with _torch.cuda.device(device):
        graph.replay()
    return _copied(results)
'''
"""Module-level Python of a candidate that replays."""


def replayable(plan: Plan) -> bool:
    """True if the plan changes nothing in place and brings no data from the host."""
    host = any(buffer.kind == "constant" for buffer in plan.buffers.values())
    given = any(buffer.kind in ("input", "parameter", "buffer") for buffer in plan.buffers.values())
    return not plan.mutations and not host and given


def worthwhile(plan: Plan, *, own_products: bool) -> bool:
    """True if one replay, with its copies, is fewer launches than the plan's own.

    ``own_products``: matrix products and what follows them are one kernel, not two.
    """
    launches = 0
    for step in plan.steps:
        if isinstance(step, MatmulKernel) and step.epilogue is not None:
            launches += 1 if own_products else 2
        else:
            launches += not (isinstance(step, AtenCall) and step.view)
    tensors = len(plan.inputs) - len(plan.scalars)
    return replayable(plan) and launches > tensors + len(plan.outputs) + 1


def method(number: int, inputs: int) -> list[str]:
    """Lines of the method that replays graph ``number``, whose first ``inputs`` are its inputs."""
    return [
        f"    def _replayed_{number}(self, *given):",
        f'        graphs = self.__dict__.setdefault("_graphs_{number}", _Graphs())',
        f"        inputs, state = given[:{inputs}], given[{inputs}:]",
        f"        return _replay(graphs, self._native_{number}, inputs, state)",
    ]
