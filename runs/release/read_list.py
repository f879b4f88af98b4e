"""Read releases as list rows, in a fixed number of queries, and a suite's badge."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, CharField, F, Func, JSONField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Now
from django.urls import reverse

from evalboard.contract.release import PolicyNamed, ReleaseRow, SideNamed, SignOffLine
from evalboard.contract.run import RunRow
from runs import sign_off_chain
from runs.models import GateRecord, ReleaseRecord, RunRecord, SignOffRecord, Suite, Verdict
from runs.run import NEWEST_FIRST, model_name
from runs.run import rows_of as run_rows_of
from runs.sign_off_chain import has_sealed_document, is_sealed, seal_problem
from runs.store import RecordList, require_row

RELEASE_ORDERS = {"id": "id", "verdict": "verdict__word", "outcome": "outcome"}
UNSIGNED, VOID, EXPIRED = "unsigned", "void", "expired"
DECIDED = {
    SignOffRecord.Decision.APPROVE: "approved",
    SignOffRecord.Decision.REJECT: "rejected",
    SignOffRecord.Decision.WAIVE: "waived",
}
SIDES = ("baseline_run", "candidate_run")
RUNS = tuple(f"{side}__{name}" for side in SIDES for name in ("endpoint", "bucket__model"))
HEAVY = tuple(f"{side}__bucket__model__files" for side in SIDES)


@dataclass(frozen=True, slots=True)
class ReleaseFilter:
    """The filter of a list of releases: by a gate's suite, the present verdict, and the outcome."""

    suite: str = ""
    verdict: str = ""
    outcome: str = ""

    def releases(self) -> Any:
        """Return them `with_outcome`, in no order."""
        releases = with_outcome(ReleaseRecord.objects.all())
        if self.suite:
            releases = releases.filter(pk__in=GateRecord.objects.filter(suite__slug=self.suite).values("release"))
        if self.verdict:
            releases = releases.filter(verdict__word=self.verdict)
        return releases.filter(outcome=self.outcome) if self.outcome else releases


def sortable_releases(wanted: ReleaseFilter = ReleaseFilter()) -> RecordList[ReleaseRow]:
    """Return the releases of a filter as a list that can be sorted."""
    return RecordList(wanted.releases(), rows_of, RELEASE_ORDERS)


def with_outcome(releases: "QuerySet[ReleaseRecord]") -> Any:
    """Add `outcome`, which the newest sign-off decides.

    It is void once the inputs are others than it was signed on, and a waiver holds until its end.
    """
    newest = SignOffRecord.objects.filter(release=OuterRef("pk")).order_by("-id")
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
            *(When(decision=decision, then=Value(word)) for decision, word in DECIDED.items()),
            output_field=CharField(),
        )
    )


def rows_of(releases: Any) -> tuple[ReleaseRow, ...]:
    """Return the rows of a queryset that came `with_outcome`, in order, without loading documents."""
    light = releases.annotate(
        summary=KeyTextTransform("summary", "verdict__document"),
        headline=HeadlineGate("verdict__document"),
        headline_at=KeyTextTransform("headline_gate", "verdict__document"),
    )
    stored = list(light.select_related("verdict__policy", "policy", "created_by").defer("verdict__document"))
    if not stored:
        return ()
    gates: dict[int, list[GateRecord]] = defaultdict(list)
    in_order = GateRecord.objects.filter(release__in=[release.pk for release in stored]).order_by("position")
    for gate in in_order.select_related("suite", *RUNS).defer(*HEAVY):
        gates[gate.release_id].append(gate)
    signed = SignOffRecord.objects.filter(release__in=[release.pk for release in stored])
    newest = {row.release_id: row for row in signed.order_by("release_id", "-id").distinct("release_id")}
    return tuple(_row(release, gates[release.pk], newest.get(release.pk)) for release in stored)


class HeadlineGate(Func):
    """The headline gate of a verdict's document, without its lists of cases, which may be long."""

    template = "(jsonb_path_query_first(%(expressions)s, '$.gates[$.headline_gate]') - 'changed')"
    output_field = JSONField()


def _row(release: Any, gates: Sequence[GateRecord], signed: SignOffRecord | None) -> ReleaseRow:
    verdict: Verdict | None = release.verdict
    if verdict is not None and not is_sealed(verdict):
        verdict = None  # its own page judges it again
    headline = (release.headline if verdict else None) or {}
    shown = gates[min(int(release.headline_at or 0), len(gates) - 1)]
    return ReleaseRow(
        id=str(release.pk),
        verdict=verdict.word if verdict else None,
        outcome=VOID if signed is not None and seal_problem(signed) else release.outcome,
        summary=(release.summary if verdict else None) or "",
        suites=tuple(gate.suite.slug for gate in gates),
        candidate=SideNamed(run=str(shown.candidate_run_id), model=model_name(shown.candidate_run)),
        baseline=SideNamed(run=str(shown.baseline_run_id), model=model_name(shown.baseline_run)),
        policy=str(verdict.policy if verdict else release.policy),
        treatment=release.treatment,
        pair_by=release.pair_by,
        difference=headline.get("difference"),
        low=headline.get("low"),
        high=headline.get("high"),
        tolerance_points=headline.get("tolerance_points"),
        labels=release.labels,
        created_by=release.created_by.get_username() if release.created_by else None,
        created_at=release.created_at,
        decided_at=verdict.decided_at if verdict else None,
        url=reverse("release", args=[release.pk]),
    )


@dataclass(frozen=True, slots=True)
class SuiteBadge:
    """A suite's badge. verdict: of its gate, "" if never judged; then run is the newest or None."""

    suite: str
    verdict: str
    run: RunRow | None


def suite_badge(slug: str) -> SuiteBadge:
    """Return a suite's badge. Raises NotFound."""
    suite = require_row(Suite.objects.filter(slug=slug), f"There is no suite {slug}.")
    judged = GateRecord.objects.filter(suite=suite, release__verdict__isnull=False).select_related(
        "release__verdict__policy"
    )
    gate = judged.order_by("-release_id", "position").first()
    if gate is not None and gate.release.verdict is not None and _is_whole(gate.release.verdict):
        return SuiteBadge(slug, str(gate.release.verdict.document["gates"][gate.position]["verdict"]), None)
    newest = run_rows_of(RunRecord.objects.filter(suite_version__suite=suite).order_by(*NEWEST_FIRST)[:1])
    return SuiteBadge(slug, "", newest[0] if newest else None)


def _is_whole(verdict: Verdict) -> bool:
    return is_sealed(verdict) and has_sealed_document(verdict)


CHUNK = 500  # rows read at a time, so that an export costs no memory
CHANGED = "The row does not match its own digest: it was changed after it was signed."
VERDICT_CHANGED = "The verdict that was signed, or its policy, was changed in the database afterwards."
PARTED = "It does not follow the sign-off before it: that one was changed, or one between was taken out."


def sign_off_lines(change: Callable[[int], str]) -> Iterator[SignOffLine]:
    """Yield every sign-off, oldest first. change: says how a verdict, by id, was changed since."""
    before = ""
    rows = SignOffRecord.objects.select_related("verdict__policy").order_by("id")
    for row in rows.iterator(chunk_size=CHUNK):
        problem = _problem(row, before) or change(row.verdict_id)
        policy = row.verdict.policy
        yield SignOffLine.from_record(
            row,
            id=str(row.pk),
            release=str(row.release_id),
            verdict=row.verdict.word,
            policy=PolicyNamed(name=policy.slug, version=policy.version),
            person=row.person_name,
            made_with=row.made_with or None,
            verdict_digest=row.verdict_digest or None,
            evidence_digest=row.evidence_digest or None,
            is_intact=not problem,
            problem=problem or None,
        )
        before = row.digest


def _problem(row: SignOffRecord, before: str) -> str:
    if sign_off_chain.digest_of(row) != row.digest:
        return CHANGED
    if row.previous_digest != before:
        return PARTED
    if problem := seal_problem(row):
        return problem
    if row.version >= 2 and sign_off_chain.verdict_digest(row.verdict) != row.verdict_digest:
        return VERDICT_CHANGED
    return ""
