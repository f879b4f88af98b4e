"""What Evalboard says of two real servers behind a real gateway that nobody told it about (tests/rig/README.md)."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from bench.forced_traces import prompts
from evalboard.contract.probe import ProbeFinding
from evalboard.wording.numbers import p_value
from runs.baselines import set_baseline
from runs.catalogue import create_endpoint, store_default_policies, store_default_profiles
from runs.compare import compare
from runs.lab import experiment_detail, plan_experiment, start_experiment
from runs.management.commands.load_samples import SAMPLE_SUITE
from runs.models import BaselineRecord, Event, ProbeRecord, Rotation, RunRecord
from runs.probes import create_probe
from runs.probes.read import probe_detail
from runs.release import create_release, release_report
from runs.run import create_run, run_report
from runs.suites import push_suite, reference_suite
from runs.sweep import reconcile
from tests import build
from tests.build import comparison_report
from tests.frontend.test_fingerprints import words
from tests.rig.conftest import KEY, Rig
from tests.rig.servers import MODEL, SEEDLESS
from worker.engines.base import Engine, EngineSpec
from worker.engines.vllm import VllmEngine, describe
from worker.runner import Runner

pytestmark = [pytest.mark.rig, pytest.mark.engine, pytest.mark.django_db(transaction=True)]

PATIENCE_SECONDS = 1800.0  # a verification takes five starts of engines, and other work may keep the cores busy
KEY_NAME = "RIG_API_KEY"
VERIFIED_BY = 24  # prompts; the answers have 960 tokens
ENDED = ("finished", "incomplete", "failed", "cancelled")


def no_engine(spec: EngineSpec) -> Engine:
    raise AssertionError("no engine of ours has anything to do here")


class Desk:
    """Who asks, and a worker that answers."""

    def __init__(self, runner: Runner, user: Any) -> None:
        self.user = user
        self._runner = runner
        self._client = Client()
        self._client.force_login(self.user)

    def run(self, on: str, *, suite: str = "sample", repeats: int = 1) -> RunRecord:
        return self.worked(create_run(suite=suite, endpoint=on, profile="fast", repeats=repeats))

    def probe(self, kind: str, *, on: str, **parameters: Any) -> ProbeRecord:
        """Ask; what is asked beside the gateway has ended too."""
        probe = self.worked(create_probe(endpoint=on, kind=kind, parameters=parameters))
        for direct in ProbeRecord.objects.filter(bypass_of=probe):
            self.worked(direct)
        return probe

    def worked(self, row: Any) -> Any:
        """Work, and sweep as a worker does, until it has ended well."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while row.status not in ENDED:
            assert time.monotonic() < deadline, f"{row} is {row.status}"
            self._runner.work()
            reconcile()
            row.refresh_from_db()
            time.sleep(0.1)  # a verification looks again after seconds
        assert row.status == "finished", row
        return row

    def page(self, path: str) -> str:
        """What a page says, without its elements."""
        return words(self._client, path)


@pytest.fixture
def desk(rig: Rig, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """The gateway as an endpoint, its model that drops seeds, and one of the servers reached directly.

    The worker is without an engine, as where only servers of others are judged.
    """
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    settings.RESPONSE_SECONDS = 300.0
    monkeypatch.setenv(KEY_NAME, KEY)
    store_default_profiles()
    store_default_policies()
    push_suite(document=json.loads(SAMPLE_SUITE.read_text()))
    common: dict[str, Any] = {"engine": "openai", "line": "smollm2", "concurrency": 4}
    create_endpoint(slug="vllm-a", base_url=rig.float32.base_url, model_name=MODEL, **common)
    there = {"base_url": rig.gateway.base_url, "auth": KEY_NAME, "bypass": "vllm-a", "rescores": True, **common}
    create_endpoint(slug="litellm", model_name=MODEL, **there)
    create_endpoint(slug="seedless", model_name=SEEDLESS, **there)
    runner = Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine)
    yield Desk(runner, build.user())
    leave(runner)


@pytest.fixture
def desk_with_engine(
    desk: Desk, vllm_python: Path, sample_model: Path, rounded_model: Path, settings: Any
) -> Iterator[Desk]:
    """The same with a worker that has an engine, and endpoints of ours whose weights are known."""
    settings.MODEL_ROOTS = [sample_model.parent, rounded_model.parent]
    for slug, model, dtype in (
        ("reference", sample_model, "float32"),
        ("second-dtype", sample_model, "bfloat16"),
        ("rounded", rounded_model, "bfloat16"),
    ):
        create_endpoint(slug=slug, model_path=str(model), dtype=dtype, line="smollm2", max_model_len=1024)
    runner = Runner(pool="default", hardware=describe(vllm_python), make_engine=partial(VllmEngine, python=vllm_python))
    yield Desk(runner, desk.user)
    leave(runner)


def leave(runner: Runner) -> None:
    """Let a worker close what is open, and leave."""
    runner.stop()
    runner.run_forever()


def test_one_call_in_fifteen_goes_elsewhere_and_every_page_says_what_that_costs(rig: Rig, desk: Desk) -> None:
    """120 calls: that none of them goes elsewhere happens once in 4,000 times."""
    rig.route(float32=14, bfloat16=1)
    direct, through, again = desk.run("vllm-a"), desk.run("litellm", repeats=4), desk.run("litellm", repeats=2)

    report = run_report(through.pk)
    most, odd = sorted(report.buckets, key=lambda bucket: -bucket.share)
    assert rig.float32.base_url in most.fingerprint.label
    assert rig.bfloat16.base_url in odd.fingerprint.label
    assert 0.8 < most.share < 1 == pytest.approx(most.share + odd.share)
    assert None not in (most.score, odd.score)
    assert report.range is None
    assert "without the" in desk.page(f"/runs/{through.pk}/")

    release = create_release(gates=[{"suite": "sample", "candidate": through.pk, "baseline": direct.pk}])
    judged = release_report(release.pk)
    assert judged.verdict == "not_comparable"
    assert "mixed_fingerprint" in {reason.code for reason in judged.reasons}
    assert f"The candidate scored {most.score:.1f} without the" in desk.page(f"/releases/{release.pk}/")

    compared = comparison_report(compare(baseline=through.pk, candidate=again.pk).pk)
    assert "baseline" in compared.mixed_sides
    assert compared.score.difference is None
    assert compared.ledger == ()
    by_cause = {line.cause: line for line in compared.causes}
    assert by_cause["backend_changed"].n_pairs > 0
    # Both servers give the same bits for the same call, or nearly: where a score changed, another server answered.
    assert by_cause["backend_changed"].n_score_changed == compared.counts.score_changed
    assert "without the" in desk.page(f"/compare/{through.pk}/{again.pk}/")

    assert_what_the_odd_one_answered_parts_from_the_direct_answers(direct, through)
    assert_key_is_nowhere()


def assert_what_the_odd_one_answered_parts_from_the_direct_answers(direct: RunRecord, through: RunRecord) -> None:
    """What float32 answers through the gateway has the bits that it has directly, and the cause is the backend's."""
    report = comparison_report(compare(baseline=direct.pk, candidate=through.pk).pk)
    assert {line.cause for line in report.causes} <= {"identical", "backend_changed"}
    n_odd = min(bucket.n_responses for bucket in run_report(through.pk).buckets)
    n_differ = report.counts.n_pairs - report.counts.identical
    assert 0 < n_differ <= n_odd * direct.repeats.count()


def test_the_gateway_is_the_hop_that_drops_the_seed(rig: Rig, desk: Desk) -> None:
    rig.route(float32=1)
    seed = probe_detail(desk.probe("seed", on="seedless", max_tokens=24).pk)
    assert seed.hop is not None
    assert seed.hop.sentence == "Honoured at vllm-a, ignored through seedless: the gateway drops it."
    check = probe_detail(desk.probe("capability", on="seedless").pk)
    assert check.finding is not None
    rows = {row["parameter"]: row["state"] for row in check.finding.numbers["rows"]}
    # Its three calls with a seed may begin alike by chance: up to a third of such checks cannot tell.
    assert rows["seed"] in ("ignored", "unclear")
    assert {name for name, state in rows.items() if state == "ignored"} <= {"seed"}
    assert "ignored" in desk.page("/endpoints/seedless/")


def test_sixty_calls_show_that_two_servers_answer(rig: Rig, desk: Desk) -> None:
    """One in five goes elsewhere, so that none of 60 does once in 650,000 times."""
    rig.route(float32=4, bfloat16=1)
    found = probe_detail(desk.probe("routing", on="litellm").pk)
    assert found.finding is not None
    assert found.finding.state == "several"
    assert found.hop is not None
    assert found.hop.sentence == (
        "One backend at vllm-a, several backends through litellm: the gateway spreads the calls over them."
    )


def test_an_8_bit_copy_under_the_name_of_float32_is_found_out_and_honest_dtypes_are_not(
    rig: Rig, desk_with_engine: Desk
) -> None:
    """The runs and scorings of known origin serve all three verifications."""
    cases = [{"id": str(n), "prompt": prompt, "target": "the"} for n, prompt in enumerate(prompts()[:VERIFIED_BY])]
    push_suite(
        document={"slug": "texts", "title": "T", "max_tokens": 40, "scorer": {"kind": "contains"}, "cases": cases}
    )
    rig.route(rounded=1)
    shown, finding = verify_gateway(desk_with_engine)
    assert finding.state == "other_model"
    assert finding.numbers["statistic"] == "gap"
    assert finding.numbers["endpoint"]["n_tokens"] < 2_000
    assert finding.sentence.startswith("Another model: ")
    assert finding.sentence in shown
    assert f"above numerics {p_value(finding.numbers['p_above_numerics'])}" in shown
    assert finding.numbers["p_above_numerics"] <= 0.01

    rig.route(float32=1)
    assert verify_gateway(desk_with_engine)[1].state in ("same_stack", "same_model_other_numerics")
    rig.route(bfloat16=1)
    assert verify_gateway(desk_with_engine)[1].state == "same_model_other_numerics"


def verify_gateway(desk: Desk) -> tuple[str, ProbeFinding]:
    """Verify whose weights answer behind the gateway; what the page says, and what was found."""
    known = {"reference": "reference", "numerics": "second-dtype", "planted": "rounded"}
    asked = create_probe(endpoint="litellm", kind="verify", profile="fast", parameters={"suite": "texts", **known})
    probe = desk.worked(asked)
    finding = probe_detail(probe.pk).finding
    assert finding is not None
    return desk.page(f"/probes/{probe.pk}/"), finding


def test_a_rotation_behind_the_gateway_expires_the_baseline_and_is_re_scored(rig: Rig, desk: Desk) -> None:
    rig.route(float32=1)
    reference = reference_suite(slug="sample").suite.slug
    earlier = desk.run("litellm", suite=reference)
    set_baseline(suite="sample", run=desk.run("litellm").pk, reason="It is good.", user=desk.user)
    rig.route(bfloat16=1)
    rotated = desk.run("litellm")
    reconcile()
    rotation = Rotation.objects.get()
    assert rotation.run == rotated
    assert BaselineRecord.objects.get().rotation == rotation
    again = desk.worked(rotation.reference_runs.get())
    (told,) = Event.objects.filter(run=rotated, code="rescored")
    assert f"It is compared with run {earlier.pk}, which the earlier stack served." in told.text
    reconcile()
    compared = comparison_report(compare(baseline=earlier.pk, candidate=again.pk).pk)
    assert {line.cause for line in compared.causes} == {"backend_changed"}
    before, after = compared.score.baseline, compared.score.candidate
    assert f"{reference}, {before:.1f} → {after:.1f}." in desk.page("/endpoints/litellm/")


def test_an_experiment_shows_the_gateways_routing_as_a_source(rig: Rig, desk: Desk) -> None:
    """Half of the calls go to the 8-bit copy; the control calls the server itself and must hold."""
    rig.route(float32=1, rounded=1)
    planned = plan_experiment(suite="sample", endpoint="litellm", runs=5, sources=["routing"], user=desk.user)
    start_experiment(experiment_id=planned.pk)
    desk.worked(planned)
    detail = experiment_detail(planned.pk)
    control, routing = (next(row for row in detail.rows if row.source == source) for source in ("control", "routing"))
    assert (control.state, control.n_flipped) == ("holds", 0)
    assert routing.n_responses == 5 * 30
    assert routing.n_flipped > 0
    assert routing.state == "not_scored"  # the gateway names who answers, and scores of two builds are not pooled
    assert "routing" in desk.page(f"/lab/{planned.pk}/")
    assert_key_is_nowhere()


def assert_key_is_nowhere() -> None:
    """No row of any table holds the gateway's key."""
    for model in apps.get_models():
        for row in model._default_manager.values():
            assert KEY not in repr(row), model
