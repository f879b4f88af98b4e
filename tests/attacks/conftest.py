"""The cast of the service tests, for attackers as well."""

from tests.runs.conftest import endpoint, new_run, new_worker, profile, run, suite

__all__ = ["endpoint", "new_run", "new_worker", "profile", "run", "suite"]
