"""C++ for fused kernels: OpenMP and vector extensions. Entry point: ``body.cpu_body``."""
