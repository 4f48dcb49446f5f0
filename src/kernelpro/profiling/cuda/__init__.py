"""CUDA collectors: Nsight Compute reports, SASS, resources, timelines. Facts only, no advice.

Metrics carry the canonical names of ``diagnosis.cuda_metrics``, in base units. Whatever could not
be had is a ``Missing`` with its reason; zero always means "looked, found none".

``KernelProfile.instructions`` holds static instruction counts of one kernel function by class
(``profiling.cuda.sass_classes``); keys with the prefix ``hot.`` count the hottest loop alone.
"""
