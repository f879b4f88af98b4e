"""`evalboard on-policy`: two files without any server, or a run that is scored; the worker's part is played."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

from evalboard.cli.forced.on_policy import CODES
from evalboard.core.forced.on_policy import OnPolicyState
from runs.models import ForcedScoringRecord, RunRecord
from tests import build, forced, rollouts

Call = Callable[..., "CompletedProcess[str]"]
NOWHERE = {"EVALBOARD_URL": "http://127.0.0.1:9", "EVALBOARD_TOKEN": None}  # a call to any server fails


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    def write(name: str, rows: list[dict[str, Any]]) -> str:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(tmp_path / name)

    return write


Write = Callable[..., str]


def sample(n: int = 20) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    return [{"token_ids": list(range(100)), "logprobs": rng.uniform(-2, 0, 100).tolist()} for _ in range(n)]


def shift(rows: list[dict[str, Any]], by: float) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    return [row | {"logprobs": (np.array(row["logprobs"]) + rng.normal(0, by, 100)).tolist()} for row in rows]


def test_a_trainer_with_the_sampler_s_bits_passes(evalboard: Call, written: Write) -> None:
    sampled, trained = written("sampled.jsonl", sample()), written("trained.jsonl", sample())
    done = evalboard("on-policy", sampled, "--trainer", trained, **NOWHERE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Bit-identical: training is on-policy. All 2,000 logprobs are equal to the bit.\n")


def test_the_gate_is_what_was_given(evalboard: Call, written: Write) -> None:
    sampled, trained = written("sampled.jsonl", sample()), written("trained.jsonl", shift(sample(), 0.1))
    failed = evalboard("on-policy", sampled, "--trainer", trained, **NOWHERE)
    assert (failed.returncode, failed.stdout.startswith("Off-policy: ")) == (1, True)
    assert "response " in failed.stdout.splitlines()[-1]
    passed = evalboard("on-policy", sampled, "--trainer", trained, "--max-kl", "0.01", **NOWHERE)
    assert (passed.returncode, passed.stdout.startswith("On-policy: the KL is below 0.01 nats per token")) == (0, True)


def test_few_rollouts_do_not_tell(evalboard: Call, written: Write) -> None:
    sampled, trained = written("sampled.jsonl", sample(3)), written("trained.jsonl", shift(sample(3), 0.1))
    assert evalboard("on-policy", sampled, "--trainer", trained, **NOWHERE).returncode == 2


def test_one_file_may_have_both_sides_and_the_check_comes_as_json(evalboard: Call, written: Write) -> None:
    rows = [
        {
            "token_ids": [row["token_ids"]],
            "token_loss_mask": [[1] * 100],
            "generation_logprobs": [row["logprobs"]],
            "prev_logprobs": [other["logprobs"]],
            "idx": index,
        }
        for index, (row, other) in enumerate(zip(sample(), shift(sample(), 0.05), strict=True))
    ]
    done = evalboard("on-policy", written("train_data_step1.jsonl", rows), "--clip", "0.1", "--json", **NOWHERE)
    check = json.loads(done.stdout)
    assert done.returncode == CODES[check["state"]] == 1
    assert check["figures"]["kl_k3"]["value"] == pytest.approx(0.05**2 / 2, rel=0.1)
    assert check["figures"]["clip_range"] == 0.1
    assert len(check["worst"]) == 10


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        (sample(1), [], "has no logprobs of a trainer"),
        ([{"text": "a"}], [], "ROLLOUTS: line 1: it has no tokens with logprobs"),
        ([row | {"trainer_logprobs": [0] * 100} for row in sample(1)], [], "Every logprob of the trainer is 0"),
        (sample(1), ["--trainer", "gone.jsonl"], "gone.jsonl cannot be read"),
    ],
)
def test_wrong_use_is_one_sentence(
    evalboard: Call, written: Write, rows: list[dict[str, Any]], options: list[str], words: str
) -> None:
    done = evalboard("on-policy", written("sampled.jsonl", rows), *options, **NOWHERE)
    assert (done.returncode, done.stdout) == (64, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def run(transactional_db: None) -> RunRecord:
    made = build.finished_run()
    build.endpoint("trainer")
    return made


def finish(shift: float) -> Callable[[], object]:
    return lambda: forced.scored(ForcedScoringRecord.objects.latest("pk"), shift=shift, other_at=None)


QUEUED = ": queued, 0 of 4 answers\n"


def test_a_run_is_scored_in_the_trainer_s_place(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("on-policy", str(run.pk), "--on", "trainer", meanwhile=[(QUEUED, finish(0.0))])
    scoring = ForcedScoringRecord.objects.get()
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0]) == (
        0,
        "Bit-identical: training is on-policy. All 8 logprobs are equal to the bit.",
    )
    assert lines[1] == "  compared: 8 tokens of 4 responses"
    assert lines[-1].endswith(f"/forced/{scoring.pk}/, forced scoring {scoring.pk}")


@pytest.mark.nightly
def test_a_run_that_is_far_off_has_its_gate(evalboard: Call, run: RunRecord) -> None:
    done = evalboard(
        "on-policy", str(run.pk), "--on", "trainer", "--profile", "pinned", "--json", meanwhile=[(QUEUED, finish(0.25))]
    )
    body = json.loads(done.stdout)
    assert (done.returncode, body["state"], body["max_kl"]) == (2, "no_kl", 0.001)  # nobody drew these answers
    assert body["forced"]["figures"]["kl_k1"]["value"] == 0.25


def test_a_run_that_could_not_be_scored_is_4(evalboard: Call, run: RunRecord) -> None:
    def die() -> None:
        forced.scored(ForcedScoringRecord.objects.get(), dies_on=(0, 1, 2))

    done = evalboard("on-policy", str(run.pk), "--on", "trainer", meanwhile=[(QUEUED, die)])
    assert (done.returncode, done.stdout.splitlines()[0].endswith("failed. It died.")) == (4, True)


@pytest.mark.parametrize(
    "options",
    [
        ("1", "--on", "x", "--trainer", "y.jsonl"),
        ("a.jsonl", "--on", "x"),
        ("a.jsonl", "--profile", "x"),
        ("1", "--on", "x", "--keep"),
    ],
)
def test_what_makes_no_sense_is_64(evalboard: Call, options: tuple[str, ...]) -> None:
    assert evalboard("on-policy", *options, **NOWHERE).returncode == 64


def test_every_state_has_an_exit_code() -> None:
    assert set(CODES) == set(OnPolicyState.__args__)


@pytest.mark.nightly
def test_rollouts_are_stored_with_the_address_of_their_tokens(evalboard: Call, written: Write, db: None) -> None:
    lines = rollouts.rows(planted=(3, 17))
    trainer = written("trainer.jsonl", [{**row, "logprobs": row["trainer_logprobs"]} for row in lines])
    sampled = written("step-12.jsonl", [{**row, "trainer_logprobs": None} for row in lines])
    done = evalboard("on-policy", sampled, "--trainer", trainer, "--keep")
    scoring = ForcedScoringRecord.objects.get()
    assert done.stdout.splitlines()[-1].endswith(f"/forced/{scoring.pk}/, forced scoring {scoring.pk}")
    assert (scoring.is_reported, scoring.run.source.files[0]["name"]) == (True, "step-12.jsonl")
    again = json.loads(evalboard("on-policy", sampled, "--trainer", trainer, "--keep", "--json").stdout)
    assert (again["forced"]["id"], ForcedScoringRecord.objects.count()) == (str(scoring.pk), 1)
    assert again["forced"]["figures"]["worst"]["log_ratio"] == again["figures"]["worst"]["log_ratio"] == -2.5
    shown = evalboard("force", "--show", str(scoring.pk))
    assert shown.stdout.startswith(f"Forced scoring {scoring.pk} of run {scoring.run_id} by its trainer: finished.")


@pytest.mark.nightly
def test_draws_at_another_temperature_pass_no_gate(evalboard: Call, transactional_db: None) -> None:
    build.endpoint("trainer")
    run = build.finished_run(under="sampled")
    done = evalboard("on-policy", str(run.pk), "--on", "trainer", meanwhile=[(QUEUED, finish(0.25))])
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0]) == (2, "These tokens give no KL, so nothing is compared with the limit.")
    assert not [line for line in lines if line.startswith("  KL")]
    assert any(
        line.startswith("  why: The run’s temperature changed the distribution that was sampled") for line in lines
    )
    same = evalboard("on-policy", str(run.pk), "--on", "trainer", meanwhile=[(QUEUED, finish(0.0))])
    assert (same.returncode, same.stdout.startswith("Bit-identical")) == (0, True)
