"""Dense half-precision product through cuBLAS."""

CASE = {"fault": None, "severity": "clean", "matmul": True}


def make():
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    return lambda: a @ b
