"""Graph to fused kernels: device-independent. Entry point: ``build.make_plan``."""
