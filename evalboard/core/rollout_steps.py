"""Measure how far sampler and trainer are apart in one training step (docs/forced.md).

r is a token's probability on the trainer divided by the sampler's. Tensors are of torch, numpy or lists: torch is never
imported. Everything is vectorised: 256 × 1,024 tokens take some 20 ms of a processor.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.rollouts import RolloutFigures, RoutingCheck, TopKCheck, WorstRolloutToken
from evalboard.core.errors import InvalidInput
from evalboard.core.rollouts import RolloutShape, find_shape
from evalboard.core.trace import IMPOSSIBLE

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]
TopK = tuple[Any, Any]  # token ids and logprobs, [B, T, k] each

CLIP_RANGE = 0.2  # of r around 1, as PPO clips it by default
MAX_EXPONENT = 700.0  # e to a larger one is no float64
MAX_ROUTED = 4_096  # tokens whose experts are looked at, evenly over the step
MAX_LISTED = 32_768  # tokens of which two lists of likeliest tokens are compared
CONFIDENCE = 0.95
EXPERTS = ("routed_experts", "rollout_expert_indices")  # verl, SkyRL


@dataclass(frozen=True, eq=False, kw_only=True)
class _Step:
    """The tensors of one step: B responses in T columns.

    sampler, trainer: [B, T], logprobs in nats. is_sampled: bool[B, T]. token_ids: int[B, T]. firsts: int[B],
    the column of each response's first sampled token.
    """

    sampler: NDArray[Any]
    trainer: NDArray[Any]
    is_sampled: Mask
    token_ids: NDArray[Any]
    firsts: NDArray[np.int64]


def measure_step(
    batch: Mapping[str, Any],
    *,
    clip_range: float = CLIP_RANGE,
    top_k: TopK | None = None,
    sampler_top_k: TopK | None = None,
    trainer_experts: Any = None,
) -> RolloutFigures:
    """Measure a batch of verl, TRL or SkyRL, or of the plain form, by the names of docs/forced.md.

    top_k, sampler_top_k: token ids and logprobs of the likeliest tokens, [B, T, k] each, aligned with the response.
    trainer_experts: the experts that the trainer chose, [B, S, layers, k], as `routed_experts` has the sampler's.
    Raises InvalidInput where names are missing, shapes differ, or a side computed no logprob.
    """
    step = _read_step(batch)
    rows, columns = np.nonzero(step.is_sampled)
    sampler, trainer = (_read_logprobs(each[rows, columns]) for each in (step.sampler, step.trainer))
    for name, values in (("sampler", sampler), ("trainer", trainer)):
        if len(values) and not values.any():
            raise InvalidInput(f"Every logprob of the {name} is 0: it computed none.", fields={name: "all are 0"})
    log_ratios = find_log_ratios(sampler, trainer)
    is_known = ~np.isnan(log_ratios)
    known = log_ratios[is_known]
    excess, k3 = estimate_k3(known)
    n, n_responses = len(known), len(step.is_sampled)
    mean = float(k3.mean()) if n else None
    routed = next((batch[name] for name in EXPERTS if name in set(batch.keys())), None)
    terms = np.full(len(log_ratios), np.nan)
    terms[is_known] = k3
    return RolloutFigures(
        n_responses=n_responses,
        n_tokens=len(log_ratios),
        n_compared=n,
        is_identical=0 < n == len(log_ratios) and not known.any(),
        kl_k1=-float(known.mean()) if n else None,
        kl_k3=mean,
        kl_k3_error=None if mean is None else _find_error(k3, rows[is_known], n_responses, mean),
        clip_range=clip_range,
        clip_share=float((np.abs(excess) > clip_range).mean()) if n else None,
        worst=_find_worst(step, rows, columns, log_ratios) if n else None,
        distribution=None
        if top_k is None or not len(rows)
        else _check_top_k(step, rows, columns, top_k, sampler_top_k),
        routing=None if routed is None else _check_routing(routed, trainer_experts, step, (rows, columns), terms),
    )


def find_log_ratios(on_sampler: Numbers, on_reference: Numbers) -> Numbers:
    """Return log r of each token from its logprobs on both sides, NaN where one is unknown.

    A token that was sampled was possible: a sampler that says otherwise did not say how likely it was.
    """
    return np.maximum(on_reference, IMPOSSIBLE) - np.where(on_sampler <= IMPOSSIBLE, np.nan, on_sampler)


def estimate_k3(log_ratios: Numbers) -> tuple[Numbers, Numbers]:
    """Return r − 1, and r − 1 − log r, which estimates the KL at each token (Schulman, 2020)."""
    excess = np.expm1(np.minimum(log_ratios, MAX_EXPONENT / 2))  # exact where r is nearly 1
    return excess, np.maximum(excess - log_ratios, 0.0)  # rounding alone makes it negative


def _read_step(batch: Mapping[str, Any]) -> _Step:
    row = {name: batch[name] for name in batch.keys()}  # noqa: SIM118  a TensorDict iterates over its rows
    shape = find_shape(row)
    missing = [] if shape is None else [name for name in (shape.logprobs, shape.trainer) if row.get(name) is None]
    if shape is None or missing:
        words = f"It lacks {missing[0]}" if missing else f"It has {', '.join(sorted(map(str, row))) or 'nothing'}"
        raise InvalidInput(
            f"The batch has no logprobs of both sides under known names. {words}.", fields={"batch": words}
        )
    sampler, lengths = _read_matrix(row[shape.logprobs], np.nan)
    trainer, _ = _read_matrix(row[shape.trainer], np.nan)
    n_columns = sampler.shape[1]
    is_sampled = np.arange(n_columns) < lengths[:, None]
    masks = [name for name in shape.masks if row.get(name) is not None]
    for name in masks:
        is_sampled &= _fit(name, _read_matrix(row[name], 0)[0], sampler.shape) != 0
    if trainer.shape != sampler.shape:
        raise _differs(shape.trainer, trainer.shape, sampler.shape)
    ids = _read_matrix(row[shape.tokens], -1)[0]
    return _Step(
        sampler=sampler,
        trainer=trainer,
        is_sampled=is_sampled,
        token_ids=_fit(shape.tokens, _cut_ids(ids, shape, n_columns), sampler.shape),
        firsts=is_sampled.argmax(axis=1),
    )


def _read_logprobs(values: NDArray[Any]) -> Numbers:
    """Return logprobs, NaN where one is infinite: a trainer that overflowed knows none."""
    numbers = values.astype(np.float64)
    return np.where(np.isposinf(numbers), np.nan, numbers)


def _cut_ids(ids: NDArray[Any], shape: RolloutShape, n_columns: int) -> NDArray[Any]:
    return ids[:, -n_columns:] if shape.is_right_aligned and n_columns else ids


def _fit(name: str, values: NDArray[Any], wanted: tuple[int, ...]) -> NDArray[Any]:
    if values.shape != wanted:
        raise _differs(name, values.shape, wanted)
    return values


def _differs(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> InvalidInput:
    words = f"{name} has the shape {list(shape)}, and the sampler's logprobs {list(wanted)}"
    return InvalidInput(f"The tensors of the step differ in shape: {words}.", fields={name: words})


def _read_matrix(value: Any, fill: float) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return a [B, T] array, ragged rows padded on the right with `fill`, and the length of each row."""
    if getattr(value, "is_nested", False):  # of torch, jagged
        values, offsets = _read_array(value.values()), _read_array(value.offsets())
        ragged = [values[start:end] for start, end in pairwise(offsets)]
    elif isinstance(value, list | tuple):
        ragged = [_read_array(each) for each in value]
    else:
        array = _read_array(value)
        if array.ndim != 2:
            raise InvalidInput(f"A tensor has {array.ndim} dimensions where [responses, tokens] is needed.")
        return array, np.full(len(array), array.shape[1])
    lengths = np.array([len(each) for each in ragged], np.int64)
    padded = np.full((len(ragged), int(lengths.max(initial=0))), fill)
    for index, each in enumerate(ragged):
        padded[index, : len(each)] = each
    return padded, lengths


def _read_array(value: Any) -> NDArray[Any]:
    """Return a numpy array of a torch tensor on any device, or of anything that numpy reads."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() and value.element_size() < 4 else value  # bfloat16
    return np.asarray(value)


def _find_error(k3: Numbers, rows: NDArray[np.int64], n_responses: int, mean: float) -> float | None:
    """Return the standard error of the mean over responses; None of fewer than two."""
    n_used = len(np.unique(rows))
    if n_used < 2:
        return None
    sums, counts = np.bincount(rows, k3, n_responses), np.bincount(rows, minlength=n_responses)
    return math.sqrt(n_used / (n_used - 1) * float(((sums - mean * counts) ** 2).sum())) / len(k3)


def _find_worst(
    step: _Step, rows: NDArray[np.int64], columns: NDArray[np.int64], log_ratios: Numbers
) -> WorstRolloutToken:
    at = int(np.nanargmax(np.abs(log_ratios)))
    row, column = int(rows[at]), int(columns[at])
    return WorstRolloutToken(
        response=row,
        position=column - int(step.firsts[row]),
        token_id=int(step.token_ids[row, column]),
        sampler=float(step.sampler[row, column]),
        trainer=max(float(step.trainer[row, column]), IMPOSSIBLE),
        log_ratio=float(log_ratios[at]),
    )


def _check_top_k(
    step: _Step, rows: NDArray[np.int64], columns: NDArray[np.int64], top_k: TopK, sampler_top_k: TopK | None
) -> TopKCheck:
    """Bound the mean total variation of the two distributions.

    With the sampler's top k, exactly at every position. Without it, by how often tokens of each rank were sampled: the
    trainer says how often to expect them. Azuma's inequality over all sets of ranks holds for tokens that depend on
    those before them.
    """
    if sampler_top_k is not None:
        picked = _pick(len(rows), MAX_LISTED)
        rows, columns = rows[picked], columns[picked]
    ids, logprobs = _read_top_k("top_k", top_k, step, rows, columns)
    probs = np.exp(logprobs)
    n, k = ids.shape
    is_chosen = ids == step.token_ids[rows, columns][:, None]
    shares, wanted = is_chosen.mean(axis=0), probs.mean(axis=0)
    observed, expected = (min(float(each.sum()), 1.0) for each in (shares, wanted))
    if sampler_top_k is None:
        apart = 0.5 * (float(np.abs(shares - wanted).sum()) + abs(observed - expected))
        slack = math.sqrt(((k + 1) * math.log(2) - math.log(1 - CONFIDENCE)) / (2 * n))
        low, high = max(apart - slack, 0.0), None
    else:
        low, high = _bound_variation(ids, probs, *_read_top_k("sampler_top_k", sampler_top_k, step, rows, columns))
    return TopKCheck(
        n_positions=n,
        top_k=k,
        tv_low=min(low, 1.0),
        tv_high=high,
        confidence=CONFIDENCE if sampler_top_k is None else None,
        observed=observed,
        expected=expected,
    )


def _bound_variation(
    ids: NDArray[Any], probs: Numbers, sampler_ids: NDArray[Any], sampler_logprobs: Numbers
) -> tuple[float, float]:
    """Return the least and the largest mean total variation that two lists of likeliest tokens allow.

    A token that one side does not list is part of that side's rest, of which the sum alone is known.
    """
    sampler_probs = np.exp(sampler_logprobs)
    matched, apart = np.zeros(len(ids)), np.zeros(len(ids))
    taken = np.zeros(len(ids))
    for column in range(ids.shape[1]):
        is_same = sampler_ids == ids[:, column, None]
        on_sampler = np.where(is_same, sampler_probs, 0.0).sum(axis=1)
        is_listed = is_same.any(axis=1)
        matched += np.where(is_listed, probs[:, column], 0.0)
        taken += on_sampler
        apart += np.where(is_listed, np.abs(probs[:, column] - on_sampler), 0.0)
    rest, sampler_rest = (np.clip(1 - sums, 0.0, 1.0) for sums in (matched, taken))
    low, high = 0.5 * (apart + np.abs(rest - sampler_rest)), 0.5 * (apart + rest + sampler_rest)
    return float(low.mean()), min(float(high.mean()), 1.0)


def _read_top_k(
    name: str, given: TopK, step: _Step, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[NDArray[Any], Numbers]:
    ids, logprobs = map(_read_array, given)
    if ids.ndim != 3 or ids.shape != logprobs.shape or ids.shape[:2] != step.sampler.shape:
        raise _differs(name, ids.shape, (*step.sampler.shape, ids.shape[-1]))
    return ids[rows, columns], logprobs[rows, columns].astype(np.float64)


def _check_routing(
    routed: Any, trainer_experts: Any, step: _Step, places: tuple[NDArray[np.int64], NDArray[np.int64]], terms: Numbers
) -> RoutingCheck | None:
    """Measure which experts were chosen; None where no token has a route.

    The experts of the position before a token gave that token. They are the last T + 1 columns without the last one,
    whose token was never read. A row whose experts are all alike, or negative, is filling.
    """
    picked = _pick(len(places[0]), MAX_ROUTED)
    rows, columns = (each[picked] for each in places)
    sampler = _read_experts("routed_experts", routed, step, rows, columns)
    is_routed = (sampler >= 0).all(axis=(1, 2))
    if sampler.shape[2] > 1:
        is_routed &= (sampler != sampler[..., :1]).any(axis=(1, 2))
    sampler, rows, columns, terms = sampler[is_routed], rows[is_routed], columns[is_routed], terms[picked][is_routed]
    n, n_layers, k = sampler.shape
    if not n:
        return None
    n_experts = int(sampler.max()) + 1
    keys = sampler + n_experts * np.arange(n_layers)[:, None]
    loads = np.bincount(keys.ravel(), minlength=n_experts * n_layers).reshape(n_layers, n_experts)
    layer, expert = divmod(int(loads.argmax()), n_experts)
    differs = kl_same = kl_other = None
    if trainer_experts is not None:
        trainer = _read_experts("trainer_experts", trainer_experts, step, rows, columns)
        is_other = (np.sort(sampler, axis=2) != np.sort(trainer, axis=2)).any(axis=2)
        differs = float(is_other.mean())
        is_token_other = is_other.any(axis=1)
        kl_same, kl_other = (_mean(terms[chosen]) for chosen in (~is_token_other, is_token_other))
    return RoutingCheck(
        n_positions=n,
        n_layers=n_layers,
        top_k=k,
        busiest_layer=layer,
        busiest_expert=expert,
        busiest_share=float(loads[layer, expert]) / n,
        differs=differs,
        kl_same=kl_same,
        kl_other=kl_other,
    )


def _read_experts(
    name: str, value: Any, step: _Step, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return int64[n, layers, k]: the experts of the position before each token."""
    width, shape = step.sampler.shape[1], tuple(value.shape)
    if len(shape) != 4 or shape[0] != len(step.sampler) or shape[1] <= width:
        words = f"{name} has the shape {list(shape)}; it is [responses, prompt and response, layers, k]"
        raise InvalidInput(f"The experts of the step cannot be read: {words}.", fields={name: words})
    experts: NDArray[np.int64] = _read_array(value)[rows, shape[1] - width - 1 + columns].astype(np.int64)
    return experts


def _pick(n: int, most: int) -> NDArray[np.int64]:
    """Return up to `most` indexes below n, evenly spread."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


def _mean(values: Numbers) -> float | None:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else None
