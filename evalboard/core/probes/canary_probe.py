"""Judge whether an endpoint changed: first-token logprobs of fixed prompts, new runs against old ones.

The newest runs, the window, are compared with those before, the baseline (docs/probes.md). What chance deals is whole
runs, because requests of one run share its load. Logprobs are in nats.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.probes.answers import (
    Answers,
    make_incomplete_finding,
    read_answers,
)
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.core.stats import N_DEALS, ROUNDING_ERROR, deal_labels, permutation_p_value

CANARY_WINDOW = 4  # runs, a day's
CANARY_BASELINE = 28  # runs, a week's
CANARY_MIN_BASELINE = 8
# After these a new baseline begins, with the run that found it.
CANARY_CHANGES = frozenset({"changed", "partly_changed"})
SIGNIFICANT = 0.002
MIN_EFFECT = 1.0  # in standard deviations between runs; new batch shapes move less
OUTSIDE = 3.0  # standard deviations beyond all that the baseline gave
WORST_DAYS = 2  # an outlier count is no news up to so many times the baseline's worst window, and SPARE more
SPARE = 5

Array = NDArray[np.float64]
Token = int | str


@dataclass(frozen=True, slots=True)
class _CanaryRuns:
    """The runs that count, oldest first.

    values: float64[runs, values], the logprob of a token after a prompt; NaN without an answer. prompts: their indexes.
    prompt_at: the first column of each prompt.
    """

    values: Array
    prompts: tuple[int, ...]
    prompt_at: NDArray[np.int64]

    @property
    def n_baseline(self) -> int:
        return len(self.values) - CANARY_WINDOW

    @property
    def baseline(self) -> Array:
        return self.values[: self.n_baseline]

    @property
    def window(self) -> Array:
        return self.values[self.n_baseline :]

    def prompts_with(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return [..., prompts]: whether any of a prompt's values is flagged."""
        flags_by_prompt: NDArray[np.bool_] = np.logical_or.reduceat(flags, self.prompt_at, axis=-1)
        return flags_by_prompt


def judge_canary_probe(
    now: Iterable[ProbeExchange], earlier: Sequence[Sequence[ProbeExchange]], *, random_seed: int = 0
) -> ProbeResult:
    """Judge this run by those before: stable, changed, partly_changed, drift, too_few or incomplete.

    earlier: the runs since the last change, oldest first, with the same prompts under the same indexes.
    """
    newest = read_answers(now)
    given = [_logprobs(read_answers(calls)) for calls in earlier]
    usable = [run for run in given if run]
    last = _logprobs(newest)
    if not last:
        return make_incomplete_finding(newest)
    runs = _runs([*usable, last][-(CANARY_BASELINE + CANARY_WINDOW) :])
    numbers = {
        **newest.counts,
        "n_prompts": len(runs.prompts),
        "n_values": runs.values.shape[1],
        "n_runs": len(runs.values),
        "n_runs_left_out": len(given) - len(usable),
    }
    if runs.n_baseline < CANARY_MIN_BASELINE:
        return _too_few(runs, numbers)
    numbers |= _measured(runs, random_seed)
    return ProbeResult(_state(numbers), numbers)


def _logprobs(answers: Answers) -> dict[int, dict[Token, float]]:
    """Return token → logprob by prompt; nothing where too few calls have any."""
    by_prompt = {}
    for each in answers.answered:
        finite = {token: logprob for token, logprob in each.call.top if math.isfinite(logprob)}
        if finite:
            by_prompt[each.call.prompt] = finite
    return by_prompt if 2 * len(by_prompt) >= answers.n_calls else {}


def _runs(runs: Sequence[dict[int, dict[Token, float]]]) -> _CanaryRuns:
    """Build the table over all tokens that any run lists for a prompt.

    If a run does not list a token, its smallest logprob for that prompt is used.
    """
    prompts = tuple(sorted({prompt for run in runs for prompt in run}))
    columns: list[list[float]] = []
    prompt_at: list[int] = []
    for prompt in prompts:
        prompt_at.append(len(columns))
        for token in sorted({token for run in runs for token in run.get(prompt, ())}, key=_order):
            columns.append([_logprob(run.get(prompt), token) for run in runs])
    return _CanaryRuns(np.array(columns).T.copy(), prompts, np.array(prompt_at, dtype=np.int64))


def _order(token: Token) -> tuple[int, str]:
    """Ids come first, by number; texts are those of a server that gives no ids."""
    return (token, "") if isinstance(token, int) else (sys.maxsize, token)


def _logprob(listed: dict[Token, float] | None, token: Token) -> float:
    return math.nan if listed is None else listed.get(token, min(listed.values()))


def _measured(runs: _CanaryRuns, random_seed: int) -> dict[str, Any]:
    variance = _variance(runs.baseline)
    is_still = _spans(runs.baseline) == 0
    moved = _moved(runs, _observed(runs))[0]
    n_outside = _outside(runs, runs.window, runs.baseline).sum(axis=1)
    worst = _worst_window(runs)
    n_requests = int(runs.prompts_with(~np.isnan(runs.window)).sum())
    p_value, n_splits = (None, None) if is_still else _p_value(runs, random_seed)
    return {
        "n_baseline": runs.n_baseline,
        "n_window": CANARY_WINDOW,
        "statistic": float(np.nanmean(moved)),
        "p_value": p_value,
        "n_splits": n_splits,
        "noise": math.sqrt(variance),
        # Without any noise between runs there is no ratio to it; then each difference counts.
        "effect_ratio": None if is_still else _effect_ratio(moved, variance, runs.n_baseline),
        "n_outliers": int(n_outside.sum()),
        "outliers_by_run": n_outside.tolist(),
        "outlier_threshold": WORST_DAYS * worst + SPARE,
        "outlier_share": int(n_outside.sum()) / n_requests,
        "n_requests": n_requests,
        "n_prompts_outside": int(_outside(runs, runs.window, runs.baseline).any(axis=0).sum()),
        "prompts": _by_prompt(runs, moved),
    }


def _state(numbers: dict[str, Any]) -> str:
    if numbers["p_value"] is None:
        return "changed" if numbers["n_outliers"] else "stable"
    # With few runs even the most extreme of all splits has no smaller p than this.
    is_moved = numbers["p_value"] <= max(SIGNIFICANT, 1 / numbers["n_splits"])
    if is_moved and numbers["effect_ratio"] >= MIN_EFFECT:
        return "changed"
    if numbers["n_outliers"] > numbers["outlier_threshold"]:
        return "partly_changed"
    return "drift" if is_moved else "stable"


def _observed(runs: _CanaryRuns) -> Array:
    labels = np.zeros((1, len(runs.values)))
    labels[:, runs.n_baseline :] = 1
    return labels


def _moved(runs: _CanaryRuns, labels: Array) -> Array:
    """Return |mean of ones − mean of zeros| by value, [splits, values]; NaN if either has no answer."""
    is_known = ~np.isnan(runs.values)
    known, counts = np.where(is_known, runs.values, 0.0), is_known.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [(side @ known) / (side @ counts) for side in (labels, 1 - labels)]
    distances: Array = np.abs(means[0] - means[1])
    return distances


def _p_value(runs: _CanaryRuns, random_seed: int) -> tuple[float, int]:
    """Return the permutation p-value of the mean change, and the number of splits: all if they are few."""
    n = len(runs.values)
    observed = float(np.nanmean(_moved(runs, _observed(runs))))
    n_splits = math.comb(n, CANARY_WINDOW)
    if n_splits > N_DEALS:
        labels = deal_labels(np.random.default_rng(random_seed), n, CANARY_WINDOW)
        return permutation_p_value(observed, np.nanmean(_moved(runs, labels), axis=1)), N_DEALS
    labels = np.zeros((n_splits, n))
    for row, chosen in enumerate(combinations(range(n), CANARY_WINDOW)):
        labels[row, list(chosen)] = 1
    drawn = np.nanmean(_moved(runs, labels), axis=1)
    return float(np.count_nonzero(drawn >= observed - ROUNDING_ERROR) / n_splits), n_splits


def _effect_ratio(moved: Array, variance: float, n_baseline: int) -> float:
    by_chance = variance * (1 / CANARY_WINDOW + 1 / n_baseline)
    return math.sqrt(max(0.0, float(np.nanmean(moved**2)) - by_chance) / variance)


def _variance(values: Array) -> float:
    """v, the mean over values of their sample variance over runs; 0 where no value was seen twice."""
    counts = (~np.isnan(values)).sum(axis=0)
    twice = values[:, counts >= 2]
    return float(np.nanvar(twice, axis=0, ddof=1).mean()) if twice.size else 0.0


def _spans(values: Array) -> float:
    """Return the widest span of a value over runs: exactly 0 where all runs gave the same bits."""
    known = values[:, ~np.isnan(values).all(axis=0)]
    return float((np.nanmax(known, axis=0) - np.nanmin(known, axis=0)).max()) if known.size else 0.0


def _outside(runs: _CanaryRuns, samples: Array, reference: Array) -> NDArray[np.bool_]:
    """Return [runs, prompts]: requests with a value OUTSIDE deviations beyond all reference runs."""
    room = OUTSIDE * math.sqrt(_variance(reference)) if _spans(reference) else 0.0
    is_known = ~np.isnan(reference)
    low = np.where(is_known, reference, np.inf).min(axis=0) - room
    high = np.where(is_known, reference, -np.inf).max(axis=0) + room
    # Comparisons with NaN are false: what has no answer is no outlier.
    return runs.prompts_with(((samples < low) | (samples > high)) & is_known.any(axis=0))


def _worst_window(runs: _CanaryRuns) -> int:
    """Return the most outliers of any baseline window against all other baseline runs."""
    counts = []
    for start in range(runs.n_baseline - CANARY_WINDOW, -1, -CANARY_WINDOW):
        left_out = np.arange(start, start + CANARY_WINDOW)
        rest = np.delete(runs.baseline, left_out, axis=0)
        counts.append(int(_outside(runs, runs.baseline[left_out], rest).sum()))
    return max(counts)


def _by_prompt(runs: _CanaryRuns, moved: Array) -> list[dict[str, Any]]:
    """Return the mean change of each prompt's values; None if window or baseline has no answer."""
    parts = np.split(moved, runs.prompt_at[1:])
    return [
        {"prompt": prompt, "moved": None if np.isnan(part).all() else float(np.nanmean(part))}
        for prompt, part in zip(runs.prompts, parts, strict=True)
    ]


def _too_few(runs: _CanaryRuns, numbers: dict[str, Any]) -> ProbeResult:
    # Each value has been listed by some run, so that none is without an answer.
    spans = np.nanmax(runs.values, axis=0) - np.nanmin(runs.values, axis=0)
    more = {
        "n_more_runs": CANARY_MIN_BASELINE + CANARY_WINDOW - numbers["n_runs"],
        "n_prompts_differing": int(runs.prompts_with(spans > 0).sum()),
        "largest_span": float(spans.max()),
    }
    return ProbeResult("too_few", {**numbers, **more})
