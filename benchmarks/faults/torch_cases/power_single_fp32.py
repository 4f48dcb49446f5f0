"""Back-to-back TF32 products: near the board's power limit."""

CASE = {
    "fault": "power_throttle",
    "severity": "mild",
    "also": [],
    "system": True,
    "sustain_s": 6.0,
    "matmul": True,
}


def make():
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    a = torch.randn(8192, 8192, device="cuda")
    b = torch.randn(8192, 8192, device="cuda")

    def call():
        for _ in range(10):
            c = a @ b
        return c

    return call
