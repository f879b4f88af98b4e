"""`evalboard worker prove`: what it measures, what it refuses, and that its archive can be read."""

import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalboard.cli.machine import PROOF_SETUPS
from evalboard.core.trace import Outcome
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from tests import self_tests
from worker import prove

ROOT = Path(__file__).resolve().parents[2]
HOST = Path(__file__).parent / "scripted_host.py"
SUITE = '{"id": "a", "prompt": "say apple"}\n{"id": "b", "prompt": "say bread"}\n'

Prove = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Prove:
    """Prove a scripted engine that recorded kernels were measured under; return exit code and archived proof."""
    (tmp_path / "prompts.jsonl").write_text(SUITE)
    (tmp_path / "plain.json").write_text(json.dumps(self_tests.result()["kernels"]["plain"]))
    python = tmp_path / "python"
    check = f"cat {tmp_path}/plain.json"
    python.write_text(
        f'#!/bin/sh\ncase "$1" in *torch_check.py) {check};; *) exec {sys.executable} {HOST} "$@";; esac\n'
    )
    python.chmod(0o755)

    def run(*setups: str) -> tuple[int, dict[str, Any]]:
        order = {
            "models": [str(tmp_path)],
            "sample_model": "",
            "suite": str(tmp_path / "prompts.jsonl"),
            "setups": setups,
            "dtype": "float32",
            "max_model_len": 512,
            "n_passes": 2,
            "n_prompts": 1,
            "python": str(python),
            "out": str(tmp_path / "proof.zip"),
            "as_json": False,
        }
        code = prove.run(json.dumps(order))
        with zipfile.ZipFile(tmp_path / "proof.zip") as archive:
            return code, json.loads(archive.read("proof.json"))

    return run


def test_a_still_engine_is_proven_and_what_this_node_lacks_is_refused(
    run_proof: Prove, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prove, "attest_pins", lambda wanted, reported: [])  # the scripted engine reports few of them
    code, proof = run_proof("pinned", "invariant", "pinned-fp8")
    pinned, invariant, fp8 = proof["setups"]
    assert pinned["repeats"] == pinned["restart"] == {"n": 2, "n_bits_moved": 0, "n_texts_moved": 0, "first": None}
    assert pinned["determinism"]["state"] == "certified"
    assert [invariant["state"], fp8["state"]] == ["refused", "refused"]
    assert "decodes on a CPU" in invariant["problem"]
    assert "FP8" in fp8["problem"]
    assert (code, pinned["is_broken"]) == (prove.PROVEN, False)
    with zipfile.ZipFile(tmp_path / "proof.zip") as archive:
        archive.extract("logs/1-pinned.jsonl", tmp_path)
    _, [log] = read_logs([LogFile("log.jsonl", tmp_path / "logs" / "1-pinned.jsonl")])
    assert [(each.case_id, each.repeat, each.text) for each in log.responses][:2] == [
        ("a", 1, "apple"),
        ("b", 1, "bread"),
    ]


def test_moved_bits_under_a_setup_that_holds_them_still_end_with_1(
    run_proof: Prove, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCRIPTED_DRIFT", "1")
    code, proof = run_proof("pinned")
    assert (code, proof["setups"][0]["has_same_self_check"]) == (prove.MOVED, False)


def test_an_engine_that_does_not_start_leaves_the_archive_with_its_last_words(
    run_proof: Prove, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SCRIPTED_BROKEN", str(tmp_path))
    code, proof = run_proof("pinned", "fast")
    assert code == prove.NOT_MEASURED
    assert [row["state"] for row in proof["setups"]] == ["failed", "failed"]
    assert "no engine starts on this node" in proof["setups"][0]["last_words"]


def test_answers_that_are_missing_prove_nothing(run_proof: Prove, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = prove.VllmEngine.decode

    def lose_the_second(engine: Any, requests: Any) -> Iterator[Outcome]:
        return (outcome for outcome in decode(engine, requests) if outcome.case_index != 1)

    monkeypatch.setattr(prove.VllmEngine, "decode", lose_the_second)
    monkeypatch.setattr(prove, "attest_pins", lambda wanted, reported: [])
    code, proof = run_proof("pinned")
    assert (code, proof["setups"][0]["state"]) == (prove.NOT_MEASURED, "failed")
    assert proof["setups"][0]["problem"].startswith("3 of 6 answers are missing.")


def test_every_setup_of_the_command_is_known_here() -> None:
    setups = [prove.ProofSetup.named(name) for name in PROOF_SETUPS]
    assert len(
        {json.dumps([each.profile, dict(each.engine), each.quantization, each.sizes]) for each in setups}
    ) == len(setups)
    assert {each.profile for each in setups if not each.is_still} == {"fast"}


def test_the_figures_of_the_h100_follow_from_its_archive() -> None:
    """docs/node.md: all answers have other logprobs, six another text, each from a near tie of at most 0.25 nats."""
    with zipfile.ZipFile(ROOT / "docs" / "proofs" / "h100-2026-11-27.zip") as archive:
        sides = [
            [json.loads(line) for line in archive.read(f"logs/1-{name}.jsonl").splitlines()]
            for name in ("fast", "invariant")
        ]
    pairs = [
        (ours["response"]["choices"][0], theirs["response"]["choices"][0])
        for ours, theirs in zip(*sides, strict=True)
        if ours["repeat"] == 1
    ]
    assert len(pairs) == 30
    assert not [one for one, other in pairs if one["logprobs"] == other["logprobs"]]
    leads = [find_leads(one, other) for one, other in pairs if one["token_ids"] != other["token_ids"]]
    assert len(leads) == 6
    assert max(map(max, leads)) == 0.25
    assert [min(each) for each in leads].count(0) == 5


def find_leads(one: dict[str, Any], other: dict[str, Any]) -> list[float]:
    """Return how far the best token leads on each side, in nats, where the answers part."""
    tokens = enumerate(zip(one["token_ids"], other["token_ids"], strict=False))
    position = next(place for place, (ours, theirs) in tokens if ours != theirs)
    tops = [side["logprobs"]["content"][position]["top_logprobs"] for side in (one, other)]
    return [round(best["logprob"] - second["logprob"], 4) for best, second in tops]
