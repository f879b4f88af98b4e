"""A suite of tool calls, a baseline, a candidate that broke some of it, and a run that two backends served.

Answers are JSON, their traces have margins: near ties that flip between repeats, larger shifts that break cases,
answers that were cut. Everything goes through the services, as a worker would.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evalboard.core.digest import short_digest
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.trace import Decoded, Timings, make_trace, pack_vocabulary
from runs.catalogue import create_endpoint, create_profile
from runs.models import EngineProcess, RunRecord, WorkerRecord
from runs.run import create_run
from runs.suites import push_suite
from runs.work import open_engine_process, record_self_check, register_worker, store_vocabulary
from tests import outcomes
from tests.frontend import stage

GPU = {"kind": "cuda", "gpus": [{"name": "NVIDIA H100", "capability": 9.0}]}
SLUG, MODEL = "toolcalls", "acme-7b-ft"
PARTS = re.compile(r'[A-Za-z_]+|\d+|": "|", "|": |\{"|"\}|\}\}|[^A-Za-z_\d]')
# By the case's place in PROMPTS: prompt, the right answer, and a wrong one with its kind.
PROMPTS: Sequence[tuple[str, str, str, str]] = (
    (
        "Book a table for six on Friday at 19:30, then text Dana the address.",
        '{"calls": [{"name": "book_table", "party": 6, "time": "19:30"}, {"name": "send_text", "to": "Dana"}]}',
        '{"calls": [{"name": "book_table", "party": 6, "time": "19:30"}]}',
        "nested",
    ),
    (
        "How many euros are 120 Swiss francs at today’s rate?",
        '{"name": "convert", "args": {"from": "CHF", "to": "EUR", "amount": 120}}',
        '{"name": "convert", "args": {"from": "EUR", "to": "CHF", "amount": 120}}',
        "currency",
    ),
    (
        "Move my 3 pm with Priya to the same time on Thursday.",
        '{"name": "move_event", "args": {"with": "Priya", "to": "Thursday"}}',
        "Sure! I can move your 3 pm with Priya to Thursday at 3 pm. Shall I tell her?",
        "dates",
    ),
    (
        "Set the greenhouse to 24 degrees and keep humidity under 60 percent.",
        '{"name": "set_climate", "args": {"unit": "celsius", "temp": 24, "humidity_max": 60}}',
        '{"name": "set_climate", "args": {"unit": "fahrenheit", "temp": 24, "humidity_max": 60}}',
        "units",
    ),
    (
        "File my trip: taxi 34.20, lunch 18.75, hotel 212.00, parking 9.50.",
        '{"name": "expenses", "items": {"taxi": 34.20, "lunch": 18.75, "hotel": 212.00, "parking": 9.50}}',
        '{"name": "expenses", "items": {"taxi": 34.20, "lunch": 18.75, "hotel": 212.00, "parking": 9.50, "note',
        "long args",
    ),
    (
        "Will I need an umbrella in Paris tomorrow?",
        '{"name": "get_weather", "args": {"city": "Paris", "country": "FR", "day": "tomorrow"}}',
        "{\"name\": \"get_weather\", \"args\": {\"city\": 'Paris', 'country': 'FR', 'day': 'tomorrow'}}",
        "nested",
    ),
)
N_TIES = 9  # cases from the last on that flip between repeats of one and the same stack


def _tokens() -> list[str]:
    texts = [text for _, right, wrong, _ in PROMPTS for text in (right, wrong)]
    numbers = [str(number) for number in range(100)]
    return ["", *dict.fromkeys(itertools.chain.from_iterable([*map(PARTS.findall, texts), numbers]))]


VOCABULARY = _tokens()
IDS = {token: number for number, token in enumerate(VOCABULARY)}
END = 0


def prepare(*, model_root: Any, n_cases: int = 60) -> None:
    """Store the suite, an endpoint and a profile that batches."""
    cases = [
        {
            "id": f"tool-{n:03}",
            "prompt": f"{_prompt(n)[0]} ({n})",
            "target": _target(n),
            "tags": [_prompt(n)[3]],
        }
        for n in range(n_cases)
    ]
    document = {"slug": SLUG, "title": "Tool calls", "max_tokens": 96, "scorer": {"kind": "exact"}, "cases": cases}
    push_suite(document=document)
    create_endpoint(slug="vllm-a", model_path=str(model_root / MODEL), dtype="bfloat16", line=MODEL)
    create_profile(slug="fast", title="Fast", settings=DEFAULT_PROFILES["fast"]["settings"])


def _prompt(n: int) -> tuple[str, str, str, str]:
    return PROMPTS[n % len(PROMPTS)]


def _target(n: int) -> str:
    return _prompt(n)[1]


def process(
    worker: WorkerRecord, *, model: str, weights: str, dtype: str = "bfloat16", seats: int = 32
) -> EngineProcess:
    manifest = outcomes.manifest(dtype=dtype, max_num_seqs=seats)
    manifest["hardware"] = GPU
    files = {"model.safetensors": {"size": 8, "sha256": weights * 64}}
    opened = open_engine_process(
        worker=worker,
        manifest=manifest | {"model": manifest["model"] | {"files": files}},
        wanted_pins={},
        batch_class="mixed",
        line=MODEL,
        model_name=model,
        start_seconds=31.0,
    )
    words = pack_vocabulary([word.encode() for word in VOCABULARY], end_ids=[END])
    store_vocabulary(process=opened, digest="d" * 64, n_tokens=len(VOCABULARY), data=words)
    record_self_check(process=opened, digest="same")
    return opened


def answer(n: int, *, wrong: bool, seed: int, margin: float = 4.0, cut: bool = False) -> Decoded:
    """Return the right or the wrong answer of a case; the token where both part has this margin.

    seed: moves every logprob a little, as another batch or another model does.
    """
    _, right, other, _ = _prompt(n)
    text, against = (other, right) if wrong else (right, other)
    tokens, others = PARTS.findall(text), PARTS.findall(against)
    parts_at = next((at for at, pair in enumerate(zip(tokens, others, strict=False)) if pair[0] != pair[1]), None)
    parts_at = min(len(tokens), len(others)) if parts_at is None else parts_at
    ids = [IDS[token] for token in tokens] + ([] if cut else [END])
    chance = np.random.default_rng((seed, n))
    base = np.random.default_rng(n).uniform(1.0, 7.0, len(ids))
    rows, logprobs = [], []
    for at, token in enumerate(ids):
        gap = margin if at == parts_at else float(base[at] + chance.normal(0, 0.004))
        rival = IDS[others[at]] if at == parts_at and at < len(others) else IDS["note"]
        rival = END if at == parts_at and at >= len(others) else rival
        first = -float(np.log1p(np.exp(-gap)))
        logprobs.append(first)
        rows.append([(token, first), (rival, first - gap), (IDS["to"], first - gap - 4.0)])
    return Decoded(
        case_index=n,
        text=text,
        finish_reason="length" if cut else "stop",
        trace=make_trace(ids, logprobs, rows, [1, 2, 3]),
        n_prompt_tokens=3,
        prompt_digest=short_digest(f"prompt {n}".encode()),
        seed_sent=1234,
        request_id=f"request-{seed}-{n}",
        n_cached_tokens=0,
        n_preemptions=0,
        batch_min=4,
        batch_max=28,
        timings=Timings(0.01, 0.05, 1.5),
    )


def baseline_answers(repeat: int, n: int, *, n_cases: int = 60) -> Decoded:
    """Mostly right; every seventh case is wrong, the last N_TIES flip between repeats."""
    if n >= n_cases - N_TIES:
        return answer(n, wrong=(repeat + n) % 4 == 0, seed=repeat, margin=0.003)
    return answer(n, wrong=n % 7 == 6, seed=repeat, cut=n % 7 == 6 and n % 6 == 4)


def candidate_answers(repeat: int, n: int, *, n_cases: int = 60) -> Decoded:
    """As the baseline, but that one of nine cases broke, one of twenty was fixed and the ties fell otherwise."""
    if n >= n_cases - N_TIES:
        return answer(n, wrong=(repeat + n) % 3 == 0, seed=100 + repeat, margin=0.002)
    if n % 9 in (1, 2):
        is_wrong = n % 9 == 1 or repeat != n % 5 + 1
        return answer(n, wrong=is_wrong, seed=100 + repeat, margin=1.2, cut=n % 6 == 4)
    if n % 7 == 6 and n % 3 == 0:
        return answer(n, wrong=False, seed=100 + repeat, margin=0.8)
    return answer(n, wrong=n % 7 == 6, seed=100 + repeat, cut=n % 7 == 6 and n % 6 == 4)


def run(by: EngineProcess, answers: Callable[[int, int], Decoded], *, repeats: int = 5) -> RunRecord:
    """Return a finished run of the suite that a process served."""
    started = create_run(suite=SLUG, endpoint="vllm-a", profile="fast", repeats=repeats)
    stage.serve(by.worker, by, answer=answers)
    started.refresh_from_db()
    return started


def pair(*, model_root: Any, n_cases: int = 60, repeats: int = 5) -> tuple[RunRecord, RunRecord]:
    """Return a baseline and a candidate of another model on one stack."""
    prepare(model_root=model_root, n_cases=n_cases)
    worker = register_worker(
        name="gpu-3", host="node-3", pid=1, pool="default", hardware=GPU, versions={"vllm": "0.32.0"}
    )
    ours = process(worker, model=f"{MODEL}-0330", weights="a")
    baseline = run(ours, lambda repeat, n: baseline_answers(repeat, n, n_cases=n_cases), repeats=repeats)
    theirs = process(worker, model=f"{MODEL}-0419", weights="b")
    candidate = run(theirs, lambda repeat, n: candidate_answers(repeat, n, n_cases=n_cases), repeats=repeats)
    return baseline, candidate


def mixed(n_cases: int = 60, *, repeats: int = 5) -> RunRecord:
    """Return a run of which a second backend answered one shard in seven, and worse."""
    worker = WorkerRecord.objects.get(name="gpu-3")
    usual = process(worker, model=f"{MODEL}-0419", weights="b")
    other = process(worker, model=f"{MODEL}-0419", weights="b", dtype="float16")
    started = create_run(suite=SLUG, endpoint="vllm-a", profile="fast", repeats=repeats)
    for turn in itertools.count():
        by = other if turn % 7 == 3 else usual
        lease = stage.claim(worker, by)
        if lease is None:
            break
        stage.record(lease, by, answer=lambda repeat, n, by=by: _mixed_answer(repeat, n, n_cases, is_odd=by is other))
        stage.finish_shard(lease=lease)
    started.refresh_from_db()
    return started


def _mixed_answer(repeat: int, n: int, n_cases: int, *, is_odd: bool) -> Decoded:
    if is_odd and n % 4 == 0:
        return answer(n, wrong=True, seed=200 + repeat, margin=0.4)
    return baseline_answers(repeat, n, n_cases=n_cases)
