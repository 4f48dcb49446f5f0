"""What roles are told: Markdown files, filled in and cut to a length. Knows no records."""
