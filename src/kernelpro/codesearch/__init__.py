"""Search in a tree of CUDA and C++ headers: by words, by symbol, by use, by example.

Must not run or import anything of the tree it reads, and writes only its own cache file.
"""
