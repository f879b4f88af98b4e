"""Suites that are too large for one request: sent in parts, and read by a worker."""

from runs.uploads.read import open_uploads
from runs.uploads.reading import read_next_part
from runs.uploads.uploads import forget_old_uploads

__all__ = ["forget_old_uploads", "open_uploads", "read_next_part"]
