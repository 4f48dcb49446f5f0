"""Iteration that asks for the residual as a Python number after every step."""

CASE = {"fault": "host_synchronization", "severity": "severe", "also": [], "system": True}


def make():
    import torch

    a = torch.randn(2048, 2048, device="cuda") / 2048
    b = torch.randn(2048, 64, device="cuda")

    def call():
        x = torch.zeros_like(b)
        for _ in range(40):
            r = b - a @ x - x
            x = x + 0.5 * r
            if r.norm().item() < 1e-9:
                break
        return x

    return call
