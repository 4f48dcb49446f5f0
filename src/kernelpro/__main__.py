"""``python -m kernelpro``."""

from __future__ import annotations

from kernelpro.cli.main import main

if __name__ == "__main__":
    main()
