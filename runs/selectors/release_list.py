"""Releases as rows of a list, a fixed number of queries for any number of them."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, CharField, F, Func, JSONField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Now

from runs.models import Gate, Release, SignOff, Verdict
from runs.selectors.release import ReleaseRow, Span
from runs.selectors.run_list import model_name

UNSIGNED, VOID, EXPIRED = "unsigned", "void", "expired"
OUTCOMES = (UNSIGNED, "approved", "rejected", "waived", EXPIRED, VOID)
OF_DECISION = {
    SignOff.Decision.APPROVE: "approved",
    SignOff.Decision.REJECT: "rejected",
    SignOff.Decision.WAIVE: "waived",
}
SIDES = ("baseline_run", "candidate_run")
RUNS = tuple(f"{side}__{name}" for side in SIDES for name in ("endpoint", "bucket__model"))
HEAVY = tuple(f"{side}__bucket__model__files" for side in SIDES)


@dataclass(frozen=True, slots=True)
class ReleaseFilter:
    """Which releases a list holds: with a gate of `suite`, by the verdict on their present inputs, by outcome."""

    suite: str = ""
    verdict: str = ""
    outcome: str = ""

    def releases(self) -> Any:
        """`with_outcome`, in no order."""
        found = with_outcome(Release.objects.all())
        if self.suite:
            found = found.filter(pk__in=Gate.objects.filter(suite__slug=self.suite).values("release"))
        if self.verdict:
            found = found.filter(verdict__word=self.verdict)
        return found.filter(outcome=self.outcome) if self.outcome else found


def release_rows(
    wanted: ReleaseFilter = ReleaseFilter(), *, after: int | None = None, before: int | None = None, limit: int = 50
) -> tuple[ReleaseRow, ...]:
    """Releases, newest first: those older than `after`, or the nearest ones newer than `before`."""
    found = wanted.releases()
    if before is not None:
        return rows_of(found.filter(pk__gt=before).order_by("id")[:limit])[::-1]
    return rows_of((found if after is None else found.filter(pk__lt=after)).order_by("-id")[:limit])


def with_outcome(releases: "QuerySet[Release]") -> Any:
    """The newest sign-off decides: void once the inputs are others than it was signed on, a waiver until its end."""
    newest = SignOff.objects.filter(release=OuterRef("pk")).order_by("-id")
    signed = releases.annotate(
        decision=Subquery(newest.values("decision")[:1]),
        signed_digest=Subquery(newest.values("input_digest")[:1]),
        waived_until=Subquery(newest.values("expires_at")[:1]),
    )
    return signed.annotate(
        outcome=Case(
            When(decision=None, then=Value(UNSIGNED)),
            When(verdict=None, then=Value(VOID)),
            When(~Q(signed_digest=F("verdict__input_digest")), then=Value(VOID)),
            When(waived_until__lte=Now(), then=Value(EXPIRED)),
            *(When(decision=decision, then=Value(word)) for decision, word in OF_DECISION.items()),
            output_field=CharField(),
        )
    )


def rows_of(releases: Any) -> tuple[ReleaseRow, ...]:
    """A row for each release of a queryset that came `with_outcome`, in its order. No verdict is read as a whole."""
    light = releases.annotate(
        summary=KeyTextTransform("summary", "verdict__document"),
        headline=HeadlineGate("verdict__document"),
        headline_at=KeyTextTransform("headline_gate", "verdict__document"),
    )
    found = list(light.select_related("verdict__policy", "policy", "created_by").defer("verdict__document"))
    gates: dict[int, list[Gate]] = defaultdict(list)
    of_these = Gate.objects.filter(release__in=[release.pk for release in found]).order_by("position")
    for gate in of_these.select_related("suite", *RUNS).defer(*HEAVY):
        gates[gate.release_id].append(gate)
    return tuple(_row(release, gates[release.pk]) for release in found)


class HeadlineGate(Func):
    """The gate that a verdict's document names as its headline, without its lists of cases, which may be long."""

    template = "(jsonb_path_query_first(%(expressions)s, '$.gates[$.headline_gate]') - 'changed')"
    output_field = JSONField()


def _row(release: Any, gates: list[Gate]) -> ReleaseRow:
    verdict: Verdict | None = release.verdict
    headline: dict[str, Any] = release.headline or {}
    shown = gates[min(int(release.headline_at or 0), len(gates) - 1)]
    return ReleaseRow(
        id=release.pk,
        verdict=verdict.word if verdict else "",
        outcome=release.outcome,
        summary=release.summary or "",
        suites=tuple(gate.suite.slug for gate in gates),
        candidate=model_name(shown.candidate_run),
        baseline=model_name(shown.baseline_run),
        candidate_run=shown.candidate_run_id,
        baseline_run=shown.baseline_run_id,
        policy=str(verdict.policy if verdict else release.policy),
        treatment=release.treatment,
        labels=release.labels,
        difference=headline.get("difference"),
        interval=span_of(headline.get("low"), headline.get("high")),
        tolerance_points=headline.get("tolerance_points"),
        created_at=release.created_at,
        decided_at=verdict.decided_at if verdict else None,
        created_by=release.created_by.get_username() if release.created_by else "",
    )


def span_of(low: float | None, high: float | None) -> Span | None:
    return None if low is None or high is None else (low, high)
