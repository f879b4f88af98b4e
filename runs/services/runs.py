"""Runs: asked for, extended, cancelled, deleted."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, Sum
from django.db.models.functions import Now

from evalboard.core import draws, scoring
from evalboard.core import profile as profiles
from evalboard.core.errors import Conflict, InvalidInput, NotFound, ProfileRefused
from runs.models import (
    Endpoint,
    Gate,
    Profile,
    Repeat,
    Response,
    Rotation,
    Run,
    Shard,
    Suite,
    SuiteVersion,
    Worker,
)
from runs.pair_facts import draws_of
from runs.services import doorbell, history, rollup
from runs.services.endpoints import model_problems
from runs.statements import take_as_long_as_it_takes

MAX_REPEATS = 100
MAX_LABELS = 20
# A shard is minutes of work at most, and several workers can share a repeat. A crash costs what was in flight.
SHARD_CASES_MIN, SHARD_CASES_MAX = 12, 100
SHARDS_PER_REPEAT = 32
SCORED_AT_ONCE = 2000  # responses; about a second


def create_run(
    *,
    suite: str,
    suite_version: int | None = None,
    endpoint: str,
    profile: str,
    repeats: int = 5,
    seed: int | None = None,
    model: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    user: Any = None,
) -> Run:
    """Write a run with its repeats and shards in one transaction; workers find it there.

    seed: what the seeds of all calls follow from where the profile samples; without one it is the profile's.

    Raises NotFound for names that do not exist, InvalidInput with fields, and ProfileRefused when
    every worker seen lately says that its hardware cannot honour the profile.
    """
    version = named_suite_version(suite, suite_version)
    target = named_endpoint(endpoint)
    decoding = newest_profile(profile)
    sampling = profiles.sampling_of(decoding.settings)
    fields = label_problems(labels or {}) | _model_problems(model) | _known_from_logs(version, target, decoding)
    fields |= _seed_problems(seed, sampling)
    if not 1 <= repeats <= MAX_REPEATS:
        fields["repeats"] = f"Must be a whole number from 1 to {MAX_REPEATS}."
    if version.max_tokens >= target.max_model_len:
        fields["suite"] = (
            f"Its answers of {version.max_tokens} tokens leave no room for a prompt in the endpoint's context of "
            f"{target.max_model_len}."
        )
    if fields:
        raise InvalidInput("The run is not valid.", fields=fields)
    refuse_if_nobody_can(target, decoding)
    with transaction.atomic():
        run = Run.objects.create(
            suite_version=version,
            endpoint=target,
            profile=decoding,
            seed=sampling["seed"] if seed is None else seed,
            model_override=dict(model) if model else None,
            labels=dict(labels or {}),
            created_by=user,
        )
        store_repeats(run, range(1, repeats + 1))
        sampled = draws_of(run).words
        how = f"{decoding} ({sampled})" if sampled else str(decoding)
        history.note(run.pk, "created", f"Asked for: {version}, {of_repeats(repeats)}, {how} on {target}.")
        doorbell.ring_after_commit(run)
    return run


def add_repeats(*, run_id: int, n: int) -> Run:
    """Add n repeats to a run that is not cancelled; a finished run goes back to work.

    Raises NotFound, InvalidInput, or Conflict where the run was cancelled or has failed.
    """
    with transaction.atomic():
        run = locked(run_id)
        if run.status in (Run.Status.CANCELLED, Run.Status.FAILED) or run.is_cancel_wanted:
            raise Conflict(f"Run {run_id} is {run.status}; start a new run instead.")
        if run.source_id is not None:
            raise Conflict(f"Run {run_id} was read from a log, and nothing here decodes it; it has the log's repeats.")
        if run.is_one_draw:
            raise Conflict(one_draw_refusal(run))
        have = run.repeats.count()
        if not 1 <= n <= MAX_REPEATS - have:
            raise InvalidInput("Repeats cannot be added.", fields={"n": f"Must be from 1 to {MAX_REPEATS - have}."})
        store_repeats(run, range(have + 1, have + n + 1))
        put_to_work(run, f"{of_repeats(n)} added.")
    return run


def one_draw_refusal(run: Run) -> str:
    """Why a run of before runs had seeds is given no more repeats."""
    return f"Every repeat of run {run.pk} is sent the profile's seed, so more of them add no draw; start a new run."


def put_to_work(run: Run, told: str) -> None:
    """Queue a locked run again that was given repeats, and tell its history and its pool."""
    if run.is_terminal:
        run.status, run.finished_at = Run.Status.QUEUED, None
        run.save(update_fields=["status", "finished_at"])
    history.note(run.pk, "repeats_added", told)
    doorbell.ring_after_commit(run)


def cancel_run(*, run_id: int) -> Run:
    """Stop a run: queued shards at once, running ones at their worker's next heartbeat.

    A run that has ended stays as it ended: Conflict. Cancelling twice is harmless.
    """
    with transaction.atomic():
        run = locked(run_id)
        if run.status == Run.Status.CANCELLED:
            return run
        if run.is_terminal:
            raise Conflict(f"Run {run_id} has already ended as {run.status}.")
        if not run.is_cancel_wanted:
            run.is_cancel_wanted = True
            run.save(update_fields=["is_cancel_wanted"])
            history.note(run.pk, "cancel_wanted", "Cancelling was asked for.")
    # Not while the run's row is locked: a claim locks its shard first and then wants the run.
    Shard.objects.cancelled_in_the_queue().filter(repeat__run=run).update(status=Shard.Status.CANCELLED)
    waiting = run.repeats.filter(finished_at=None)
    stored = Shard.objects.filter(repeat__run=run).aggregate(n=Sum("n_done"))["n"] or 0
    if stored > SCORED_AT_ONCE:  # too many to score while somebody waits: the next sweep does it
        waiting = waiting.exclude(shards__n_done__gt=0)
    for repeat_id in waiting.values_list("id", flat=True):
        rollup.finish_repeat(repeat_id=repeat_id)
    run.refresh_from_db()
    return run


def delete_run(*, run_id: int) -> None:
    """Delete a run with its responses and traces. Raises Conflict while it is at work, or where others rest on it."""
    with transaction.atomic():
        take_as_long_as_it_takes()
        run = locked(run_id)
        if not run.is_terminal:
            raise Conflict(f"Run {run_id} is {run.status}; cancel it first.")
        _refuse_if_needed(run)
        list(run.repeats.select_for_update().order_by("pk").values_list("pk"))  # waits for who scores them again
        # First, and without loading a row: a run may hold half a million. The rest goes with the run, by key.
        Response.objects.filter(repeat__run=run).delete()
        source = run.source
        run.delete()
        if source is not None and not source.runs.exists():
            source.delete()  # so that the log can be imported again


def _refuse_if_needed(run: Run) -> None:
    """History that people rely on keeps its runs: what was a baseline, what was judged, what dates a rotation."""
    if (baseline := run.baselines.select_related("suite").order_by("-id").first()) is not None:
        raise Conflict(f"Run {run.pk} is in the history of suite {baseline.suite.slug}'s baselines; it is kept.")
    gates = Gate.objects.filter(Q(baseline_run=run) | Q(candidate_run=run))
    if (release := gates.order_by("release_id").values_list("release", flat=True).first()) is not None:
        raise Conflict(f"Release {release} rests on run {run.pk}; it is kept.")
    if Rotation.objects.filter(run=run).exists():
        raise Conflict(f"Run {run.pk} is the first that another stack served, and dates that rotation; it is kept.")


def locked(run_id: int) -> Run:
    """The run, its row locked until the transaction ends. Raises NotFound."""
    run = Run.objects.select_for_update(no_key=True).filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    return run


def shard_size(n_cases: int, group_size: int | None) -> int:
    """How many cases a shard holds; a multiple of the group size, so that groups never depend on it."""
    size = min(max(-(-n_cases // SHARDS_PER_REPEAT), SHARD_CASES_MIN), SHARD_CASES_MAX)
    if group_size is None:
        return size
    return -(-size // group_size) * group_size


def store_repeats(run: Run, indexes: Iterable[int]) -> None:
    """Store repeats with their shards, which are claimed in the order in which they are stored."""
    n_cases = run.suite_version.n_cases
    size = shard_size(n_cases, profiles.parse(run.profile.settings).group_size)
    repeats = Repeat.objects.bulk_create(Repeat(run=run, index=index) for index in indexes)
    Shard.objects.bulk_create(
        (
            Shard(repeat=repeat, first=first, last=min(first + size, n_cases) - 1)
            for repeat in repeats
            for first in range(0, n_cases, size)
        ),
        batch_size=2000,
    )


def of_repeats(n: int) -> str:
    return "1 repeat" if n == 1 else f"{n} repeats"


def named_suite_version(slug: str, number: int | None) -> SuiteVersion:
    """A suite's version, its newest where none is named. Raises NotFound."""
    suite = Suite.objects.filter(slug=slug).first()
    if suite is None:
        raise NotFound(f"There is no suite {slug}; push it with `evalboard suite push`.")
    versions = suite.versions.select_related("suite", "scorer")
    version = versions.order_by("-number").first() if number is None else versions.filter(number=number).first()
    if version is None:
        raise NotFound(f"Suite {slug} has no version {number}.")
    return version


def named_endpoint(slug: str) -> Endpoint:
    """Raises NotFound."""
    endpoint = Endpoint.objects.filter(slug=slug).first()
    if endpoint is None:
        raise NotFound(f"There is no endpoint {slug}; the settings page lists them.")
    return endpoint


def newest_profile(slug: str) -> Profile:
    """The newest version of a profile. Raises NotFound."""
    newest = Profile.objects.filter(slug=slug).order_by("-version").first()
    if newest is None:
        raise NotFound(f"There is no profile {slug}; the settings page lists them.")
    return newest


def _seed_problems(seed: int | None, sampling: Mapping[str, Any]) -> dict[str, str]:
    if seed is None:
        return {}
    if not 0 <= seed <= draws.MAX_SEED:
        return {"seed": "Must be a whole number from 0 to 2⁶³ − 1."}
    if not draws.is_sampled(sampling) and seed != sampling.get("seed"):
        return {"seed": "The profile decodes at temperature 0, where a seed changes nothing; leave it out."}
    return {}


def _known_from_logs(version: SuiteVersion, target: Endpoint, decoding: Profile) -> dict[str, str]:
    """What was only ever read from other tools' logs decodes and scores nothing here."""
    fields: dict[str, str] = {}
    if scoring.is_recorded(version.scorer.spec):
        fields["suite"] = "Its scores were read from logs; push it with a scorer to run it."
    if target.engine == Endpoint.Engine.IMPORTED:
        fields["endpoint"] = "It stands for what answered according to logs, and nothing here decodes it."
    if decoding.settings.get("batch_class") == profiles.OBSERVED:
        fields["profile"] = "It says what logs were sampled with, as far as they tell; choose one that says everything."
    return fields


def refuse_if_nobody_can(endpoint: Endpoint, decoding: Profile) -> None:
    """Raises ProfileRefused when every worker of the pool seen lately says that it cannot honour the profile."""
    settings_of_profile = profiles.parse(decoding.settings)
    seen_lately = timedelta(seconds=settings.LEASE_SECONDS)
    alive = Worker.objects.filter(pool=endpoint.pool, stopped_at=None, seen_at__gt=Now() - seen_lately)
    refusals = [
        profiles.refusal(
            settings_of_profile,
            worker.hardware,
            host=worker.host,
            self_test_result=worker.self_test.result if worker.self_test else None,
        )
        for worker in alive.select_related("self_test")
    ]
    if refusals and all(refusals):
        raise ProfileRefused(f"No worker can honour the profile {decoding.slug}. {refusals[0]}")


def label_problems(labels: Mapping[str, Any]) -> dict[str, str]:
    if len(labels) > MAX_LABELS:
        return {"labels": f"At most {MAX_LABELS} labels."}
    return {
        f"labels.{key}": "A label's name has at most 40 characters and its value is text of at most 200."
        for key, value in labels.items()
        if not 1 <= len(key) <= 40 or not isinstance(value, str) or len(value) > 200 or "\0" in key + value
    }


def _model_problems(model: Mapping[str, Any] | None) -> dict[str, str]:
    if model is None:
        return {}
    unknown = set(model) - {"path", "repo", "revision"}
    if unknown:
        return {f"model.{name}": "Unknown field." for name in sorted(unknown)}
    values = {name: model.get(name) or "" for name in ("path", "repo", "revision")}
    if not all(isinstance(value, str) for value in values.values()):
        return {"model": "Path, repo and revision are text."}
    return model_problems(**values)
