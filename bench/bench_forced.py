"""How well forced re-scoring tells models apart, on real answers, and how near its KL is to the exact one: the measured
tables of docs/forced.md, written there anew.

The answers come from real engines (forced_traces.py) and stay in bench/results/forced/: the first call takes about
twenty minutes, later ones two. They answer prompts by which nothing of the rules was chosen; the exact KL, of which
nothing is chosen either, is of the others.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from bench import forced_traces, measured_table
from bench.forced_traces import BENCH, BITS, MAX_TOKENS, N_BANDS, REFERENCE, STACKS, STORED, select
from bench.row import Row
from evalboard.core.forced import ForcedPositions, measure_forced, verify_endpoint
from evalboard.core.forced.verification import REACH, WINSORISED

SEED = 2026
TOKENS = (100, 300, 1000, 3000)
N_DRAWS = 1000  # of an endpoint's answers, of each origin
N_ACCUSED = 200
N_KL, KL_RESPONSES, KL_PROMPTS = 100, 40, 80
HONEST, PLANTED = "bfloat16", "8 bits"

Numbers = NDArray[np.float64]


def measure() -> list[Row]:
    """Measure what is told of real answers and put the tables into the page."""
    model, python = _model(), Path(settings.VLLM_PYTHON)
    traces = {stack: forced_traces.load(stack, model=model, python=python) for stack in (REFERENCE, *STACKS)}
    rows = _measure_stacks(traces) + _measure_power(traces) + _measure_words(traces)
    return rows + _measure_kl(model, python)


def _measure_stacks(traces: dict[str, ForcedPositions]) -> list[Row]:
    """Say how far each stack's answers lie from the reference."""
    lines = [
        "| answers of | positions | reference would choose the token | gap: mean; median; p99 | deficit: mean; p99 |",
        "| --- | --- | --- | --- | --- |",
    ]
    rows = []
    for stack, positions in traces.items():
        figures = measure_forced(positions, random_seed=SEED)
        numbers = [
            each.value if each is not None else np.nan
            for each in (
                figures.match_rate,
                figures.gap_mean,
                figures.gap_median,
                figures.gap_p99,
                figures.deficit_mean,
                figures.deficit_p99,
            )
        ]
        match, *others = numbers
        gaps, deficits = (" / ".join(_nats(each) for each in part) for part in (others[:3], others[3:]))
        name = f"{stack}, the reference itself" if stack == REFERENCE else stack
        chosen = f"{100 * match:.2f} % ({figures.n_not_top} not)"
        lines.append(f"| {name} | {figures.n_positions:,} | {chosen} | {gaps} | {deficits} |")
        rows.append(Row(f"{stack}: tokens that the reference would choose", 100 * match, "%", f"{len(positions):,}"))
    measured_table.write("forced.md", lines, name="stacks")
    return rows


def _measure_power(traces: dict[str, ForcedPositions]) -> list[Row]:
    """Measure how often a changed model's statistic lies above an honest one's: the area under the ROC curve."""
    rng = np.random.default_rng(SEED)
    lines = [
        f"| told from honest {HONEST} | by | {' | '.join(f'{n:,} tokens' for n in TOKENS)} |",
        f"| --- | --- |{' --- |' * len(TOKENS)}",
    ]
    rows = []
    apart = range(N_BANDS, traces[HONEST].n_responses)
    bands = {name: select(positions, range(N_BANDS)) for name, positions in traces.items()}
    for stack in BITS:
        for word, name in (("its logprobs (gap)", "gaps"), ("its tokens alone (deficit)", "deficits")):
            known = (getattr(bands[each], name) for each in (REFERENCE, HONEST))
            limit = REACH * max(float(np.quantile(values, WINSORISED)) for values in known)
            honest, changed = (_response_means(traces[each], name, limit, apart) for each in (HONEST, stack))
            areas = [_area(_draws(honest, n, rng), _draws(changed, n, rng)) for n in TOKENS]
            lines.append(f"| {stack} | {word} | {' | '.join(f'{area:.4f}' for area in areas)} |")
            rows += [
                Row(f"AUC, {stack} against {HONEST}, {n} tokens, by {word} (seed {SEED})", area)
                for n, area in zip(TOKENS, areas, strict=True)
            ]
    measured_table.write("forced.md", lines, name="power")
    return rows


def _measure_words(traces: dict[str, ForcedPositions]) -> list[Row]:
    """Measure how often each word is said of endpoints of known origin, each by a division of the prompts of its own.

    No endpoint gives an answer twice: a test by dealing responses anew would take two for two.
    """
    rng = np.random.default_rng(SEED + 1)
    lines = [
        f"| the endpoint is | its answers | {' | '.join(f'{n:,} tokens' for n in TOKENS)} |",
        f"| --- | --- |{' --- |' * len(TOKENS)}",
    ]
    rows = []
    for stack, word in _WORDS.items():
        for answers, has_logprobs in (("with logprobs", True), ("tokens alone", False)):
            cells = []
            for n_tokens in TOKENS:
                states = [
                    _judge(traces, stack, n_tokens, rng, index, has_logprobs=has_logprobs) for index in range(N_ACCUSED)
                ]
                is_changed = word == "other_model"
                wrong = states.count("other_model")
                if is_changed:
                    wrong = N_ACCUSED - wrong - states.count("too_few_tokens")
                shares = [100 * n / N_ACCUSED for n in (states.count(word), wrong, states.count("too_few_tokens"))]
                cells.append(" / ".join(f"{share:g}" for share in shares))
                what = "called the same model" if is_changed else "accused"
                rows.append(Row(f"{stack}, {n_tokens} {answers}: {what}", shares[1], "%", f"of {N_ACCUSED} draws"))
            lines.append(f"| {stack} | {answers} | {' | '.join(cells)} |")
    measured_table.write("forced.md", lines, name="words")
    return rows


_BANDS = {"control": REFERENCE, "numerics": HONEST, "planted": PLANTED}
_WORDS = {
    REFERENCE: "same_stack",
    HONEST: "same_model_other_numerics",
    **dict.fromkeys(BITS, "other_model"),
}


def _measure_kl(model: Path, python: Path) -> list[Row]:
    """Count in how many draws the interval of a KL holds the exact one, from the whole distributions at the positions.

    A draw is some of the responses, at each position with another token out of the sampler's distribution.
    """
    lines = [
        "| sampler | exact KL, nats a token | k1, mean of the estimates | k3 | interval of k1 holds it | of k3 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    rows = []
    for stack in STACKS:
        drawn = _exact(stack, model, python)
        starts = np.concatenate([[0], np.cumsum([len(each["exact"]) for each in drawn], dtype=np.int64)])
        again = np.concatenate([each["again"] for each in drawn])
        exact = np.concatenate([each["exact"] for each in drawn])
        rng = np.random.default_rng(SEED + 2)
        held = {"kl_k1": 0, "kl_k3": 0}
        values: dict[str, list[float]] = {name: [] for name in held}
        for seed in range(N_KL):
            chosen = rng.permutation(len(drawn))[:KL_RESPONSES].tolist()
            # The exact numbers ride as deficits, so that they are selected alike.
            positions = select(ForcedPositions(starts, again[:, seed], exact), chosen)
            figures = measure_forced(positions, random_seed=seed)
            wanted = float(positions.deficits.mean())
            for name in held:
                estimate = getattr(figures, name)
                held[name] += estimate.low <= wanted <= estimate.high
                values[name].append(estimate.value)
        means = [f"{np.mean(values[name]):.3g}" for name in held]
        counts = " | ".join(f"{n} of {N_KL}" for n in held.values())
        lines.append(f"| {stack} | {exact.mean():.3g} | {means[0]} | {means[1]} | {counts} |")
        rows += [
            Row(f"{stack}: interval of {name} holds the exact KL (seed {SEED})", float(n), "%", f"of {N_KL} draws")
            for name, n in held.items()
        ]
    measured_table.write("forced.md", lines, name="kl")
    return rows


def _exact(stack: str, model: Path, python: Path) -> list[dict[str, Any]]:
    """Return answers at a temperature of 1 with the exact KL at each position, by torch."""
    path = STORED / f"exact_{stack.replace(' ', '_')}.json"
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            sampler, dtype = model, "bfloat16"
            if stack in BITS:
                sampler, dtype = Path(folder) / "rounded", "float32"
                command = [python, BENCH / "rounded_model.py", model, sampler, str(BITS[stack])]
                subprocess.run(command, check=True)
            command = [python, BENCH / "forced_exact.py", sampler, dtype, model, str(MAX_TOKENS)]
            texts = json.dumps(forced_traces.prompts()[:KL_PROMPTS])
            ended = subprocess.run(command, input=texts, stdout=subprocess.PIPE, text=True, check=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(ended.stdout)
    return list(json.loads(path.read_text()))


def _response_means(
    positions: ForcedPositions, name: str, limit: float, chosen: Sequence[int]
) -> list[tuple[float, int]]:
    """Return each response's statistic, as `verify_endpoint` has it, and how many tokens it has."""
    values = np.minimum(getattr(positions, name), limit) ** 2
    own = [values[slice(*positions.starts[index : index + 2].tolist())] for index in chosen]
    return [(float(each.mean()), len(each)) for each in own if len(each)]


def _draws(responses: Sequence[tuple[float, int]], n_tokens: int, rng: np.random.Generator) -> Numbers:
    """Return the statistic of N_DRAWS endpoints, each of so many responses as make n_tokens."""
    draw: Callable[[], float] = lambda: float(  # noqa: E731
        np.mean([responses[index][0] for index in _choose([n for _, n in responses], n_tokens, rng)])
    )
    return np.array([draw() for _ in range(N_DRAWS)])


def _choose(lengths: Sequence[int], n_tokens: int, rng: np.random.Generator) -> list[int]:
    """Return responses drawn with replacement until they have n_tokens together."""
    chosen: list[int] = []
    total = 0
    while total < n_tokens:
        index = int(rng.integers(len(lengths)))
        chosen.append(index)
        total += lengths[index]
    return chosen


def _judge(
    traces: dict[str, ForcedPositions],
    stack: str,
    n_tokens: int,
    rng: np.random.Generator,
    random_seed: int,
    *,
    has_logprobs: bool,
) -> str:
    """Return the word on an endpoint of this stack with so many tokens, to prompts apart from those of the bands."""
    order = rng.permutation(traces[stack].n_responses).tolist()
    bands, apart = order[:N_BANDS], order[N_BANDS:]
    totals = np.cumsum(np.diff(traces[stack].starts)[apart])
    drawn = select(traces[stack], apart[: int(np.searchsorted(totals, n_tokens)) + 1])
    log_ratios = drawn.log_ratios if has_logprobs else np.full(len(drawn), np.nan)
    known: dict[str, Any] = {name: select(traces[each], bands) for name, each in _BANDS.items()}
    known["numerics"] = [known["numerics"]]
    endpoint = ForcedPositions(drawn.starts, log_ratios, drawn.deficits)
    return verify_endpoint(endpoint, **known, random_seed=random_seed).state


def _area(honest: Numbers, changed: Numbers) -> float:
    """Return the chance that a changed endpoint's statistic is above an honest one's, half for equal ones."""
    above = (changed[:, None] > honest[None, :]).mean()
    equal = (changed[:, None] == honest[None, :]).mean()
    return float(above + equal / 2)


def _nats(value: float) -> str:
    return f"{value:.2g}"


def _model() -> Path:
    folder = Path(settings.VLLM_PYTHON).parent.parent / "evalboard-models" / "smollm2-135m-instruct"
    if not (folder / "config.json").exists():
        subprocess.run([settings.VLLM_PYTHON, settings.BASE_DIR / "worker" / "sample_model.py", folder], check=True)
    return folder
