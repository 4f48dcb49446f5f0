"""The referee: decides, from outside the candidate's process, what counts.

Holds reference outputs, seeds, tolerances and verdicts. Candidates never run here; what comes
back from them is bytes that this package interprets itself.
"""
