"""`evalboard vendors`, against a server that is really there."""

import json
from collections.abc import Callable
from dataclasses import replace
from subprocess import CompletedProcess

import pytest

from evalboard.core.probes import ProbeExchange
from runs.models import ProbeRecord
from tests import build, probes
from tests.capability import answer_calls
from tests.vendors import honest, without_choice

Call = Callable[..., "CompletedProcess[str]"]


def answer_all() -> None:
    """Answer every queued probe as an honest server would."""
    while probe := ProbeRecord.objects.filter(status="queued").order_by("pk").first():
        answers = iter(answer_calls())

        def known(call: ProbeExchange, answers: object = answers) -> ProbeExchange:
            return replace(next(answers), worker=None)  # type: ignore[call-overload]

        probes.served_by_others(honest if probe.kind == "vendor" else known)


def test_a_card_is_printed_and_a_fault_is_1(evalboard: Call) -> None:
    build.suite("colours")
    probes.vendor_probed("a", without_choice)
    probes.vendor_probed("b")
    bad = evalboard("vendors", "colours", "--endpoints", "a,b")
    assert (bad.returncode, bad.stderr) == (1, "")
    assert "a, tool_choice: 10 of 10 calls do not follow tool_choice." in bad.stdout
    good = evalboard("vendors", "colours", "--endpoints", "b", "--reference", "a", "--json")
    assert good.returncode == 0
    assert json.loads(good.stdout)["reference"] == "a"
    assert evalboard("vendors", "colours", "--endpoints", "b", "--format", "pdf").returncode == 64


@pytest.mark.nightly
def test_endpoints_and_reference_are_measured_first(evalboard: Call) -> None:
    build.suite("colours")
    for slug in ("pinned", "fast"):
        build.profile(slug)
    for slug in ("a", "maker"):
        probes.remote(slug)
    asked = ("vendors", "colours", "--endpoints", "a", "--reference", "maker", "--measure", "--format", "csv")
    measured = evalboard(*asked, meanwhile=[(": queued, 0 of 102 calls\n", answer_all)])
    assert measured.returncode == 0, measured.stderr
    assert set(ProbeRecord.objects.values_list("endpoint__slug", "kind")) == {
        (slug, kind) for slug in ("a", "maker") for kind in ("vendor", "capability")
    }
    assert (
        "prompt_tokens,a,good,The counts of 26 prompts are the reference's. Not measured: long prompts"
        in measured.stdout
    )
