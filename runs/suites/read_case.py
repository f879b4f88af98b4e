"""Read the history of one case over the runs of its suite, in a bounded number of statements."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet
from django.db.models.functions import Left
from django.urls import reverse

from evalboard.contract import case as contract
from evalboard.contract.excerpt import AnswerExcerpt
from evalboard.contract.parts import name_version
from evalboard.core.compare import cut_texts
from evalboard.core.errors import NotFound
from evalboard.core.stats import find_lasting_change
from evalboard.path_converters import reverse_case
from evalboard.wording import case as words
from evalboard.wording.numbers import letter
from runs.models import Case, ResponseRecord, RunRecord
from runs.run import NEWEST_FIRST, prompt_of
from runs.store import CaseResponse, read_case_responses, read_scored
from runs.suites.decoding import newest_own_runs

RUNS_READ = 200  # newest ones, in which answers are counted and the change is searched
RUNS_SHOWN = 20
ANSWERS_SHOWN = 10  # distinct texts, most frequent first
TEXT_READ, TEXT_SHOWN = 20_000, 2_000  # characters of an answer


class _Run(NamedTuple):
    """A run with the facts that may change between two runs."""

    id: int
    ran_at: datetime
    version: int
    endpoint: str
    profile: str
    profile_version: int
    model_id: int | None
    model: str | None
    server_id: int | None
    server: str | None

    @property
    def model_name(self) -> str:
        return self.model or self.endpoint

    @property
    def profile_name(self) -> str:
        return name_version(self.profile, self.profile_version)


RUN_FIELDS = (
    *("id", "ran_at", "suite_version", "endpoint__slug", "profile__slug", "profile__version"),
    *("bucket__model", "bucket__model__name", "bucket__fingerprint", "bucket__fingerprint__label"),
)


_Versions = Mapping[int, Case]  # by id of the suite version
_Responses = Mapping[int, Sequence[CaseResponse]]  # by run


def case_history(slug: str, case_id: str, *, offset: int = 0, limit: int = RUNS_SHOWN) -> contract.CaseHistory:
    """Read a case's history, with up to `limit` runs from `offset` on. Raises NotFound."""
    versions = _find_versions(slug, case_id)
    newest = next(iter(versions.values()))
    every = RunRecord.objects.filter(suite_version__in=versions).exclude(status=RunRecord.Status.QUEUED)
    n_runs = every.count()
    counted = _list_runs(every, 0, RUNS_READ)
    shown = counted[offset : offset + limit + 1]
    if offset + limit >= RUNS_READ:
        shown = _list_runs(every, offset, offset + limit + 1)
    responses = _read_responses(versions, {run.id: run for run in (*counted, *shown)})
    answered = [run for run in counted if run.id in responses]
    by_text = _group_by_text([each for run in answered for each in responses[run.id]])
    letters = {text: letter(place) for place, text in enumerate(by_text)}
    claim, rest, change = _describe(versions, answered, responses)
    results = [each for run in answered for each in responses[run.id] if each.counts]
    return contract.CaseHistory(
        suite=slug,
        case=case_id,
        version=newest.suite_version.number,
        digest=newest.digest,
        prompt=prompt_of(newest),
        target=newest.content["target"],
        tags=tuple(newest.tags),
        claim=claim,
        rest=tuple(filter(None, (*rest, words.describe_part(len(counted), n_runs)))),
        n_runs=n_runs,
        n_runs_read=len(counted),
        n_repeats=len(results),
        n_passed=sum(each.passed for each in results),
        n_answers=len(by_text),
        change=change,
        answers=tuple(_list_answers(list(by_text.values())[:ANSWERS_SHOWN], newest.suite_version.n_cases)),
        runs=tuple(_show_runs(versions, shown, responses, letters))[:limit],
        endpoints=tuple(newest_own_runs(slug, case_id).values_list("endpoint__slug", flat=True)),
        url=reverse_case("suite_case", slug, case_id),
        messages=tuple(newest.content["messages"]),
    )


def _find_versions(slug: str, case_id: str) -> dict[int, Case]:
    """Return the case in each suite version that has it, newest first.

    Only the newest has its content.
    """
    cases = Case.objects.filter(suite_version__suite__slug=slug, case_id=case_id).order_by("-suite_version__number")
    versions = {case.suite_version_id: case for case in cases.select_related("suite_version").defer("content")}
    if not versions:
        raise NotFound(f"No version of a suite {slug} has a case {case_id}.")
    return versions


def _list_runs(every: QuerySet[RunRecord], first: int, end: int) -> list[_Run]:
    return [_Run(*row) for row in every.order_by(*NEWEST_FIRST).values_list(*RUN_FIELDS)[first:end]]


def _read_responses(versions: _Versions, runs: Mapping[int, _Run]) -> _Responses:
    """Return the responses of each run that has any."""
    indexes = [versions[run.version].index for run in runs.values()]
    scorers = [versions[run.version].suite_version.scorer_id for run in runs.values()]
    by_run: dict[int, list[CaseResponse]] = defaultdict(list)
    for response in read_case_responses(list(runs), indexes, scorers):
        by_run[response.run].append(response)
    return by_run


def _group_by_text(responses: Sequence[CaseResponse]) -> dict[bytes, list[CaseResponse]]:
    """Group answers by text: the most frequent right one first, then by frequency.

    Within a group the newest run is first.
    """
    groups: dict[bytes, list[CaseResponse]] = defaultdict(list)
    for each in responses:
        if not each.error:
            groups[each.text].append(each)
    ordered = sorted(groups, key=lambda text: -len(groups[text]))
    first = next((text for text in ordered if groups[text][0].passed), None)
    return {text: groups[text] for text in sorted(ordered, key=lambda text: text != first)}


def _describe(
    versions: _Versions, runs: Sequence[_Run], responses: _Responses
) -> tuple[str, tuple[str, ...], contract.LastingChange | None]:
    """Return the history in words, and the change that lasted."""
    passed = {run.id: [each.passed for each in responses[run.id] if each.counts] for run in reversed(runs)}
    scored = [run for run in reversed(runs) if passed[run.id]]  # oldest first
    results = [passed[run.id] for run in scored]
    lasting = find_lasting_change(results)
    every = [result for run in results for result in run]
    if lasting is None:
        newest = results[-1] if results else []
        return words.describe_steady(sum(every), len(every), len(results), newest), (), None
    before, after = scored[lasting.at - 1], scored[lasting.at]
    n_before = sum(map(len, results[: lasting.at]))
    change = contract.LastingChange(
        is_pass=lasting.is_pass,
        run=str(after.id),
        before=str(before.id),
        n_passed_before=sum(map(sum, results[: lasting.at])),
        n_before=n_before,
        n_after=len(every) - n_before,
        n_runs_after=len(results) - lasting.at,
        changes=tuple(_find_changes(versions, before, after)),
        chance=lasting.chance,
    )
    claim, rest = words.describe_change(change, before.ran_at)
    return claim, rest, change


def _find_changes(versions: _Versions, before: _Run, after: _Run) -> Iterator[contract.CaseChange]:
    """Yield the facts that differ between two runs."""
    if None not in (before.model_id, after.model_id) and before.model_id != after.model_id:
        yield contract.CaseChange(what="model", before=before.model_name, after=after.model_name)
    if before.server_id != after.server_id:
        yield contract.CaseChange(what="server", before=before.server or "", after=after.server or "")
    if before.endpoint != after.endpoint:
        yield contract.CaseChange(what="endpoint", before=before.endpoint, after=after.endpoint)
    if before.profile_name != after.profile_name:
        yield contract.CaseChange(what="profile", before=before.profile_name, after=after.profile_name)
    ours, theirs = versions[before.version], versions[after.version]
    if ours.digest != theirs.digest:
        yield contract.CaseChange(what="case", before=ours.digest, after=theirs.digest)
    if ours.suite_version.scorer_id != theirs.suite_version.scorer_id:
        numbers = (f"of v{case.suite_version.number}" for case in (ours, theirs))
        yield contract.CaseChange(what="scorer", before=next(numbers), after=next(numbers))


def _show_runs(
    versions: _Versions, runs: Sequence[_Run], responses: _Responses, letters: Mapping[bytes, str]
) -> Iterator[contract.CaseRun]:
    """Yield runs newest first, each with what changed since the one before it in the list."""
    for run, before in zip(runs, [*runs, None][1:], strict=True):
        yield contract.CaseRun(
            run=str(run.id),
            ran_at=run.ran_at,
            model=run.model_name,
            server=run.server or "",
            changes=tuple(_find_changes(versions, before, run)) if before else (),
            repeats=tuple(
                contract.CaseRepeat(
                    repeat=each.repeat,
                    answer=None if each.error else letters.get(each.text, "–"),
                    score=each.score,
                    error=each.error or None,
                    is_sample=each.is_sample,
                )
                for each in responses.get(run.id, ())
            ),
            url=reverse("run", args=[run.id]),
        )


def _list_answers(groups: Sequence[Sequence[CaseResponse]], n_cases: int) -> Iterator[contract.CaseAnswer]:
    """Yield an answer of each group, with its newest response."""
    newest = [group[0] for group in groups]
    rows = ResponseRecord.objects.filter(pk__in=[each.id for each in newest])
    texts = dict(rows.annotate(start=Left("text", TEXT_READ)).values_list("pk", "start"))
    largest = max([n_cases, *(each.case_index + 1 for each in newest)])
    scored = read_scored([(each.repeat_id, each.case_index) for each in newest], n_cases=largest)
    usual = texts[newest[0].id] if newest else ""
    for place, (group, each) in enumerate(zip(groups, newest, strict=True)):
        text = texts[each.id]
        other = texts[newest[1].id] if place == 0 and len(newest) > 1 else usual
        own = scored.get((each.repeat_id, each.case_index), ())
        reason = next((row.reason for row in own if row.score == each.score), None)
        yield contract.CaseAnswer(
            letter=letter(place),
            text=text[:TEXT_SHOWN],
            is_cut=len(text) > TEXT_SHOWN,
            excerpt=cut_texts(text, other)[0] if text != other else _start(text),
            n_repeats=len(group),
            runs=tuple(dict.fromkeys(str(response.run) for response in group)),
            run=str(each.run),
            repeat=each.repeat,
            score=each.score,
            reason=reason or None,
        )


def _start(text: str) -> AnswerExcerpt:
    line = " ".join(text[:TEXT_SHOWN].split())
    return AnswerExcerpt(before="", is_cut=False, token="", after=line[:160], is_hit=False)
