"""Digests of every kind, by how they begin."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Model as Table
from django.urls import reverse

from evalboard.contract.find import Hit
from evalboard.path_converters import reverse_case
from evalboard.wording import find as words
from runs.compare import case_ids
from runs.find.cases import case_page
from runs.find.wanted import COUNTED, EXACT, PREFIX, Match, Wanted, make_hit
from runs.models import (
    Case,
    ComparisonRecord,
    FingerprintRecord,
    ImportRecord,
    Model,
    ProfileRecord,
    RepeatRecord,
    RunRecord,
    Scorer,
    SignOffRecord,
    SuiteVersionRecord,
    Verdict,
)
from runs.run import NEWEST_FIRST

BYTES = 16  # of the digest of a response's text or trace
MIN_RESPONSE_DIGITS = 8  # shorter ones stand somewhere in the columns of any large run
# No index has a response's digests, 2 × 16 bytes each: the packed columns of the repeats are read instead.
IN_COLUMNS = """
SELECT repeat_id, text_digests, trace_digests
  FROM runs_casecolumns
  JOIN runs_repeat AS repeat ON repeat.id = repeat_id
  JOIN runs_run AS run ON run.id = repeat.run_id AND NOT run.is_judge
 WHERE position(%(digest)s IN trace_digests) > 0 OR position(%(digest)s IN text_digests) > 0
 ORDER BY repeat_id DESC LIMIT %(limit)s
"""


class _Kind(NamedTuple):
    """The place of a kind of digest: table, field, and the field with its time.

    suite: the relation to a row's suite. Suites of judgements have no page, and are not found.
    """

    table: type[Table]
    field: str
    at: str
    suite: str = ""


KINDS = {
    "fingerprint": _Kind(FingerprintRecord, "digest", "created_at"),
    "model": _Kind(Model, "digest", "created_at"),
    "chat template": _Kind(Model, "template_digest", "created_at"),
    "suite version": _Kind(SuiteVersionRecord, "digest", "created_at", "suite"),
    "scorer": _Kind(Scorer, "digest", "created_at"),
    "profile": _Kind(ProfileRecord, "digest", "created_at"),
    "case": _Kind(Case, "digest", "suite_version__created_at", "suite_version__suite"),
    "inputs of a comparison": _Kind(ComparisonRecord, "input_digest", "created_at"),
    "inputs of a verdict": _Kind(Verdict, "input_digest", "decided_at"),
    "sign-off": _Kind(SignOffRecord, "digest", "created_at"),
    "import": _Kind(ImportRecord, "digest", "created_at"),
    "log": _Kind(RunRecord, "log_digest", "created_at"),
}


def match_digests(wanted: Wanted) -> list[Match]:
    """Find what has a digest with this start; for a response's text and trace from eight digits."""
    if not wanted.digest:
        return []
    matches = [match for name in KINDS for match in _in_table(name, wanted.digest)]
    return [*matches, *_in_columns(wanted.digest)]


def _in_table(name: str, digest: str) -> Iterator[Match]:
    kind = KINDS[name]
    begins: dict[str, Any] = {f"{kind.field}__startswith": digest}
    if kind.suite:
        begins[f"{kind.suite}__judged_suite__isnull"] = True
    rows = kind.table._default_manager.filter(**begins).order_by("-pk")
    for key, whole, at in rows.values_list("pk", kind.field, kind.at)[: COUNTED + 1]:
        yield Match("digest", (name, key, whole), EXACT if whole == digest else PREFIX, at)


def _in_columns(digest: str) -> Iterator[Match]:
    if not MIN_RESPONSE_DIGITS <= len(digest) <= 2 * BYTES:
        return
    begins = bytes.fromhex(digest[: len(digest) // 2 * 2])
    with connection.cursor() as cursor:
        cursor.execute(IN_COLUMNS, {"digest": begins, "limit": COUNTED + 1})
        rows = cursor.fetchall()
    times: dict[int, datetime] = dict(
        RepeatRecord.objects.filter(pk__in=[row[0] for row in rows]).values_list("pk", "run__ran_at")
    )
    for repeat, *columns in rows:
        for name, packed in zip(("text", "trace"), columns, strict=True):
            yield from (
                Match("digest", (name, (repeat, index), whole), EXACT if whole == digest else PREFIX, times[repeat])
                for index, whole in _beginning(bytes(packed), begins)
                if whole.startswith(digest)
            )


def _beginning(packed: bytes, begins: bytes) -> Iterator[tuple[int, str]]:
    """Yield (case index, digest) of the digests in a column that begin so."""
    at = packed.find(begins)
    while at >= 0:
        if at % BYTES == 0:
            yield at // BYTES, packed[at : at + BYTES].hex()
        at = packed.find(begins, at + 1)


def show_digests(matches: Sequence[Match]) -> Iterable[Hit]:
    for match in matches:
        name, key, whole = match.key
        about, url = _place(name, key)
        shown = whole if match.rank == EXACT and len(matches) == 1 else whole[:12]
        yield make_hit(match, shown, about, name, url)


def _place(name: str, key: Any) -> tuple[str, str]:
    """Return what a digest identifies, and its page."""
    match name:
        case "text" | "trace":
            repeat_id, index = key
            repeat = RepeatRecord.objects.get(pk=repeat_id)
            case_id = case_ids(repeat.run_id, (index,))[index]
            about = words.describe_response(case_id, repeat.run_id, repeat.index)
            return about, reverse_case("response", repeat.run_id, repeat.index, case_id)
        case "fingerprint":
            return FingerprintRecord.objects.get(pk=key).label, reverse("fingerprint", args=[key])
        case "model" | "chat template":
            model = Model.objects.get(pk=key)
            served = RunRecord.objects.filter(bucket__model=model).order_by(*NEWEST_FIRST)
            newest = served.values_list("pk", flat=True).first()
            return model.name, reverse("run", args=[newest]) if newest else reverse("endpoints")
        case "suite version":
            version = SuiteVersionRecord.objects.select_related("suite").get(pk=key)
            return str(version), reverse("suite_version", args=[version.suite.slug, version.number])
        case "scorer":
            versions = SuiteVersionRecord.objects.select_related("suite").filter(scorer=key, suite__judged_suite=None)
            scored = versions.order_by("pk").last()
            return f"of {scored}" if scored else "of no suite", _version_url(scored)
        case "case":
            case = Case.objects.select_related("suite_version__suite").get(pk=key)
            return f"{case.case_id} of {case.suite_version}", case_page(case.suite_version.suite.slug, case.case_id)
        case "profile":
            return str(ProfileRecord.objects.get(pk=key)), f"{reverse('settings')}#profiles"
        case "inputs of a comparison":
            row = ComparisonRecord.objects.get(pk=key)
            return str(row), reverse("compare", args=[row.baseline_id, row.candidate_id])
        case "inputs of a verdict":
            verdict = Verdict.objects.get(pk=key)
            return f"release {verdict.release_id}", reverse("release", args=[verdict.release_id])
        case "sign-off":
            signed = SignOffRecord.objects.get(pk=key)
            about = f"of release {signed.release_id}, by {signed.person_name}"
            return about, reverse("release", args=[signed.release_id])
        case "import":
            log = ImportRecord.objects.get(pk=key)
            newest = RunRecord.objects.filter(source=log).order_by("pk").values_list("pk", flat=True).last()
            return f"a log of {log.tool}", reverse("run", args=[newest]) if newest else reverse("imports")
        case _:
            return f"run {key}", reverse("run", args=[key])


def _version_url(version: SuiteVersionRecord | None) -> str:
    return reverse("suite_version", args=[version.suite.slug, version.number]) if version else reverse("suites")
