"""Around a build: what a candidate's text looks like, what a compiler said, what was left behind.

Compiling itself is :mod:`kernelpro.inline`, which candidates call. Nothing here runs a candidate.
"""
