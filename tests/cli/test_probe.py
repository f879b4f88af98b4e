"""`evalboard probe`, against a server that is really there; the worker's part is played by the services."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from subprocess import CompletedProcess

import pytest

from evalboard.cli import main
from evalboard.cli.probe import choose_exit_code, render_result
from evalboard.contract.parts import Done
from evalboard.contract.probe import Probe, ProbeFinding, ProbeHop
from evalboard.core.probes import judge_capability_probe
from evalboard.wording import probe_states
from runs.models import ProbeRecord
from tests import build, probes, verifying
from tests.capability import EVERYTHING, answer_calls
from tests.cli.conftest import ctrl_c

Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def endpoint(transactional_db: None) -> str:
    build.profile("pinned")
    build.profile("fast")
    return build.endpoint("local")


def ended(kind: str, state: str | None, *, status: str = "finished", error: str | None = None) -> Probe:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    return Probe(
        id="7",
        endpoint="local",
        kind=kind,
        profile="pinned",
        profile_version=1,
        status=status,
        created_by=None,
        created_at=at,
        finished_at=at,
        rests_until=None,
        pause=None,
        sets=(),
        url="https://board.example/probes/7/",
        parameters={},
        progress=Done(n_done=22, n_total=22),
        expected_cost=None,
        cost=None,
        finding=None if state is None else ProbeFinding(state=state, sentence="So it is.", numbers={}),
        error=error,
        hop=None,
        control=None,
        workers=(),
        waits_for=(),
    )


def test_a_probe_is_asked_for_followed_and_read(evalboard: Call, endpoint: str) -> None:
    asked = ("probe", "local", "--kind", "seed", "--profile", "pinned", "--set", "prompts=2")
    done = evalboard(*asked, meanwhile=[(": queued, 0 of 22 calls\n", lambda: probes.served(probes.honoured))])
    probe = ProbeRecord.objects.get()
    assert (done.returncode, done.stderr) == (0, f"probe {probe.pk}: queued, 0 of 22 calls\n")
    title, sentence = done.stdout.splitlines()
    assert title.startswith(f"Probe {probe.pk}, seed of local, profile pinned: seed honoured. http://")
    assert sentence.startswith("The seed is honoured exactly: all 10 calls with the same seed ")
    assert probe.created_by is not None
    again = evalboard("probe", "--show", str(probe.pk), "--json")
    body = json.loads(again.stdout)
    assert (again.returncode, again.stderr) == (0, "")
    assert (body["id"], body["finding"]["state"]) == (str(probe.pk), "honoured")


def test_ctrl_c_leaves_the_probe_going_and_says_how_to_come_back(evalboard: Call, endpoint: str) -> None:
    given = ("--parameters", '{"copies": 3, "load": 1}', "--set", "copies=8", "--set", 'prompts=["A colour?"]')
    rounds = ": queued, 0 of 11 calls\n"  # of 4, 1 and 3 copies, each with its load
    done = evalboard("probe", "local", "--kind", "batch", *given, meanwhile=[(rounds, ctrl_c)])
    probe = ProbeRecord.objects.get()
    assert done.returncode == 130
    last = done.stderr.splitlines()[-1]
    assert last == f"Probe {probe.pk} goes on. Come back with: evalboard probe --show {probe.pk}"
    assert (probe.status, probe.profile.slug, probe.parameters["prompts"]) == ("queued", "fast", ["A colour?"])
    probes.served(probes.moved_by_batching(2))
    done = evalboard("probe", "--show", str(probe.pk))
    title, sentence, advice = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, "")
    assert "profile fast: variant. http://" in title
    assert "4 of 8 copies" in sentence
    assert advice == probe_states.STATES["batch"]["variant"].advice


def test_what_the_server_refuses_is_one_sentence_and_64(evalboard: Call, endpoint: str) -> None:
    for arguments, words in (
        (("desert", "--kind", "seed"), "desert"),
        (("local", "--kind", "speed"), "kind: Must be one of"),
        (("local", "--kind", "seed", "--set", "copies=3"), "parameters.copies: There is no such parameter"),
        (("--show", "999"), "There is no probe 999"),
    ):
        done = evalboard("probe", *arguments)
        assert (done.returncode, done.stdout) == (64, "")
        assert words in done.stderr
        assert (done.stderr.startswith("evalboard: "), done.stderr.count("\n")) == (True, 1)
    assert not ProbeRecord.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Give the endpoint's slug and a kind"),
        (["local"], "Give the endpoint's slug and a kind"),
        (["local", "--kind", "seed", "--set", "copies"], "copies is not NAME=VALUE"),
        (["local", "--kind", "seed", "--parameters", "{copies}"], "It is not valid JSON"),
        (["local", "--kind", "seed", "--parameters", '{"load": NaN}'], "It is not valid JSON"),
        (["local", "--kind", "seed", "--parameters", "[1]"], "Must be an object"),
        (["local", "--kind", "seed", "--show", "3"], "without other arguments"),
        (["--show", "x"], "x is no id"),
    ],
)
def test_wrong_use_is_told_before_any_server_is_asked(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main.main(["probe", *arguments])
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (64, "")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "state", "code"),
    [
        ("seed", "honoured", 0),
        ("seed", "partly_honoured", 1),
        ("seed", "ignored", 1),
        ("seed", "greedy", 1),
        ("seed", "deterministic", 1),
        ("seed", "too_noisy", 2),
        ("seed", "incomplete", 4),
        ("batch", "invariant", 0),
        ("batch", "nearly", 0),
        ("batch", "variant", 1),
        ("routing", "one", 0),
        ("routing", "several", 1),
        ("routing", "rotated", 1),
        ("routing", "unknown", 2),
        ("canary", "stable", 0),
        ("canary", "too_few", 0),
        ("canary", "drift", 2),
        ("canary", "changed", 1),
        ("canary", "partly_changed", 1),
        ("canary", "from_a_newer_server", 1),
        ("capability", "checked", 0),
        ("capability", "ignores", 2),
    ],
)
def test_the_state_is_the_exit_code(kind: str, state: str, code: int) -> None:
    assert choose_exit_code(ended(kind, state)) == code


def test_a_probe_without_any_answer_is_4_and_says_why() -> None:
    failed = ended("seed", None, status="failed", error="engine_error: killed\nby its prompt")
    assert choose_exit_code(failed) == 4
    assert render_result(failed).splitlines() == [
        "Probe 7, seed of local, profile pinned: failed. https://board.example/probes/7/",
        "engine_error: killed by its prompt",
    ]


def test_a_capability_check_prints_its_table_the_hop_and_the_control() -> None:
    finding = judge_capability_probe(answer_calls(honours=EVERYTHING - {"seed"}))
    hop = ProbeHop(
        gateway="litellm",
        direct="vllm-a",
        gateway_probe="7",
        direct_probe="8",
        sentence="Honoured at vllm-a, ignored through litellm: seed: the gateway drops it.",
    )
    known = ended("capability", finding.state)
    stored = ProbeFinding(
        state=finding.state, sentence="17 of 18 parameters are honoured.", numbers=dict(finding.numbers)
    )
    answer = known.model_copy(update={"finding": stored, "hop": hop, "control": "vllm-a: probe 8, checked."})
    lines = render_result(answer).splitlines()
    assert "  seed: ignored. Two calls with the same seed differ as early as calls with other seeds." in lines
    assert lines[-3:] == [
        hop.sentence,
        "Control: vllm-a: probe 8, checked.",
        probe_states.STATES["capability"]["ignores"].advice,
    ]
    assert choose_exit_code(answer) == 2


@pytest.mark.nightly
def test_a_verification_says_its_word_with_the_numbers(evalboard: Call, endpoint: str) -> None:
    stack = build.process()
    verifying.end(verifying.ask(), stack)
    asked = ("probe", "asked", "--kind", "verify", "--set", "suite=texts", "--set", "reference=reference")
    waits = ": queued, 2 of 6 runs and scorings\n"  # what is known serves again
    done = evalboard(*asked, meanwhile=[(waits, lambda: verifying.end(ProbeRecord.objects.latest("pk"), stack))])
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "verify of asked, profile pinned: another model. " in lines[0]
    assert lines[1].startswith("Another model: 24 tokens of 12 answers are farther from the reference")
    assert "  twice numerics: 0.0004 nats²" in lines
    assert any(line.startswith("  above numerics: p = 0.00") for line in lines)
    assert lines[-1].startswith("Probe again first")


def test_the_price_of_a_probe_is_printed_and_nothing_starts(evalboard: Call) -> None:
    for slug in ("pinned", "fast"):
        build.profile(slug)
    probes.remote("hosted")
    shown = evalboard("probe", "hosted", "--kind", "border", "--estimate")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("It searches for prompts whose first word is split. It makes 640 calls")
    assert not ProbeRecord.objects.exists()
