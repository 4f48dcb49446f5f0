"""The process a candidate runs in: a warm zygote, a keeper per job, the harness inside, and the
referee's end of the line. Must not decide verdicts: it carries bytes, times and causes of death.
"""
