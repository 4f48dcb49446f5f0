"""Forty small layers (128 x 256) of linear, bias and activation, in eager mode."""

CASE = {"fault": "launch_overhead", "severity": "mild", "also": [], "system": True}


def make():
    import torch

    x = torch.randn(128, 256, device="cuda")
    weights = [torch.randn(256, 256, device="cuda") * 0.06 for _ in range(40)]
    biases = [torch.randn(256, device="cuda") for _ in range(40)]

    def call():
        y = x
        for weight, bias in zip(weights, biases, strict=True):
            y = torch.tanh(y @ weight + bias)
        return y

    return call
