"""Load the sample of the tour onto a board, and take it away again.

Its runs are exports of runs that Evalboard made: one small model, and copies of it with their weights rounded. Suite,
labels and page say that they are a sample.
"""

import json
import tarfile
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from evalboard.core.errors import Conflict
from runs.baselines import set_baseline
from runs.imports import store_archive
from runs.models import (
    BaselineRecord,
    EndpointRecord,
    PolicyRecord,
    ReleaseRecord,
    RunRecord,
    SignOffRecord,
    Suite,
    SuiteVersionRecord,
    TourEnd,
)
from runs.release import create_release
from runs.run import delete_run
from runs.store import take_as_long_as_it_takes
from runs.suites import push_suite

SUITE = "sample-tour"
LABELS = {"sample": "tour"}
TITLE = "Sample of the tour: calls, numbers, words"
SAMPLES = settings.BASE_DIR / "runs" / "samples"
REASON = "The sample's model as it is. It comes with Evalboard, for the tour."
# Chosen when the scores were known, so that the sample has a release of each verdict: docs/install.md says so too.
POLICY = {
    "slug": SUITE,
    "title": "Sample: 10 points, chosen when the scores were known",
    "rule": "paired",
}
POINTS = {"tolerance_points": 10.0, "guard_points": 10.0}
# The exports by their names; and which of them is judged against which, and as what.
BASELINE, EIGHT_BITS, FOUR_BITS = "1-whole.zip", "2-8bit.zip", "3-4bit.zip"
JUDGED = (
    (EIGHT_BITS, BASELINE, "model"),
    (FOUR_BITS, BASELINE, "model"),
    (BASELINE, EIGHT_BITS, "model"),
    (FOUR_BITS, EIGHT_BITS, "stack"),  # of two models, so that no change can be put down to what serves them
)


def load_tour(*, user: Any) -> None:
    """Store the tour's suite and runs, a baseline, and its releases; once."""
    with transaction.atomic():
        take_as_long_as_it_takes()
        if RunRecord.objects.filter(suite_version__suite__slug=SUITE, labels__contains=LABELS).exists():
            return
        push_suite(document=_document())
        runs = {name: store_archive(content, name=name, labels=LABELS, user=user) for name, content in _archives()}
        set_baseline(suite=SUITE, run=runs[BASELINE].pk, reason=REASON, user=user)
        for candidate, baseline, treatment in JUDGED:
            gate = {"suite": SUITE, "candidate": runs[candidate].pk, "baseline": runs[baseline].pk}
            create_release(gates=[gate], treatment=treatment, labels=LABELS, user=user)


def remove_tour() -> tuple[str, ...]:
    """Delete the tour's data; return a sentence for each item that stays because it is in use."""
    with transaction.atomic():
        take_as_long_as_it_takes()
        signed = SignOffRecord.objects.values("release")
        releases = ReleaseRecord.objects.filter(labels__contains=LABELS, gates__suite__slug=SUITE).distinct()
        staying = [
            f"Release {pk} was signed; it stays, with its runs."
            for pk in releases.filter(pk__in=signed).order_by("pk").values_list("pk", flat=True)
        ]
        ReleaseRecord.objects.filter(pk__in=releases.exclude(pk__in=signed).values("pk")).delete()
        runs = RunRecord.objects.filter(suite_version__suite__slug=SUITE, labels__contains=LABELS)
        BaselineRecord.objects.filter(run__in=runs.exclude(Q(gates_as_baseline__isnull=False))).delete()
        for run in runs.order_by("pk"):
            try:
                delete_run(run_id=run.pk)
            except Conflict as refusal:
                staying.append(refusal.detail)
        if not RunRecord.objects.filter(suite_version__suite__slug=SUITE).exists():
            _forget_suite()
    return tuple(staying)


def end_tour(*, user: Any) -> None:
    """Note that a person needs the tour no more."""
    TourEnd.objects.get_or_create(user=user)


def _forget_suite() -> None:
    SuiteVersionRecord.objects.filter(suite__slug=SUITE).delete()
    Suite.objects.filter(slug=SUITE).delete()
    PolicyRecord.objects.filter(slug=SUITE).delete()
    EndpointRecord.objects.filter(slug=SUITE, engine=EndpointRecord.Engine.IMPORTED).delete()


def _document() -> dict[str, Any]:
    """Return the sample suite under the tour's name, so that other runs are never compared with it."""
    document: dict[str, Any] = json.loads((SAMPLES / "sample.json").read_text())
    return document | {"slug": SUITE, "title": TITLE, "policy": POLICY | POINTS}


def _archives() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each export, the baseline's first."""
    with tarfile.open(SAMPLES / "tour.tar.xz") as packed:
        for member in sorted(packed.getmembers(), key=lambda each: each.name):
            file = packed.extractfile(member)
            if file is not None:
                yield member.name, file.read()
