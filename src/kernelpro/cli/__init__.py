"""The command line: thin faces of ``kernelpro.api``. A command over 25 lines is an API function."""
