"""What to show, computed from a run's events as named tuples; front ends only draw.

Pure: no files, no clock, no colours, no markup. Text stays as the candidate wrote it; whoever
draws it escapes it.
"""
