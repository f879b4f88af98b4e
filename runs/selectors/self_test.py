"""What is known of a worker's node from its self-test."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalboard.core.self_test import Finding, findings
from runs.models import SelfTest


@dataclass(frozen=True, slots=True)
class SelfTestFacts:
    """A self-test as pages show it. `findings` is empty for one that an older Evalboard made."""

    id: int
    at: datetime
    is_invariant: bool
    findings: tuple[Finding, ...]


def self_test_result(worker_id: int) -> dict[str, Any] | None:
    """The result of the newest self-test of the worker's node, None where it was not tested."""
    return SelfTest.objects.filter(workers=worker_id).values_list("result", flat=True).first()


def self_test_facts(test: SelfTest | None) -> SelfTestFacts | None:
    if test is None:
        return None
    return SelfTestFacts(id=test.pk, at=test.created_at, is_invariant=test.is_invariant, findings=findings(test.result))
