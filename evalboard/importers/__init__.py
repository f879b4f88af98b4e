"""Readers of other tools' logs: plain Python, files in and `records.LoggedRun` out. docs/imports.md has the formats."""
