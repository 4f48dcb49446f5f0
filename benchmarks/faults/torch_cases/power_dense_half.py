"""Back-to-back dense half-precision products on random data: the board reaches its power limit."""

CASE = {
    "fault": "power_throttle",
    "severity": "severe",
    "also": [],
    "system": True,
    "sustain_s": 6.0,
    "matmul": True,
}


def make():
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def call():
        for _ in range(20):
            c = a @ b
        return c

    return call
