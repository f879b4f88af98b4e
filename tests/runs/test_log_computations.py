"""Two computations behind one model name and one reported fingerprint: the numbers in their logs tell them apart."""

import json
import random
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evalboard.importers.files import LogFile
from evalboard.wording.computation import write_computation
from runs.compare import compare
from runs.imports import import_logs
from runs.models import RunRecord
from runs.run import run_report
from tests.importers.openai_logs import body, choice, entry
from tests.nightly import nightly

pytestmark = pytest.mark.django_db

N_CASES, N_TOKENS = 60, 20
NOISE = 0.005  # nats by which a margin of one response is off by itself

Call = tuple[int, int]  # case, repeat


def log_of(
    folder: Path,
    name: str,
    *,
    seed: int,
    shift: float = 0.0,
    rerouted: Collection[Call] = (),
    repeats: int = 3,
    noise_nats: float = NOISE,
    has_logprobs: bool = True,
) -> RunRecord:
    """A server's log, imported. shift: nats by which altered weights move each logit, always alike. rerouted: the calls
    that another build answered, whose logits are half a nat off. noise_nats: 0 for a server whose repeats never differ.
    """
    weights, altered = np.random.default_rng(1), np.random.default_rng(2)
    noise = np.random.default_rng(seed)
    lines: list[dict[str, Any]] = []
    for case in range(N_CASES):
        margins = weights.uniform(2, 6, N_TOKENS)
        direction = altered.normal(size=N_TOKENS)
        for repeat in range(1, repeats + 1):
            off = 0.5 if (case, repeat) in rerouted else shift
            lines.append(
                _line(
                    case, f"{seed}-{len(lines)}", margins + off * direction + noise_nats * noise.normal(size=N_TOKENS)
                )
            )
    if not has_logprobs:
        for line in lines:
            del line["response"]["choices"][0]["logprobs"]
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, [run], _ = import_logs(files=[LogFile(name, path)], format="auto", suite=None, user=None)
    return run


def _line(case: int, call: str, margins: NDArray[np.float64]) -> dict[str, Any]:
    tokens = [_token(f" w{place}", f" v{place}", margin) for place, margin in enumerate(margins.tolist())]
    text = "".join(token["token"] for token in tokens)
    asked = {"model": "acme", "messages": [{"role": "user", "content": f"Number {case}?"}], "temperature": 0}
    return {"case_id": f"case-{case}", "request": asked, "response": body(choice(text, *tokens), id=call)}


def _token(first: str, second: str, margin: float) -> dict[str, Any]:
    beaten = float(np.log1p(np.exp(-margin)))
    return entry(first, -beaten, (first, -beaten), (second, -beaten - margin))


@pytest.mark.nightly
@pytest.mark.parametrize(("shift", "answer"), [(0.02, "two"), *nightly([(0.0, "one")])])
def test_weights_that_were_altered_under_one_name_and_fingerprint_are_told_apart(
    tmp_path: Path, shift: float, answer: str
) -> None:
    before, after = log_of(tmp_path, "before.jsonl", seed=3), log_of(tmp_path, "after.jsonl", seed=4, shift=shift)
    facts = compare(baseline=before.pk, candidate=after.pk).summary["computation"]
    assert (facts["is_one_bucket"], facts["answer"], facts["n_cases"]) == (True, answer, N_CASES)
    if shift:
        assert facts["shift"] == pytest.approx(shift, rel=0.1)
        assert write_computation(facts).endswith("the same fingerprint, but different weights or kernels.")


@pytest.mark.nightly
def test_weights_that_were_altered_are_told_apart_where_repeats_of_either_log_never_differ(tmp_path: Path) -> None:
    before, again, after = (
        log_of(tmp_path, f"{name}.jsonl", seed=seed, shift=shift, noise_nats=0.0)
        for name, seed, shift in (("before", 3, 0.0), ("again", 5, 0.0), ("after", 4, 0.02))
    )
    facts = compare(baseline=before.pk, candidate=after.pk).summary["computation"]
    assert (facts["is_one_bucket"], facts["answer"], facts["n_cases"]) == (True, "apart", N_CASES)
    assert facts["shift"] == pytest.approx(0.02, rel=0.1)
    assert write_computation(facts).startswith("Logprobs differ by 0.02 nats in 60 of 60 cases")
    same = compare(baseline=before.pk, candidate=again.pk).summary["computation"]
    assert (same["answer"], same["n_cases"], same["n_apart"]) == ("one", N_CASES, 0)


@pytest.mark.nightly
def test_calls_that_were_rerouted_without_a_word_are_listed(tmp_path: Path) -> None:
    calls = [(case, repeat) for case in range(N_CASES) for repeat in range(1, 6)]
    rerouted = set(random.Random(6).sample(calls, k=len(calls) * 6 // 100))
    run = log_of(tmp_path, "mixed.jsonl", seed=5, rerouted=rerouted, repeats=5)
    report = run_report(run.pk)
    [text] = [warning.text for warning in report.warnings if warning.code == "two_computations"]
    assert text.startswith(f"{len(rerouted)} outlier responses (6 %) in ")
    [bucket] = report.buckets
    assert bucket.strays is not None
    listed = {(response.case, response.repeat) for response in bucket.strays.responses}
    assert listed == {(f"case-{case}", repeat) for case, repeat in rerouted}


@pytest.mark.nightly
def test_equal_texts_without_logprobs_are_no_sign_of_equal_bits(tmp_path: Path) -> None:
    before, after = (log_of(tmp_path, f"{seed}.jsonl", seed=seed, has_logprobs=False) for seed in (3, 4))
    facts = compare(baseline=before.pk, candidate=after.pk).summary["computation"]
    assert (facts["is_one_bucket"], facts["answer"]) == (True, "unknown")
    assert "No case can show whether logprobs are equal" in write_computation(facts)
