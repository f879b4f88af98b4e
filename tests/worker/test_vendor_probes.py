"""Vendor probes over real sockets: each planted fault is named, and honest vendors are accused of nothing."""

import pytest

from evalboard.core.probes import judge_vendor_facts
from runs.models import ProbeRecord
from tests.vendors import FAULTY, Paint, refuses_tools, vendor
from tests.worker.test_remote_probes import Start, ask, runner, start, worked  # noqa: F401  fixtures
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)


def rows(probe: ProbeRecord, reference: ProbeRecord | None = None) -> dict[str, str]:
    assert probe.finding is not None, probe.error
    facts = [each.finding["numbers"]["facts"] for each in (probe, reference) if each is not None]
    return {row["row"]: row["state"] for row in judge_vendor_facts(*facts)}


def faults(probe: ProbeRecord, reference: ProbeRecord) -> set[str]:
    return {name for name, state in rows(probe, reference).items() if state == "fault"}


@pytest.mark.nightly
def test_eight_faults_are_named_and_two_honest_vendors_pass(start: Start, runner: Runner) -> None:  # noqa: F811
    scripts = {"maker": vendor(), "honest-a": vendor(), "honest-b": vendor()}
    scripts |= {name: vendor(change) for name, (change, _) in FAULTY.items()}
    cards = {}
    for slug, script in scripts.items():
        start(script, slug=slug, answerer=Paint())
        cards[slug] = worked(runner, ask("vendor", on=slug))
    maker = cards["maker"]
    assert {slug: faults(cards[slug], maker) for slug in ("honest-a", "honest-b")} == {
        "honest-a": set(),
        "honest-b": set(),
    }
    assert {slug: faults(cards[slug], maker) for slug in FAULTY} == {slug: named for slug, (_, named) in FAULTY.items()}
    assert set(rows(cards["honest-a"], maker).values()) == {"good", "measured"}
    assert cards["honest-a"].finding["state"] == "measured", cards["honest-a"].finding["sentence"]
    assert rows(cards["fallback"], maker)["one_build"] == "several"
    assert cards["stream"].finding["state"] == "faults"
    assert "Faults: streamed text." in cards["stream"].finding["sentence"]


def test_what_a_vendor_refuses_is_no_fault(start: Start, runner: Runner) -> None:  # noqa: F811
    start(vendor(refuses_tools), answerer=Paint())
    states = rows(worked(runner, ask("vendor")))
    assert {states[name] for name in ("tools_called", "tool_arguments", "tool_choice", "json_schema")} == {"refused"}
    assert "fault" not in states.values()
