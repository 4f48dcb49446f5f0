"""Energy of a kernel: sensors, traces, windows, statistics, and what a byte or FLOP costs.

Reads sensors only: no clock, power limit or other setting of a device is ever changed. Where there
is no sensor, the answer is a reason, never a number.
"""
