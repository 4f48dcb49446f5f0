"""Matrix products for Hopper: TMA, mbarrier pipelines, wgmma, warp specialisation.

Header-free CUDA with inline PTX, so that NVRTC builds it in about a second. Runs on compute
capability 9.0 only.
"""
