"""Sign-offs: a person's decision on a verdict, bound to its inputs, in an append-only history."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from evalboard.core.errors import Conflict, InvalidInput, Refused
from evalboard.wording.release_names import verdict_name
from runs import acts, sign_off_chain
from runs.access import roles
from runs.models import DeletionRecord, GateRecord, ReleaseRecord, RunRecord, SignOffRecord, Verdict
from runs.release import verdicts
from runs.release.verdict_check import judge_again
from runs.store import database_now

MAX_NOTE = 2000
MAX_WAIVER = timedelta(days=366)
REPLACED = "The verdict that was looked at has been replaced; look at the release again."

# Lets readers pass and one writer at a time: the next row of the chain follows from the one before.
ONE_WRITER = "LOCK TABLE runs_signoff IN SHARE ROW EXCLUSIVE MODE"


def sign_release(
    *,
    release_id: int,
    decision: str,
    note: str = "",
    input_digest: str,
    expires_at: datetime | None = None,
    after: str | None = None,
    user: Any,
    made_with: str = "",
) -> tuple[SignOffRecord, bool]:
    """Approve a `ship`, reject anything, or waive another verdict with a reason and an end date.

    Return it, and whether this is the newest sign-off, repeated: then nothing is stored.

    `input_digest` is that of the verdict that the person saw, `after` the id of the newest sign-off that they saw, ""
    where there was none; `made_with` is what access.credential says of the request.
    Raises Refused for who may not sign, NotFound, InvalidInput with fields, or Conflict where the verdict is another
    one by now, is not what its inputs give, is not of a kind that can be so decided, waits for repeats, or was signed
    since the person looked.
    """
    if not roles.may(user, roles.SIGN):
        raise Refused("This needs the right to sign.")
    runs = _runs_of(release_id)
    n_deletions = _count_deletions(runs)
    seen = verdicts.decide_release(release_id=release_id)
    change, evidence_digest = judge_again(seen)
    if change:
        raise Conflict(f"Nothing was signed. {change}")
    with transaction.atomic():
        locked = ReleaseRecord.objects.select_for_update(no_key=True, of=("self",)).select_related(
            "policy", "verdict__policy"
        )
        release = locked.get(pk=release_id)
        now = database_now()
        _refuse_wrong_input(decision, note, expires_at, now)
        # A deletion of their texts waits, and finds the sign-off.
        list(runs.select_for_update(no_key=True).order_by("pk").values_list("pk"))
        if _count_deletions(runs) != n_deletions:
            raise Conflict("Texts of the release's runs were deleted meanwhile; look at the release again.")
        verdict = _present_verdict(release, input_digest)
        verdict_digest = sign_off_chain.verdict_digest(verdict)
        if verdict_digest != sign_off_chain.verdict_digest(seen):  # changed since it was judged again
            raise Conflict(REPLACED)
        _refuse_wrong_kind(decision, verdict)
        _refuse_own_release(decision, release, user)
        before = release.sign_offs.select_related("person").order_by("-id").first()
        if before is not None and before.verdict_id == verdict.pk:
            stored = (before.person, before.decision, before.note, before.expires_at, before.version)
            if stored == (user, decision, note.strip(), expires_at, sign_off_chain.VERSION):
                return before, True
            _refuse_unseen(before, after, user)
        with connection.cursor() as cursor:
            cursor.execute(ONE_WRITER)
        last = SignOffRecord.objects.order_by("-id").values_list("digest", flat=True).first()
        row = SignOffRecord(
            release=release,
            verdict=verdict,
            person=user,
            person_name=user.get_username(),
            decision=decision,
            note=note.strip(),
            expires_at=expires_at,
            input_digest=input_digest,
            created_at=now,
            made_with=made_with,
            version=sign_off_chain.VERSION,
            verdict_digest=verdict_digest,
            evidence_digest=evidence_digest,
            previous_digest=last or "",
        )
        row.digest = sign_off_chain.digest_of(row)
        for name, value in sign_off_chain.seal_sign_off(row).items():
            setattr(row, name, value)
        row.save(force_insert=True)
    return row, False


def _runs_of(release_id: int) -> QuerySet[RunRecord]:
    gates = GateRecord.objects.filter(release=release_id)
    return RunRecord.objects.filter(Q(pk__in=gates.values("baseline_run")) | Q(pk__in=gates.values("candidate_run")))


def _count_deletions(runs: QuerySet[RunRecord]) -> int:
    cases = Q(run=None, suite_version__in=runs.values("suite_version"))
    return DeletionRecord.objects.filter(Q(run__in=runs.values("pk")) | cases).count()


def _refuse_unseen(before: SignOffRecord, after: str | None, user: Any) -> None:
    """Raise Conflict if the newest sign-off of the verdict is one that the person has not seen.

    Who names none in `after` is taken to know their own.
    """
    is_seen = before.person == user if after is None else after == str(before.pk)
    if not is_seen:
        raise Conflict(
            f"{before.person_name} has signed this verdict: {before.decision}, "
            f"{before.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC. Read that sign-off; then you may add yours."
        )


def _refuse_wrong_input(decision: str, note: str, expires_at: datetime | None, now: datetime) -> None:
    fields: dict[str, str] = {}
    if decision not in SignOffRecord.Decision.values:
        fields["decision"] = f"Must be one of: {', '.join(SignOffRecord.Decision.values)}."
    if len(note) > MAX_NOTE or "\0" in note:
        fields["note"] = f"Use at most {MAX_NOTE:,} characters."
    elif decision in (SignOffRecord.Decision.REJECT, SignOffRecord.Decision.WAIVE) and not note.strip():
        fields["note"] = "Say why."
    if decision != SignOffRecord.Decision.WAIVE and expires_at is not None:
        fields["expires_at"] = "Only a waiver ends."
    elif decision == SignOffRecord.Decision.WAIVE and not _is_within_a_year(expires_at, now):
        fields["expires_at"] = f"Must lie within the next {MAX_WAIVER.days} days, with its offset from UTC."
    if fields:
        raise InvalidInput("The sign-off is not valid.", fields=fields)


def _is_within_a_year(expires_at: datetime | None, now: datetime) -> bool:
    return expires_at is not None and expires_at.tzinfo is not None and now < expires_at <= now + MAX_WAIVER


def _present_verdict(release: ReleaseRecord, input_digest: str) -> Verdict:
    """Return the verdict to sign: the one the person saw, if its inputs are unchanged and complete."""
    acts.require("sign", release)
    verdict = release.verdict
    if verdict is None or verdict.input_digest != input_digest or verdicts.present_digest(release) != input_digest:
        raise Conflict(REPLACED)
    return verdict


def _refuse_wrong_kind(decision: str, verdict: Verdict) -> None:
    is_ship = verdict.word == Verdict.Word.SHIP
    if decision == SignOffRecord.Decision.APPROVE and not is_ship:
        raise Conflict(f"Only ship can be approved, and this is {verdict_name(verdict.word)}; waive it, or reject it.")
    if decision == SignOffRecord.Decision.WAIVE and is_ship:
        raise Conflict("A ship needs no waiver; approve it, or reject it.")


def _refuse_own_release(decision: str, release: ReleaseRecord, user: Any) -> None:
    """Raise Refused: where the installation asks for two people, its maker may stop a release only."""
    if settings.FOUR_EYES and decision != SignOffRecord.Decision.REJECT and release.created_by_id == user.pk:
        raise Refused(
            "You made this release, so another person must approve or waive it (EVALBOARD_FOUR_EYES). "
            "You may reject it."
        )
