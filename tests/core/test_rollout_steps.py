"""A training step measured from each trainer's tensors, and what top-k logprobs and experts add."""

import json
from typing import Any

import numpy as np
import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.forced import check_on_policy
from evalboard.core.rollout_steps import measure_step
from evalboard.core.rollouts import parse_rollouts
from tests import trainer_dumps
from tests.trainer_dumps import Laid

TENSORS = ("verl", "skyrl", "trl")  # whose trainers hold both sides as tensors


def laid(n: int = 6) -> list[Laid]:
    """Rollouts of other lengths, with a tool's answer inside; the fourth has one token far off."""
    rng = np.random.default_rng(3)
    rollouts = []
    for number in range(n):
        length = int(rng.integers(4, 12))
        sampler = -rng.integers(1, 16, length) / 8
        trainer = sampler + rng.integers(-2, 3, length) / 16
        if number == 3:
            trainer[2] -= 2.0
        rollouts.append(
            Laid(
                prompt=rng.integers(3, 90, int(rng.integers(2, 6))).tolist(),
                tokens=rng.integers(100, 500, length).tolist(),
                sampled=[1, *rng.integers(0, 2, length - 2).tolist(), 1] if number != 3 else [1] * length,
                sampler=sampler.tolist(),
                trainer=trainer.tolist(),
            )
        )
    return rollouts


def tensors(writer: str) -> dict[str, Any]:
    """The batch of a trainer as numpy arrays; what it has of other kinds stays as it is."""
    [batch] = trainer_dumps.PADDED[writer](laid())
    return {name: np.array(value) if isinstance(value, list) else value for name, value in batch.items()}


@pytest.mark.parametrize("writer", TENSORS)
def test_a_step_says_what_the_check_of_the_same_file_says(writer: str) -> None:
    figures = measure_step(tensors(writer))
    lines = [json.dumps(row) for row in trainer_dumps.PADDED[writer](laid())]
    check = check_on_policy(parse_rollouts(lines, field="rollouts"))
    assert figures.kl_k1 == pytest.approx(check.figures.kl_k1.value)  # type: ignore[union-attr]
    assert figures.kl_k3 == pytest.approx(check.figures.kl_k3.value)  # type: ignore[union-attr]
    assert figures.clip_share == pytest.approx(check.figures.beyond_clip.value)  # type: ignore[union-attr]
    assert figures.n_compared == check.figures.n_compared
    assert figures.worst is not None
    assert (figures.worst.response, figures.worst.position, figures.worst.log_ratio) == (
        check.worst[0].response,
        check.worst[0].position,
        check.worst[0].log_ratio,
    )
    assert figures.worst.token_id == laid()[3].tokens[2]
    assert (figures.worst.sampler, figures.worst.trainer) == (laid()[3].sampler[2], laid()[3].trainer[2])


def test_a_batch_that_lacks_a_side_is_refused_with_its_name() -> None:
    batch = tensors("verl")
    del batch["old_log_probs"]
    with pytest.raises(InvalidInput, match="It lacks old_log_probs"):
        measure_step(batch)
    with pytest.raises(InvalidInput, match=r"under known names\. It has answers"):
        measure_step({"answers": np.zeros((2, 2))})
    with pytest.raises(InvalidInput, match=r"old_log_probs has the shape \[2, 3\]"):
        measure_step({**tensors("verl"), "old_log_probs": np.zeros((2, 3))})
    with pytest.raises(InvalidInput, match="Every logprob of the trainer is 0"):
        measure_step({**tensors("trl"), "old_per_token_logps": np.zeros_like(tensors("trl")["completion_ids"], float)})


N_TOKENS, N_WORDS, TOP = 4_000, 30, 6


def sampled(temperature: float, seed: int) -> tuple[dict[str, Any], Any, Any, float]:
    """A batch whose sampler divides the trainer's logits by a temperature, both top k, and the exact mean TV."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (N_TOKENS, N_WORDS))

    def spread(by: float) -> Any:
        weights = np.exp(logits / by)
        return weights / weights.sum(axis=1, keepdims=True)

    trainer, sampler = spread(1.0), spread(temperature)
    chosen = (sampler.cumsum(axis=1) > rng.random((N_TOKENS, 1))).argmax(axis=1)
    at = np.arange(N_TOKENS)
    shape = (10, N_TOKENS // 10)
    batch = {
        "responses": chosen.reshape(shape),
        "rollout_log_probs": np.log(trainer[at, chosen]).reshape(shape),  # as reported before the temperature
        "old_log_probs": np.log(trainer[at, chosen]).reshape(shape),
    }

    def top(of: Any) -> Any:
        ids = np.argsort(-of, axis=1)[:, :TOP]
        return ids.reshape(*shape, TOP), np.log(np.take_along_axis(of, ids, axis=1)).reshape(*shape, TOP)

    return batch, top(trainer), top(sampler), float(0.5 * np.abs(trainer - sampler).sum(axis=1).mean())


def test_two_lists_of_likeliest_tokens_bound_the_exact_variation() -> None:
    batch, trainer, sampler, exact = sampled(1.5, seed=1)
    check = measure_step(batch, top_k=trainer, sampler_top_k=sampler).distribution
    assert check is not None
    assert check.tv_high is not None
    assert 0.5 * exact < check.tv_low <= exact <= check.tv_high < 1
    same = measure_step(batch, top_k=trainer, sampler_top_k=trainer).distribution
    assert same is not None
    assert same.tv_low == 0


def test_the_trainer_s_list_alone_exposes_a_temperature_that_equal_logprobs_hide() -> None:
    """Both sides report one column of logprobs, and the sampler samples from another distribution."""
    batch, trainer, _, exact = sampled(2.0, seed=2)
    figures = measure_step(batch, top_k=trainer)
    assert figures.is_identical
    assert figures.distribution is not None
    assert 0.05 < figures.distribution.tv_low <= exact
    assert figures.distribution.tv_high is None
    honest = [measure_step(made[0], top_k=made[1]) for made in (sampled(1.0, seed) for seed in range(40))]
    n_accused = sum(each.distribution is not None and each.distribution.tv_low > 0 for each in honest)
    assert n_accused <= 2  # of 40, at a confidence of 95 %


def test_experts_say_how_much_of_the_kl_other_routes_make() -> None:
    """verl: prompt and response, and experts of the position before a token gave that token."""
    rng = np.random.default_rng(4)
    n_rows, width, prompt, layers, k = 20, 30, 5, 3, 2
    experts = np.argsort(rng.random((n_rows, prompt + width, layers, 16)), axis=3)[..., :k]
    experts[:, :, 1, 0] = 15  # one layer sends every token to one expert
    experts[:, :, 1, 1] = rng.integers(0, 15, (n_rows, prompt + width))
    other = experts[..., ::-1].copy()  # the order within a layer is no difference
    is_other = rng.random((n_rows, width)) < 0.25
    other[:, prompt - 1 : -1, 2, 0][is_other] = 77
    sampler = -rng.exponential(0.5, (n_rows, width))
    batch = {
        "responses": rng.integers(0, 9, (n_rows, width)),
        "rollout_log_probs": sampler,
        "old_log_probs": sampler - 0.5 * is_other,
        "routed_experts": experts.astype(np.int16),
    }
    routing = measure_step(batch, trainer_experts=other).routing
    assert routing is not None
    assert (routing.n_positions, routing.n_layers, routing.top_k) == (n_rows * width, layers, k)
    assert (routing.busiest_layer, routing.busiest_expert, routing.busiest_share) == (1, 15, 1.0)
    assert routing.differs == pytest.approx(is_other.mean() / layers)
    assert routing.kl_same == 0
    assert routing.kl_other == pytest.approx(np.exp(-0.5) - 1 + 0.5)
    filled = measure_step({**batch, "routed_experts": np.zeros_like(experts)})
    assert filled.routing is None  # no token has a route
    alone = measure_step(batch).routing
    assert alone is not None
    assert alone.differs is None


def test_a_step_without_tokens_and_an_overflow_end_no_training() -> None:
    batch = tensors("verl")
    ids = np.stack([batch["responses"], batch["responses"] + 1], axis=-1)
    nothing = {**batch, "response_mask": np.zeros_like(batch["response_mask"])}
    figures = measure_step(nothing, top_k=(ids, np.full(ids.shape, -1.0)))
    assert (figures.n_tokens, figures.kl_k3, figures.distribution) == (0, None, None)
    overflow = {**batch, "old_log_probs": batch["old_log_probs"].copy()}
    overflow["old_log_probs"][0, 0] = np.inf
    figures = measure_step(overflow)
    assert figures.n_compared == figures.n_tokens - 1
    shape = (*batch["responses"].shape, 2, 1)
    unrouted = np.full((shape[0], shape[1] + 3, *shape[2:]), -1)
    assert measure_step({**batch, "routed_experts": unrouted}).routing is None
