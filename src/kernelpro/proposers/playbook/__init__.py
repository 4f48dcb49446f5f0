"""The offline, key-less writer: expert recipes whose settings are turned by findings.

``plan`` reads a graph and decides what shares a loop nest (the planning IR is ``plan.ir``; start
there to add a device); ``cpu`` turns kernels into C++; ``recipes`` say where to start and which
setting each move changes; ``writer`` picks the next move; ``candidate`` assembles the file.
Nothing here imports torch or runs code: it emits source text.
"""
