"""Turns what a user has (a file, a class, a callable) into a ``Problem``, and reads its graph.

Runs the user's own code in this process, never a candidate's. Loads no torch at import.
"""

from kernelpro.problems.loader import check_problem, load_problem

__all__ = ["check_problem", "load_problem"]
