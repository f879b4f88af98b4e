"""Whether this installation can take work: database, migrations, a runner."""

from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now

from runs.models import Worker


def what_is_missing() -> dict[str, str]:
    """Each part that is not ready, with one sentence; empty when all are."""
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return {"migrations": "Not all are applied; run `manage.py migrate`."}
        lease = timedelta(seconds=settings.LEASE_SECONDS)
        if not Worker.objects.filter(stopped_at=None, seen_at__gt=Now() - lease).exists():
            return {"runner": f"None was seen in the last {settings.LEASE_SECONDS:.0f} seconds; start one."}
    except DatabaseError:
        return {"database": "It does not answer."}
    return {}
