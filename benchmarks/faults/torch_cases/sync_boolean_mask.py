"""Boolean-mask selection in a loop: the size of every result is fetched to the host."""

CASE = {"fault": "host_synchronization", "severity": "mild", "also": [], "system": True}


def make():
    import torch

    x = torch.randn(1 << 22, device="cuda")

    def call():
        total = torch.zeros((), device="cuda")
        for k in range(8):
            total = total + x[x > 0.2 * k].sum()
        return total

    return call
