"""A hundred element-wise operators on 64 MiB, recorded once and replayed as a graph."""

CASE = {"fault": None, "severity": "clean", "system": True}


def make():
    import torch

    x = torch.randn(1 << 24, device="cuda")

    def work():
        y = x
        for _ in range(50):
            y = torch.relu(y * 1.01)
        return y

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay
