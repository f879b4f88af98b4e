"""Is training on-policy?"""

import json

import numpy as np

from evalboard.core.forced import MAX_KL, check_on_policy, judge_kl
from evalboard.core.rollouts import parse_rollouts
from evalboard.wording.on_policy import describe_figures, describe_on_policy, describe_worst, explain_no_kl
from tests.core.golden.readers import Sentence, Situations

ROW = json.dumps({"token_ids": [1, 2, 3], "logprobs": [-0.5, -1.0, -0.25], "trainer_logprobs": [-0.5, -1.125, -0.25]})


def check(drift: float, *, n: int = 20, length: int = 200, unknown: int = 0, planted: float = 0.0) -> list[Sentence]:
    """Read what is said of n rollouts whose trainer's logprobs lie off by normal noise; `unknown` in each are null.

    planted: nats by which one token of the last rollout is less likely to the trainer.
    """
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(n):
        logprobs = rng.uniform(-2, 0, length)
        scored = [None] * unknown + (logprobs + rng.normal(0, drift, length))[unknown:].tolist()
        if planted and len(lines) == n - 1:
            scored[17] -= planted
        row = {"token_ids": list(range(length)), "logprobs": logprobs.tolist(), "trainer_logprobs": scored}
        lines.append(json.dumps(row))
    checked = check_on_policy(parse_rollouts(lines, field="ROLLOUTS"))
    worst = [describe_worst(f"response {each.response + 1}", each.position, each.log_ratio) for each in checked.worst]
    lines = [*describe_figures(checked.figures), *worst[:1]]
    said = describe_on_policy(checked.state, checked.figures, checked.max_kl)
    return [Sentence("on policy", checked.state, said), *(Sentence(name, "", value) for name, value in lines)]


def drawn(*reshaped_by: str, is_sampled: bool = True) -> list[Sentence]:
    """Read what is said of a run whose tokens gave logprobs, drawn so."""
    figures = check_on_policy(parse_rollouts([ROW], field="ROLLOUTS")).figures
    are_draws = is_sampled and not reshaped_by
    state = judge_kl(figures.kl_k3, is_identical=False, max_kl=MAX_KL, are_draws=are_draws)
    lines = describe_figures(figures, are_draws=are_draws)
    return [
        Sentence("on policy", state, describe_on_policy(state, figures, MAX_KL)),
        *(Sentence(name, "", value) for name, value in lines),
        Sentence("why", "", explain_no_kl(reshaped_by, is_sampled=is_sampled)),
    ]


SITUATIONS: Situations = {
    "The trainer has the sampler's bits": lambda: check(0.0),
    "A sampler in another dtype": lambda: check(0.01),
    "A sampler that is another model": lambda: check(0.3),
    "Noise at the limit": lambda: check(0.045),
    "A trainer that is far off at one token": lambda: check(0.003, planted=3.0, length=50),
    "Four rollouts": lambda: check(0.1, n=4, length=50),
    "A trainer that is silent on some tokens": lambda: check(0.01, unknown=12),
    "A run that did not sample": lambda: drawn(is_sampled=False),
    "A run that sampled at 0.7 with a cut-off": lambda: drawn("temperature", "top_p"),
    "A trainer that is silent throughout": lambda: check(0.0, length=12, unknown=12),
}
