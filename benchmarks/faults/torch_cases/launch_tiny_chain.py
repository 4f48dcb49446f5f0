"""Two hundred element-wise operators on a vector of 4096 floats, one launch each."""

CASE = {"fault": "launch_overhead", "severity": "severe", "also": [], "system": True}


def make():
    import torch

    x = torch.randn(4096, device="cuda")

    def call():
        y = x
        for _ in range(100):
            y = torch.relu(y * 1.01)
        return y

    return call
