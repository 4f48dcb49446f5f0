"""A convolution left to cuDNN with bias, activation and scaling as operators of their own."""

CASE = {
    "fault": "library_call",
    "severity": "mild",
    "also": ["tensor_core_underutilization"],
    "system": True,
    "matmul": True,
}


def make():
    import torch

    x = torch.randn(32, 64, 112, 112, device="cuda")
    conv = torch.nn.Conv2d(64, 128, 3, padding=1).cuda()

    def call():
        with torch.no_grad():
            return torch.sigmoid(conv(x)) * 2.0

    return call
