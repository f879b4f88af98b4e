"""Suites enter here; a version is never changed once stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Max

from evalboard.contract.suite_limits import MAX_TITLE_CHARS
from evalboard.core import scoring
from evalboard.core.document import MAX_PROBLEMS
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.suite import (
    CaseDocument,
    SuiteDocument,
    SuiteHead,
    SuiteMapping,
    SuiteText,
    digest_parts,
    dump_case,
    dump_header,
    parse_head,
    parse_mapping,
    parse_suite,
    read_suite_json,
)
from evalboard.logged.suites import MAX_SLUG
from runs import acts
from runs.catalogue import policies
from runs.models import Case, Scorer, Suite, SuiteVersionRecord
from runs.store import bulk, keep_images, require_row, take_as_long_as_it_takes
from runs.suites.own_scorers import bind_document

CASES_PER_COPY = 2000
MAPPINGS = Path(__file__).resolve().parents[1] / "samples" / "mappings"
REFERENCE, REFERENCE_TITLE = "-reference", ": reference set"


def push_text(read: SuiteText, *, newest: int | None = None) -> tuple[SuiteVersionRecord, bool]:
    """Store a suite that was read from text, as `push_suite` does; errors name its lines.

    newest: the number of the suite's newest version, as its author knew it, 0 for none. Raises Conflict if new content
    would follow another.
    """
    return _store(_bound(read), newest)


def planned_version(read: SuiteText) -> tuple[int, bool]:
    """Return the number of the version that `push_text` would return, and whether it would be new."""
    parsed = _bound(read)
    known = SuiteVersionRecord.objects.filter(suite__slug=parsed.slug, digest=parsed.digest).first()
    return (next_version(parsed.slug), True) if known is None else (known.number, False)


def _bound(read: SuiteText) -> SuiteDocument:
    return replace(read, document=bind_document(read.document)).parse()


def push_suite(*, document: Mapping[str, Any]) -> tuple[SuiteVersionRecord, bool]:
    """Store a suite document as the suite's newest version; False if that content is already stored.

    The policy that it states becomes the suite's, whether the content is new or not. Raises InvalidInput, naming each
    field that is wrong; then nothing is stored.
    """
    return _store(parse_suite(bind_document(document)))


def _store(parsed: SuiteDocument, newest: int | None = None) -> tuple[SuiteVersionRecord, bool]:
    plan = scoring.plan(parsed.scorer, {case.id: case.scorer for case in parsed.cases if case.scorer is not None})

    def store_cases(version: SuiteVersionRecord) -> None:
        rows = (_case_row(version, case) for case in parsed.cases)
        while part := list(islice(rows, CASES_PER_COPY)):
            bulk.copy_rows(part)

    n_cases = len(parsed.cases)
    with transaction.atomic():
        keep_images(parsed.cases, in_suite=True)
        return keep_version(
            parsed, digest=parsed.digest, plan=plan, n_cases=n_cases, store_cases=store_cases, newest=newest
        )


def keep_version(
    head: SuiteHead,
    *,
    digest: str,
    plan: Mapping[str, Any],
    n_cases: int,
    store_cases: Callable[[SuiteVersionRecord], None],
    states_policy: bool = True,
    newest: int | None = None,
) -> tuple[SuiteVersionRecord, bool]:
    """Return the version with this content and whether it is new; a new one is stored as the newest.

    plan: how its cases are scored. states_policy: the suite's policy becomes that of `head`, or none. newest: as in
    `push_text`.
    """
    with transaction.atomic():
        take_as_long_as_it_takes()
        suite, _ = Suite.objects.get_or_create(slug=head.slug)
        suite = _locked(suite.pk)
        if states_policy:
            policies.adopt_policy(suite=suite, stated=head.policy)
        known = suite.versions.filter(digest=digest).first()
        if known is not None:
            return known, False
        number = next_version(suite.slug)
        if newest not in (None, number - 1):
            stored = f"Version {number - 1} of {suite.slug} was stored after the preview."
            raise Conflict(f"{stored} Save again to add version {number}.")
        version = SuiteVersionRecord.objects.create(
            suite=suite,
            number=number,
            digest=digest,
            title=head.title,
            max_tokens=head.max_tokens,
            stop=list(head.stop),
            scorer=store_scorer(plan),
            n_cases=n_cases,
        )
        store_cases(version)
        return version, True


def adopt_scorer(*, slug: str, scorer: Mapping[str, Any]) -> tuple[SuiteVersionRecord, bool]:
    """Store a suite's newest version with another default scorer; False if that is stored already.

    Raises NotFound, Conflict, or InvalidInput where the scorer is not valid or does not suit the targets.
    """
    versions = SuiteVersionRecord.objects.select_related("suite", "scorer").filter(suite__slug=slug)
    version = require_row(versions.order_by("-number"), f"There is no suite {slug}.")
    acts.require("adopt", version.suite)
    header = {"title": version.title, "max_tokens": version.max_tokens, "stop": version.stop, "scorer": dict(scorer)}
    head = parse_head(bind_document(header), slug=slug)
    own: dict[str, Any] = {}
    unsuited: dict[str, str] = {}
    for case in version.cases.order_by("index").iterator(chunk_size=CASES_PER_COPY):
        if (named := _case_line(case, version, is_reference=case.is_reference).get("scorer")) is not None:
            own[case.case_id] = named
        elif head.scorer is not None and len(unsuited) < MAX_PROBLEMS:
            place = f"cases[{case.index}].target"
            unsuited.update(scoring.target_problems(head.scorer, case.content["target"], place))
    if unsuited:
        raise InvalidInput("The scorer does not suit the stored targets.", fields=unsuited)
    digests = version.cases.order_by("index").values_list("digest", flat=True)

    def copy_cases(new: SuiteVersionRecord) -> None:
        rows = version.cases.order_by("index").iterator(chunk_size=CASES_PER_COPY)
        while part := list(islice(rows, CASES_PER_COPY)):
            for case in part:
                case.pk, case.suite_version = None, new
            bulk.copy_rows(part)

    return keep_version(
        head,
        digest=digest_parts(head, digests.iterator()),
        plan=scoring.plan(head.scorer, own),
        n_cases=version.n_cases,
        store_cases=copy_cases,
        states_policy=False,
    )


def next_version(slug: str) -> int:
    """Return the number that new content of a suite would get."""
    newest = SuiteVersionRecord.objects.filter(suite__slug=slug).aggregate(number=Max("number"))["number"]
    return int(newest or 0) + 1


def reference_suite(*, slug: str, first: int = 0) -> SuiteVersionRecord:
    """Return the suite of a suite's reference set, created or updated.

    A run of it shows in a fraction of the time whether a rotation changed anything. first: how many of the first cases
    to use if none are marked. Raises NotFound, or Conflict if the suite has no reference set, or if its name is taken
    by a suite that people pushed.
    """
    suite = Suite.objects.filter(slug=slug).first()
    version = None if suite is None else suite.versions.select_related("scorer").order_by("-number").first()
    if suite is None or version is None:
        raise NotFound(f"There is no suite {slug}.")
    there = version.cases.exclude(content__has_key="deleted").order_by("index")
    cases = list(there.filter(is_reference=True)) or list(there[:first])
    if not cases:
        raise Conflict(f"Suite {suite.slug} has no reference set: no case has reference: true.")
    name = f"{suite.slug[: MAX_SLUG - len(REFERENCE)]}{REFERENCE}"
    with transaction.atomic():
        taken = Suite.objects.select_related("reference_of").filter(slug=name).first()
        if taken is not None and (taken.reference_of is None or taken.reference_of.suite_id != suite.pk):
            raise Conflict(
                f"There is a suite {name} that is not the reference set of {suite.slug}, which needs that name."
            )
        made, _ = push_suite(document=_reference_document(name, version, cases))
        # Judged as the suite is.
        Suite.objects.filter(pk=made.suite_id).update(reference_of=version, policy=suite.policy)
    made.refresh_from_db()
    return made


def shipped_mapping(name: str) -> SuiteMapping:
    """Return a mapping that ships with the product. Raises InvalidInput for another name."""
    if name not in (known := mapping_names()):
        raise InvalidInput("The mapping is not known.", fields={"mapping": f"Must be one of: {', '.join(known)}."})
    return parse_mapping(read_suite_json((MAPPINGS / f"{name}.json").read_text()))


def mapping_names() -> tuple[str, ...]:
    """Return the names of the mappings that ship with the product."""
    return tuple(sorted(file.stem for file in MAPPINGS.glob("*.json")))


def store_scorer(plan: Mapping[str, Any]) -> Scorer:
    """Return the scorer of a plan, storing it the first time."""
    scorer, _ = Scorer.objects.get_or_create(digest=scoring.plan_digest(plan), defaults={"spec": plan})
    return scorer


def _locked(suite_id: int) -> Suite:
    """Return the suite with its row locked, so that concurrent pushes take turns."""
    return Suite.objects.select_for_update(of=("self",)).select_related("policy").get(pk=suite_id)


def _reference_document(slug: str, version: SuiteVersionRecord, cases: Sequence[Case]) -> dict[str, Any]:
    """A suite document of some of a version's cases, each with the scorer that it has there."""
    plan = version.scorer.spec
    title = f"{version.title[: MAX_TITLE_CHARS - len(REFERENCE_TITLE)]}{REFERENCE_TITLE}"
    head = dump_header(title=title, max_tokens=version.max_tokens, stop=version.stop, scorer=plan["default"])
    lines = [_case_line(case, version, is_reference=True) for case in cases]
    return {"slug": slug, **head["suite"], "cases": lines}


def _case_line(case: Case, version: SuiteVersionRecord, *, is_reference: bool) -> dict[str, Any]:
    plan = version.scorer.spec
    return dump_case(
        case_id=case.case_id,
        content=case.content,
        tags=case.tags,
        group=case.group,
        is_reference=is_reference,
        scorer=plan["cases"].get(case.case_id),
        default=plan["default"],
        digest=case.digest,
    )


def case_content(case: CaseDocument) -> dict[str, Any]:
    """Return what of a case is stored as JSON."""
    tools = {"tools": list(case.tools)} if case.tools else {}
    own_input = {"input": case.input} if case.input else {}
    return {"messages": list(case.messages), "target": case.target, **tools, **own_input}


def _case_row(version: SuiteVersionRecord, case: CaseDocument) -> Case:
    return Case(
        suite_version=version,
        index=case.index,
        case_id=case.id,
        digest=case.digest,
        content=case_content(case),
        tags=list(case.tags),
        group=case.group,
        is_reference=case.is_reference,
    )
