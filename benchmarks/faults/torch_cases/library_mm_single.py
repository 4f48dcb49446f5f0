"""A float32 matrix product left to cuBLAS, followed by one element-wise operator."""

CASE = {
    "fault": "library_call",
    "severity": "severe",
    "also": ["tensor_core_underutilization"],
    "system": True,
    "matmul": True,
}


def make():
    import torch

    a = torch.randn(4096, 4096, device="cuda")
    b = torch.randn(4096, 4096, device="cuda")

    def call():
        return torch.relu(a @ b)

    return call
