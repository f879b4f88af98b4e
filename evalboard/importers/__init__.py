"""Readers of other tools' logs: files in, `records.LoggedRun` out (docs/imports.md has the formats)."""
