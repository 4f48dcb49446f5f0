"""CUDA back end of the playbook: plans to CUDA C++ with ``extern "C"`` kernels, text only."""
