"""Draws a run's views as one self-contained HTML file, as Markdown, and as JSON.

Computes nothing about the run (that is ``views``) and writes no files (that is ``api``).
"""
