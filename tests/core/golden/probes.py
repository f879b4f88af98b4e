"""What a probe says of an endpoint: seeds, batches, routing, canaries; and two batch probes."""

from dataclasses import replace

import numpy as np

from evalboard.core.probes import (
    ProbeCall,
    compare_batch_probes,
    judge_batch_probe,
    judge_canary_probe,
    judge_routing_probe,
    judge_seed_probe,
)
from tests.bench.simulated_probes import BETWEEN_RUNS, QUIET, batch_calls, canary_runs, seed_calls
from tests.core.golden.readers import Sentence, Situations, read_batch_comparison, read_probe
from tests.core.test_batch_probe import copies
from tests.core.test_canary_probe import Runs, runs_of
from tests.core.test_routing_probe import A, B, calls
from tests.core.test_seed_probe import as_greedy, calls_of

TEA = calls_of([["a sea of tea"] * 5] * 5, [["a sea of tea"] * 5] * 5)


def read_seed(asked: list[ProbeCall]) -> list[Sentence]:
    return read_probe("seed", judge_seed_probe(asked))


def seeds(seed: int, *, n_failed: int = 0, **how: float) -> list[ProbeCall]:
    asked = seed_calls(np.random.default_rng(seed), **how)  # type: ignore[arg-type]
    return [replace(call, token_ids=(), error="The engine is gone.") for call in asked[:n_failed]] + asked[n_failed:]


def dropped_by_one_bucket() -> list[ProbeCall]:
    rng = np.random.default_rng(3)
    loyal = [replace(call, bucket=1) for call in seed_calls(rng, noise=QUIET)]
    dropping = iter(seed_calls(rng, dropped=1.0))
    return [replace(next(dropping), bucket=2) if index % 5 in (0, 2) else call for index, call in enumerate(loyal)]


def read_batch(asked: list[ProbeCall]) -> list[Sentence]:
    return read_probe("batch", judge_batch_probe(asked))


def read_two_batches(one: list[ProbeCall], other: list[ProbeCall]) -> list[Sentence]:
    return read_batch_comparison(compare_batch_probes(one, other))


def batches(seed: int, *, share: float, moved: int = 0) -> list[ProbeCall]:
    return batch_calls(np.random.default_rng(seed), share=share, moved=moved)


def read_routing(asked: list[ProbeCall], last: str | None = None) -> list[Sentence]:
    return read_probe("routing", judge_routing_probe(asked, last_fingerprint=last))


def read_canary(runs: Runs) -> list[Sentence]:
    *earlier, now = runs
    return read_probe("canary", judge_canary_probe(now, earlier))


def canaries(**how: float) -> Runs:
    return canary_runs(np.random.default_rng(1), **how)  # type: ignore[arg-type]


SITUATIONS: Situations = {
    # Seed.
    "The seed decides every answer": lambda: read_seed(seeds(1)),
    "The seed decides, as far as noise lets it": lambda: read_seed(seeds(1, noise=0.01)),
    "One call of 25 parted": lambda: read_seed(seeds(8, noise=0.002)),
    "A third of the calls lose their seed": lambda: read_seed(seeds(2, dropped=0.3)),
    "One bucket drops the seed": lambda: read_seed(dropped_by_one_bucket()),
    "Nobody honours the seed": lambda: read_seed(seeds(1, dropped=1.0)),
    "No seed changes the text": lambda: read_seed(TEA),
    "No seed changes the text, which is that of T = 0": lambda: read_seed(as_greedy(TEA, "a sea of tea")),
    "No seed changes the text, and T = 0 gives another": lambda: read_seed(as_greedy(TEA, "a bee")),
    "Too few calls to tell": lambda: read_seed(calls_of([["abcdefghij"] * 3], [["abcde", "abcxyzuvwq"]])),
    "One call failed": lambda: read_seed(seeds(5, n_failed=1)),
    "Most calls failed": lambda: read_seed(seeds(5, n_failed=30)),
    # Batch.
    "Fifty copies alike": lambda: read_batch(copies(*["abc"] * 50)),
    "Fifty copies of each of five prompts alike": lambda: read_batch(batches(1, share=0.0)),
    "Copies that were decoded alone": lambda: read_batch(copies(*["abc"] * 20, batch_max=1)),
    "Some copies were decoded alone": lambda: read_batch([*copies(*["abc"] * 20), *copies(*["abc"] * 5, batch_max=1)]),
    "One copy of a hundred went another way": lambda: read_batch(copies(*["abc"] * 99, "abd")),
    "A fifth of the copies went another way": lambda: read_batch(batches(1, share=0.2)),
    "Too few copies": lambda: read_batch(copies("abc")),
    # Two batch probes.
    "Two probes alike": lambda: read_two_batches(batches(1, share=0.1), batches(2, share=0.1)),
    "The second probe is noisier": lambda: read_two_batches(batches(1, share=0.05), batches(2, share=0.3)),
    "One prompt has another text": lambda: read_two_batches(batches(1, share=0.1), batches(2, share=0.1, moved=1)),
    "Two prompts have another text": lambda: read_two_batches(batches(1, share=0.1), batches(2, share=0.1, moved=2)),
    "Two probes without a prompt in common": lambda: read_two_batches(copies("a", "a"), copies("a", "a", prompt=1)),
    # Routing.
    "Eight answers of one stack": lambda: read_routing([*calls(1, *[A] * 4), *calls(2, *[A] * 4)]),
    "Sixty answers of the same stack as before": lambda: read_routing(calls(1, *[A] * 60), A),
    "A single answer": lambda: read_routing(calls(1, A)),
    "A worker without any answer": lambda: read_routing(
        [*calls(1, A, A), ProbeCall(prompt=0, group="ask", worker=2, error="The worker went away.")]
    ),
    "The stack was rotated": lambda: read_routing(calls(1, A, A), B),
    "Two stacks": lambda: read_routing([*calls(1, A, A, A), *calls(2, A, B, B, B, B)]),
    "Six stacks, and answers that name none": lambda: read_routing(
        calls(1, *(letter * 64 for letter in "abcdef"), "", "")
    ),
    "Answers that name no stack": lambda: read_routing([*calls(1, A, A), *calls(2, "", "")]),
    "Every call failed": lambda: read_routing([ProbeCall(prompt=0, group="ask", worker=1, error="Gone.")] * 3),
    # Canary.
    "The first canary": lambda: read_canary(runs_of(-0.5)),
    "Three canaries that agree": lambda: read_canary(runs_of(*[-0.5] * 3)),
    "Three canaries that do not": lambda: read_canary(runs_of(-0.5, -0.5, -0.75)),
    "The same bits every time": lambda: read_canary(runs_of(*[-0.5] * 12)),
    "A pinned canary that moved": lambda: read_canary(runs_of(*[-0.5] * 11, -0.6)),
    "Noise between runs": lambda: read_canary(canaries()),
    "All logits moved by twice the noise": lambda: read_canary(canaries(shift=2 * BETWEEN_RUNS)),
    "Logits moved by half of the noise": lambda: read_canary(canaries(shift=BETWEEN_RUNS / 2)),
    "The newest run alone moved": lambda: read_canary(canaries(shift=0.5, n_new=1)),
    "A part of the requests moved": lambda: read_canary(canaries(shift=0.5, share=0.15)),
    "A canary without logprobs": lambda: read_canary([[ProbeCall(prompt=0, group="ask", token_ids=(1,))]] * 12),
}
