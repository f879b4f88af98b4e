"""Events for webhooks: a run's end, a release's verdict, a rotation, an audit's incident.

Each is called in the transaction that makes it so; docs/operations.md has the payloads. Addresses are written out: a
worker that ends a run need not load every page for them.
"""

from collections.abc import Mapping
from typing import Any

from evalboard.wording.release_names import verdict_name
from runs.models import BaselineRecord, GateRecord, ProbeRecord, ReleaseRecord, Rotation, RunRecord, Verdict
from runs.webhooks import webhooks


def tell_of_end(run_id: int) -> None:
    """Send how a run ended, except a cancelled one, whose person knows."""
    run = RunRecord.objects.select_related("suite_version__suite", "endpoint", "profile").get(pk=run_id)
    event = f"run.{run.status}"
    if event not in webhooks.EVENTS:
        return
    version = run.suite_version
    payload = {
        "id": str(run.pk),
        "status": run.status,
        "suite": {"slug": version.suite.slug, "version": version.number},
        "endpoint": run.endpoint.slug,
        "profile": run.profile.slug,
        "labels": run.labels,
        "failure": run.failure or None,
        "created_at": webhooks.instant(run.created_at),
        "finished_at": webhooks.instant(run.finished_at),
        "url": webhooks.page_url(f"/runs/{run.pk}/"),
    }
    words = f"Run {run.pk} of {version.suite.slug} on {run.endpoint.slug} ended: {run.status}."
    webhooks.notify(event=event, payload=payload, text=words)


def tell_of_verdict(release: ReleaseRecord, verdict: Verdict) -> None:
    """Tell a release's verdict where it was another or none before: `release` is as it was until now."""
    if release.verdict is not None and release.verdict.word == verdict.word:
        return
    gates = GateRecord.objects.filter(release=release).select_related("suite").order_by("position")
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
    words = f"Release {release.pk}: {verdict_name(verdict.word)}. {verdict.document['summary']}"
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
    webhooks.notify(event="rotation.noticed", payload=payload, text=words)


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
