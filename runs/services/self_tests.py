"""Self-tests: what a node's arithmetic did when it was tested, kept with the node."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from evalboard.core import self_test
from runs.models import SelfTest, Worker


def record_self_test(
    *, host: str, hardware: Mapping[str, Any], versions: Mapping[str, Any], result: Mapping[str, Any]
) -> SelfTest:
    """Keep a self-test; workers of this node that are at work take it over from the one they had.

    `hardware` and `versions` as a worker reports them. Raises InvalidInput where the result is not whole.
    """
    self_test.check(result)
    digest = self_test.node_digest(hardware, versions)
    with transaction.atomic():
        test = SelfTest.objects.create(
            host=host, node_digest=digest, result=result, is_invariant=self_test.is_invariant(result)
        )
        of_this_node = [
            worker.pk
            for worker in Worker.objects.filter(host=host, stopped_at=None)
            if self_test.node_digest(worker.hardware, worker.versions) == digest
        ]
        Worker.objects.filter(pk__in=of_this_node).update(self_test=test)
    return test


def self_test_of(*, host: str, node_digest: str) -> SelfTest | None:
    """The newest self-test of a node as it is now: of this host with this hardware and these versions."""
    return SelfTest.objects.filter(host=host, node_digest=node_digest).order_by("-id").first()
