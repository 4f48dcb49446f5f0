"""Few large element-wise operators, no synchronisation."""

CASE = {"fault": None, "severity": "clean", "system": True}


def make():
    import torch

    x = torch.randn(1 << 28, device="cuda")
    y = torch.empty_like(x)

    def call():
        torch.mul(x, 1.5, out=y)
        torch.add(y, x, out=y)
        return y

    return call
