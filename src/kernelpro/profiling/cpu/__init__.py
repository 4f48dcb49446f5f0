"""CPU collectors: what a native candidate was compiled to, and how it ran. Facts only, no advice.

Static facts come from files (the object, the compiler's log); the candidate's code runs only in
an isolated subject, never in this process. Whatever could not be had is a ``Missing`` with its
reason. Zero always means "looked, found none".

Metrics of one native function (``KernelProfile.metrics``; "hot loop" = the innermost loop with
the most instructions per element, weighted by nesting depth; ``hot_loop`` says how):

=================================== ======== ===========================================
name                                unit     meaning
=================================== ======== ===========================================
``cpu.vector_bits``                 bit      widest packed FP arithmetic in the hot loop: 128,
                                             256, 512; 0 = scalar only
``cpu.packed_fp_share``             1        packed over all FP arithmetic instructions, hot loop
``cpu.fma_share``                   1        FMA over FMA + separate add/sub/mul, hot loop
``cpu.accumulators``                count    independent loop-carried FP accumulators, hot loop
``cpu.libm_calls_in_loop``          count    call sites of scalar libm functions inside any loop
``cpu.vector_math_calls_in_loop``   count    call sites of libmvec (``_ZGV*``) inside any loop
``cpu.other_calls_in_loop``         count    other call sites inside the hot loop
``cpu.loop_divisions``              count    FP divide and square root instructions, hot loop
``cpu.loop_gathers``                count    gather instructions, hot loop
``cpu.loop_scatters``               count    scatter instructions, hot loop
``cpu.loop_shuffles``               count    lane shuffles, permutes, inserts and extracts
``cpu.loop_loads``                  count    instructions with a memory source, hot loop
``cpu.loop_stores``                 count    instructions with a memory target, hot loop
``cpu.loop_spills``                 count    vector moves to or from the stack, hot loop
``cpu.loop_instructions``           count    instructions of one iteration of the hot loop
``cpu.loop_flops``                  flop     FLOPs of one iteration (lanes x operations, FMA = 2)
``cpu.non_temporal_stores``         count    streaming stores in the function
``cpu.scalar_loops``                count    innermost loops with FP arithmetic and none packed
                                             (remainder loops included)
``cpu.vector_loops``                count    innermost loops with packed FP arithmetic
``cpu.loops_vectorised``            count    innermost loops the compiler says it vectorised
``cpu.loops_missed``                count    innermost loops with FP arithmetic it did not, those
                                             vectorised by hand left out
``cpu.mca_ipc``                     1        llvm-mca: instructions per cycle of the hot loop
``cpu.mca_cycles_per_iteration``    cycle    llvm-mca: simulated cycles of one iteration
``cpu.mca_port_bound_cycles``       cycle    llvm-mca: bound by execution ports alone (block
                                             reciprocal throughput)
``cpu.mca_dependency_bound``        1        1 if latency of a carried dependency, not a port,
                                             limits the hot loop by llvm-mca
``cpu.uses_openmp``                 1        1 if the object calls the OpenMP runtime
=================================== ======== ===========================================

Metrics of the whole call (``SystemProfile.metrics``):

=================================== ======== ===========================================
``cpu.threads_available``           count    threads the call was given
``cpu.threads_used``                count    CPU time over the busiest thread's: threads at work
                                             at once, spinning included (may be fractional)
``cpu.thread_speedup``              1        latency with one thread over latency with all
``cpu.single_thread_us``            us       latency of a call with one thread
``cpu.call_us``                     us       latency of a call (the referee's median if timed)
``cpu.achieved_gb_s``               GB/s     compulsory bytes over latency (1e9 bytes)
``cpu.achieved_flops``              FLOP/s   the graph's FLOPs over latency
``cpu.bandwidth_share``             1        achieved over measured copy bandwidth
``cpu.flops_share``                 1        achieved over measured float32 FMA peak
``cpu.working_set_bytes``           byte     compulsory bytes of one call
``cpu.framework_time_share``        1        share of the call inside framework operators
``cpu.native_time_share``           1        share of the call in the candidate's native functions
``cpu.framework_calls``             count    framework operators in one call, nested included
``cpu.page_faults_per_call``        count    minor page faults of one call (fresh temporaries)
``cpu.context_switches_per_call``   count    voluntary and involuntary switches of one call
``cpu.denormal_input_share``        1        share of floating-point input elements that are
                                             subnormal
``cpu.denormal_output_share``       1        the same for outputs
``cpu.ipc``                         1        perf: instructions per cycle
``cpu.cache_miss_rate``             1        perf: last-level misses over references
=================================== ======== ===========================================

Of several runs the observed medians are reported; ``cpu.thread_speedup`` and
``cpu.single_thread_us`` compare the best ones. ``KernelProfile.notes`` carries the compiler's
reasons for loops it did not vectorise, one line each (``file:line: not vectorised: reason``).
``SystemProfile.operators`` has ``{"name", "calls", "self_us", "kind": "framework" | "native"}``
per call, largest first.
"""
