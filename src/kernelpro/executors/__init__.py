"""Where work runs: this machine's devices, a Ray cluster, Slurm, or whoever reads a folder.

Transports only: they carry jobs and results and know nothing of kernels.
"""
