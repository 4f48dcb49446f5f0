"""Conformance suites and sample records, for tests and plug-in authors only."""
