"""Events for webhooks: a run's end, a release's verdict, a rotation, an audit's incident.

Each is called in the transaction that makes it so; docs/operations.md has the payloads. Addresses are written out: a
worker that ends a run need not load every page for them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from evalboard.wording.case import describe_turn
from evalboard.wording.release_names import verdict_name
from runs.models import (
    BaselineRecord,
    Case,
    FollowRecord,
    GateRecord,
    ProbeRecord,
    ReleaseRecord,
    Rotation,
    RunRecord,
    Verdict,
)
from runs.store import instant, read_case_responses
from runs.webhooks import webhooks
from runs.webhooks.follows import ENDS_ONCE, page_path, tell_followers

RUNS_LOOKED_AT = 20  # for the last one before in which all repeats of a case gave one result


def tell_of_end(run_id: int) -> None:
    """Send how a run ended, except a cancelled one, whose person knows."""
    run = RunRecord.objects.select_related("suite_version__suite", "endpoint", "profile").get(pk=run_id)
    event, version = f"run.{run.status}", run.suite_version
    words = f"Run {run.pk} of {version.suite.slug} on {run.endpoint.slug} ended: {run.status}."
    subjects = [("run", run.pk), ("suite", version.suite_id), ("endpoint", run.endpoint_id)]
    if run.is_judge:  # a part of another run, and only that has news
        tell_followers(subjects[:1], text=words, path=f"/runs/{run.pk}/")
        return
    tell_followers(subjects, text=words, path=f"/runs/{run.pk}/")
    if run.status == RunRecord.Status.FINISHED:
        _tell_of_cases(run)
    if event not in webhooks.EVENTS:
        return
    payload = {
        "id": str(run.pk),
        "status": run.status,
        "suite": {"slug": version.suite.slug, "version": version.number},
        "endpoint": run.endpoint.slug,
        "profile": run.profile.slug,
        "labels": run.labels,
        "failure": run.failure or None,
        "created_at": instant(run.created_at),
        "finished_at": instant(run.finished_at),
        "url": webhooks.page_url(f"/runs/{run.pk}/"),
    }
    webhooks.notify(event=event, payload=payload, text=words)


def _tell_of_cases(run: RunRecord) -> None:
    """Tell of followed cases that turned: all repeats pass, and all of an earlier run failed, or reversed.

    A turn is one of a case on an endpoint, and each person is told of it once, however often the run goes on and ends
    again. Runs whose repeats differ are passed over, and so is a run that is older than the endpoint's newest finished.
    """
    suite = run.suite_version.suite
    follows = FollowRecord.objects.filter(kind="case", name__startswith=f"{suite.slug}/").select_for_update(no_key=True)
    by_case: dict[str, list[FollowRecord]] = defaultdict(list)
    for row in follows.order_by("pk"):
        by_case[row.name.partition("/")[2]].append(row)
    finished = RunRecord.objects.filter(
        suite_version__suite=suite, endpoint=run.endpoint_id, status=RunRecord.Status.FINISHED
    )
    runs = finished.select_related("suite_version").order_by("-ran_at", "-id")[:RUNS_LOOKED_AT] if by_case else ()
    if not runs or runs[0].pk != run.pk:
        return
    now, place = _equal_results(run, by_case), str(run.endpoint_id)
    unknown = {case for case in now if any(place not in row.states for row in by_case[case])}
    earlier: dict[str, tuple[bool, int, int]] = {}
    for before in runs[1:]:
        if not unknown - earlier.keys():
            break
        for case, (is_pass, n) in _equal_results(before, unknown - earlier.keys()).items():
            earlier[case] = (is_pass, before.pk, n)
    for case, (is_pass, n) in now.items():
        for row in by_case[case]:
            known = row.states.get(place, earlier.get(case))
            row.states[place] = [is_pass, run.pk, n]
            row.save(update_fields=["states"])
            if known is None or known[0] == is_pass:
                continue
            text = describe_turn(
                case=case,
                suite=suite.slug,
                is_pass=is_pass,
                run=run.pk,
                endpoint=run.endpoint.slug,
                n=n,
                before=known[1],
                n_before=known[2],
            )
            path = page_path("case", f"{suite.slug}/{case}")
            tell_followers([("case", row.subject)], text=text, path=path, person=row.person_id)


def _equal_results(run: RunRecord, case_ids: Iterable[str]) -> dict[str, tuple[bool, int]]:
    """Return by case whether all repeats passed or all failed, and their number; without mixed cases."""
    cases = Case.objects.filter(suite_version=run.suite_version_id, case_id__in=list(case_ids))
    named = dict(cases.values_list("index", "case_id"))
    passed: dict[str, list[bool]] = defaultdict(list)
    n, scorer = len(named), run.suite_version.scorer_id
    for response in read_case_responses([run.pk] * n, list(named), [scorer] * n):
        if response.counts:
            passed[named[response.case_index]].append(response.passed)
    return {case: (each[0], len(each)) for case, each in passed.items() if len(set(each)) == 1}


def tell_of_verdict(release: ReleaseRecord, verdict: Verdict) -> None:
    """Tell a release's verdict where it was another or none before: `release` is as it was until now.

    Followers are told of each that was taken from other data: settling ended, and a person decides.
    """
    gates = GateRecord.objects.filter(release=release).select_related("suite", "candidate_run").order_by("position")
    words = f"Release {release.pk}: {verdict_name(verdict.word)}. {verdict.document['summary']}"
    subjects = [("release", release.pk), *(("suite", gate.suite_id) for gate in gates)]
    for gate in gates:
        subjects += [("run", gate.candidate_run_id), ("endpoint", gate.candidate_run.endpoint_id)]
    decided = verdict.word in (Verdict.Word.SHIP, Verdict.Word.NO_SHIP)
    then = "It waits for a sign-off." if decided else "Open it to see what to do next."
    tell_followers(subjects, text=f"{words} {then}", path=f"/releases/{release.pk}/")
    if release.verdict is not None and release.verdict.word == verdict.word:
        return
    payload = {
        "id": str(release.pk),
        "verdict": verdict.word,
        "verdict_before": None if release.verdict is None else release.verdict.word,
        "summary": verdict.document["summary"],
        "reasons": [{"code": reason["code"], "text": reason["text"]} for reason in verdict.document["reasons"]],
        "gates": [
            {
                "suite": gate.suite.slug,
                "tier": gate.tier,
                "verdict": judged["verdict"],
                "baseline": str(gate.baseline_run_id),
                "candidate": str(gate.candidate_run_id),
            }
            for gate, judged in zip(gates, verdict.document["gates"], strict=True)
        ],
        "labels": release.labels,
        "input_digest": verdict.input_digest,
        "url": webhooks.page_url(f"/releases/{release.pk}/"),
    }
    webhooks.notify(event="release.decided", payload=payload, text=words)


def tell_of_rotation(rotation: Rotation) -> None:
    """Send that a new stack serves an endpoint, which run or probe shows it, and expired baselines."""
    expired = (
        BaselineRecord.objects.filter(rotation=rotation).select_related("run__suite_version__suite").order_by("pk")
    )
    suites = [baseline.run.suite_version.suite.slug for baseline in expired]
    page = f"/probes/{rotation.probe_id}/" if rotation.run_id is None else f"/runs/{rotation.run_id}/"
    payload = {
        "endpoint": rotation.endpoint.slug,
        "profile": rotation.profile_slug or None,
        "fingerprint_before": {"id": str(rotation.before_id), "label": rotation.before.label},
        "fingerprint_after": {"id": str(rotation.after_id), "label": rotation.after.label},
        "run": None if rotation.run_id is None else str(rotation.run_id),
        "probe": None if rotation.probe_id is None else str(rotation.probe_id),
        "expired_baselines": [
            {"suite": suite, "run": str(baseline.run_id)} for suite, baseline in zip(suites, expired, strict=True)
        ],
        "url": webhooks.page_url(page),
    }
    under = f" under {rotation.profile_slug}" if rotation.profile_slug else ""
    lost = f" Baselines expired: {', '.join(sorted(set(suites)))}." if suites else ""
    words = f"{rotation.endpoint.slug}{under} is served by {rotation.after.label} now.{lost}"
    tell_followers([("endpoint", rotation.endpoint_id)], text=words, path=page)
    webhooks.notify(event="rotation.noticed", payload=payload, text=words)


def tell_of_work(table: str, pk: int, *, status: str, error: str = "") -> None:
    """Notify the followers of a probe, replay, forced scoring or experiment that it ended.

    table: of the database, without "runs_".
    """
    kind = "forced" if table == "forcedscoring" else table
    if kind in ENDS_ONCE:
        name = "Forced scoring" if kind == "forced" else kind.capitalize()
        words = f"{name} {pk} ended: {status}. {error}".strip()
        tell_followers([(kind, pk)], text=words, path=page_path(kind, str(pk)))


def tell_of_incident(probe: ProbeRecord, finding: Mapping[str, Any]) -> None:
    """Send that workers gave different answers to equal input, without any content."""
    numbers = finding["numbers"]
    payload = {
        "id": str(probe.pk),
        "endpoint": probe.endpoint.slug,
        "profile": probe.profile.slug,
        "state": finding["state"],
        "n_incidents": numbers["n_incidents"] + numbers["n_across"],
        "incidents": [
            {
                "case": row["case"],
                "prompt": row["prompt"],
                "worker": row["name"],
                "host": row["host"],
                "at": row["at"],
                "against": row["against"]["name"],
                "is_same_stack": row["is_same_stack"],
                "what": row["what"],
                "position": row["position"],
            }
            for row in numbers["incidents"]
        ],
        "url": webhooks.page_url(f"/probes/{probe.pk}/"),
    }
    words = f"Audit {probe.pk} of {probe.endpoint.slug}: {finding['sentence']}"
    webhooks.notify(event="audit.incident", payload=payload, text=words)
