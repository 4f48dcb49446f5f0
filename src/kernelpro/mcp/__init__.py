"""The operations of :mod:`kernelpro.api` as tools for coding agents (Model Context Protocol)."""
