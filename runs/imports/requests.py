"""Import a batch's requests after its results, which gives the stored run prompts and settings."""

from collections.abc import Sequence

from evalboard.core.errors import InvalidInput
from evalboard.core.profile import is_one_draw
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun
from evalboard.logged.suites import NO_LIMIT, NO_PROMPTS, UNKNOWN_PROMPT, says_max_tokens
from runs import acts
from runs.imports.buckets import profile_of
from runs.imports.import_suites import fill_prompts
from runs.models import Case, ImportRecord, ResponseRecord, RunRecord
from runs.store import changes, history, storable
from runs.work.settings_seen import see_settings

ALONE = "holds requests alone, and no run without prompts has results of all of them; import the results with it"
NO_REQUESTS = "The file of the requests was not given"


def is_of_requests(logged: Sequence[LoggedRun]) -> bool:
    """Tell whether a log has requests without results."""
    return not any(run.responses for run in logged)


def complete_run(
    files: Sequence[LogFile], logged: LoggedRun, *, suite: str | None
) -> tuple[ImportRecord, list[RunRecord], bool]:
    """Give the one run whose cases are all among these requests their prompts and settings, and return it.

    False, and the run, where these requests completed it before. Raises InvalidInput naming the file where no run or
    more than one fits, and Conflict where a baseline or a release rests on the run.
    """
    known = (
        ImportRecord.objects.filter(files__contains=[{"sha256": file.sha256} for file in files]).order_by("-id").first()
    )
    if known is not None:
        return known, list(known.runs.order_by("id")), False
    fitting = [run for run in _fitting_runs(logged) if suite in (None, run.suite_version.suite.slug)]
    if len(fitting) != 1:
        ids = " and ".join(str(run.pk) for run in fitting)
        problem = f"fits the runs {ids}; import the results with it" if fitting else ALONE
        raise InvalidInput(f"{files[0].name}: {problem}", fields={file.name: problem for file in files})
    run, source = fitting[0], fitting[0].source
    assert source is not None  # noqa: S101  for the type checker: the runs were chosen by it
    acts.require("replace", run)
    _fill(run, logged, tool=source.tool)
    notes = [f"Prompts and settings are those of {', '.join(storable(file.name) for file in files)}, imported later."]
    if logged.model and logged.model != run.endpoint.model_repo:
        notes.append(f"The requests asked for {storable(logged.model)}; {run.endpoint.model_repo} answered.")
    for note in notes:
        history.note(run.pk, "import_note", note)
    source.files = [
        *source.files,
        *({"name": storable(file.name), "size": file.size, "sha256": file.sha256} for file in files),
    ]
    answered = (NO_REQUESTS, NO_PROMPTS, *([NO_LIMIT] if says_max_tokens(logged) else []))
    source.notes = [*(note for note in source.notes if not note.startswith(answered)), *notes]
    source.save(update_fields=["files", "notes"])
    changes.run_changed(run_id=run.pk)
    return source, [run], True


def _fitting_runs(logged: LoggedRun) -> list[RunRecord]:
    """Return the imported runs that lack prompts, and whose cases are all among the requests."""
    unknown = Case.objects.filter(content__messages=[{"role": "user", "content": UNKNOWN_PROMPT}])
    runs = RunRecord.objects.filter(source__format="batch", suite_version__in=unknown.values("suite_version"))
    known = {case.id for case in logged.cases}
    related = runs.select_related("source", "endpoint", "suite_version__suite").order_by("id")
    return [run for run in related if known.issuperset(run.suite_version.cases.values_list("case_id", flat=True))]


def _fill(run: RunRecord, logged: LoggedRun, *, tool: str) -> None:
    run.suite_version = fill_prompts(run.suite_version, logged, tool=tool)
    run.profile = profile_of(logged)
    responses = ResponseRecord.objects.filter(repeat__run=run, error_code="")
    seed = logged.sampling.get("seed")
    if isinstance(seed, int):
        responses.filter(seed_sent=None).update(seed_sent=seed)
    sent = responses.values_list("case_index", "seed_sent", "request_id")
    run.is_one_draw = is_one_draw(logged.sampling, ((str(index), number, call) for index, number, call in sent))
    run.settings_seen = see_settings(run).to_json()
    run.save(update_fields=["suite_version", "profile", "is_one_draw", "settings_seen"])
