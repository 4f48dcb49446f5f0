"""The frozen records that travel through kernelpro: plain standard-library dataclasses.

Nothing here imports anything but the standard library and ``kernelpro.errors``, so that a worker
on a GPU machine can use the records with torch alone. ``schema.codec`` validates them with
pydantic at the controller's borders.
"""
