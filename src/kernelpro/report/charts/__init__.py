"""Figures as SVG: one drawing code for the report, the dashboard and files for papers.

Draws ``views`` and computes nothing about the run. Colours are classes of ``charts.css``; nothing
is told by colour alone. ``href`` is the address of a node with ``{}`` for its id.
"""
