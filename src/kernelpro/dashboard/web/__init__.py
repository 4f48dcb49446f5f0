"""``kernelpro serve``: stored and running runs in the browser.

Read-only: it opens stores for reading, executes nothing, writes nothing, and loads nothing from
another host. ``views`` compute, ``report`` draws; this package adds pages, addresses and events.
"""
