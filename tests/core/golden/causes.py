"""Why two answers parted: pairs of recorded and of written traces."""

from dataclasses import dataclass, replace

import numpy as np

from evalboard.core.compare.divergence import Divergence, find_divergence, find_text_divergence
from evalboard.core.compare.known_pair import KnownResponse
from evalboard.core.stats.numeric_noise import ZERO_NOISE, choose_larger_noise
from evalboard.core.trace.trace import make_trace
from evalboard.wording.cause import Facts, count_larger_shifts, explain_at_flip, explain_leak, explain_noise
from tests.core.golden.readers import Sentence, Situations, read_cause
from tests.core.test_cause import ASSUMED, RECORDED, SIDE, cut, drifted, longest, with_choice

FAILED = KnownResponse(has_response=False, error_code="timeout")
MEASURED = choose_larger_noise((0.01, "bfloat16"), (0.02, "bfloat16"))
SHARED = [(1, -0.1), (2, -2.5)]


def tied(gap: float = 0.01, *, n_before: int = 12) -> Divergence:
    """After n_before positions alike, two tokens change places, `gap` nats apart on either side."""
    sides = [
        make_trace(
            [*[1] * n_before, first],
            [*[-0.1] * n_before, -0.6],
            [*[SHARED] * n_before, [(first, -0.6), (second, -0.6 - gap)]],
        )
        for first, second in ((3, 5), (5, 3))
    ]
    return find_divergence(*sides)


def shifted(sd: float = 0.25) -> Divergence:
    return find_divergence(longest(), drifted(longest(), np.random.default_rng(5), sd))


def drawn_once() -> Divergence:
    position = int(np.flatnonzero(longest().margins() > 1.0)[10])
    return find_divergence(longest(), with_choice(longest(), position, 1))


def nudged(by: float) -> Divergence:
    """Three positions whose second token moved by `by` nats."""
    trace = cut(longest(), 3)
    return find_divergence(trace, replace(trace, alternative_logprobs=trace.alternative_logprobs - np.float32([0, by])))


def spiked(by: float = 2.0) -> Divergence:
    """Of 120 positions one has moved."""
    rows = [SHARED] * 120
    moved = [*rows[:57], [(1, -0.1), (2, -2.5 - by)], *rows[58:]]
    one, other = (make_trace([1] * 120, [-0.1] * 120, each) for each in (rows, moved))
    return find_divergence(one, other)


def begun_otherwise() -> Divergence:
    one = make_trace([1, 2], [-0.1, -0.1], [SHARED, [(2, -0.1), (3, -2.5)]])
    return find_divergence(one, make_trace([1, 4], [-1.3, -0.1], [[(1, -1.3), (7, -1.4)], [(4, -0.1), (3, -2.5)]]))


def ended() -> Divergence:
    return find_divergence(longest(), cut(longest(), 40))


def drawn_once_after(by: float) -> Divergence:
    """One token drawn at the third position, after every second token moved by `by` nats."""
    one = with_choice(cut(longest(), 3), 2, 1)
    moved = replace(one, alternative_logprobs=one.alternative_logprobs - np.float32([0, by]))
    return find_divergence(cut(longest(), 3), moved)


def leaked(n_before: int = 12) -> Divergence:
    """After n_before positions alike, either side lists tokens that the other does not."""
    rows = [[(3, -0.1), (5, -2.5)], [(7, -0.2), (9, -2.0)]]
    return find_divergence(
        *(
            make_trace([*[1] * n_before, row[0][0]], [*[-0.1] * n_before, row[0][1]], [*[SHARED] * n_before, row])
            for row in rows
        )
    )


def read_noise(**facts: object) -> list[Sentence]:
    return [Sentence("noise", "", explain_noise(facts))]


def read_leak(source: Facts | None, *n_beside: int | None) -> list[Sentence]:
    return [Sentence("leak", "", explain_leak(source, dict(zip(("baseline", "candidate"), n_beside, strict=True))))]


LONG = replace(SIDE, text="A long answer", finish_reason="stop")
SEEDED = replace(SIDE, temperature=0.7, seed=42, bucket=1)
UNKNOWN_PROMPT = replace(SIDE, prompt_digest=None, n_prompt_tokens=None, template_digest=None)


@dataclass(frozen=True)
class Choice:
    stack: str
    margin: float


def scored(near: float | None, **margins: float) -> list[Sentence]:
    """Read what stacks give at a flip when they score the other side's answer; margins: by stack, in nats."""
    choices = [Choice(stack, margin) for stack, margin in margins.items()]
    return [Sentence("at the flip", "", explain_at_flip(choices, near=near))]


SITUATIONS: Situations = {
    "A near tie, scored on both stacks": lambda: scored(0.02, baseline=0.004, candidate=0.011),
    "A near tie that one stack has alone": lambda: scored(0.02, baseline=0.004, candidate=0.8),
    "A flip that neither stack nearly ties at": lambda: scored(0.02, baseline=0.5, candidate=0.8),
    "A flip that one stack scored, and the noise is not known": lambda: scored(None, candidate=0.8),
    "The candidate's call failed": lambda: read_cause(None, has_response=False, error_code="timeout"),
    "Both calls failed": lambda: read_cause(None, base=FAILED, error_code="connection"),
    "Nobody knows why a call failed": lambda: read_cause(None, has_response=False),
    "Same to the bit": lambda: read_cause(None),
    "Same text in other tokens": lambda: read_cause(Divergence(has_logprobs=True, is_retokenised=True)),
    "A grammar forbade the likelier tokens": lambda: read_cause(
        replace(drawn_once(), is_constrained=True, not_greedy_candidate=None), text="x"
    ),
    "A schema on one side": lambda: read_cause(drawn_once(), text="{}", constraint="response_format 1f0c22aa"),
    "No alternatives at temperature 0": lambda: read_cause(
        find_divergence(make_trace([1], [-1.0], [[]]), make_trace([3], [-1.0], [[]])), text="x"
    ),
    "Same text, no logprobs": lambda: read_cause(find_text_divergence("x", "x")),
    "Same answer, another scorer": lambda: read_cause(None, score=0.0, scorer_digest="6d" * 32),
    "Same answer, another grade, and no scorer is known": lambda: read_cause(None, score=0.0, scorer_digest=None),
    "Other weights, at a near tie": lambda: read_cause(tied(), text="The dog.", weights_digest="bb" * 32),
    "Other weights, and logits moved further than noise": lambda: read_cause(
        shifted(), text="The dog.", weights_digest="bb" * 32
    ),
    "Another declared revision": lambda: read_cause(drawn_once(), text="The dog.", model_revision="v2"),
    "Other weights, and other prompts and limits too": lambda: read_cause(
        tied(), text="x", weights_digest="bb" * 32, prompt_digest="11" * 16, max_tokens=40, finish_reason="length"
    ),
    "Other prompts, and another backend too": lambda: read_cause(
        drawn_once(), text="x", prompt_digest="11" * 16, n_prompt_tokens=35, fingerprint="f2" * 32
    ),
    "Another chat template": lambda: read_cause(
        find_divergence(RECORDED[0], RECORDED[1]),
        text="The dog.",
        prompt_digest="11" * 16,
        template_digest="22" * 32,
        n_prompt_tokens=35,
    ),
    "Other prompts, and no more is known": lambda: read_cause(drawn_once(), text="x", prompt_digest="11" * 16),
    "Prompts of other lengths": lambda: read_cause(
        drawn_once(), base=replace(UNKNOWN_PROMPT, n_prompt_tokens=31), text="x", n_prompt_tokens=35
    ),
    "Answers that start apart": lambda: read_cause(begun_otherwise(), base=UNKNOWN_PROMPT, text="x"),
    "Another temperature and top-p": lambda: read_cause(
        drawn_once(), base=replace(SIDE, sampling={"top_p": 1.0}), text="x", temperature=0.7, sampling={"top_p": 0.9}
    ),
    "A penalty, and another backend too": lambda: read_cause(
        tied(),
        base=replace(SIDE, sampling={"presence_penalty": 0.0}),
        text="x",
        sampling={"presence_penalty": 0.5},
        backend="node-2",
    ),
    "One seed, and another draw from the same probabilities": lambda: read_cause(drawn_once(), base=SEEDED, text="x"),
    "One seed, and another draw after logits moved by next to nothing": lambda: read_cause(
        drawn_once_after(1e-6), base=SEEDED, text="x"
    ),
    "One seed, and another draw that noise may have made": lambda: read_cause(
        drawn_once_after(0.01), base=SEEDED, text="x"
    ),
    "Another request's continuation, perhaps": lambda: read_cause(leaked(), text="x"),
    "The same in two logs, of which nothing is decoded again here": lambda: read_cause(leaked(), text="x", replay=""),
    "Another request's continuation, and it was decoded beside it": lambda: read_leak(
        {"side": "candidate", "case": "sum-17", "stands_in": "answer", "n_tokens": 24}, 31, 31
    ),
    "Another request's prompt, decoded beside it": lambda: read_leak(
        {"side": "baseline", "case": "sum-17", "stands_in": "prompt", "n_tokens": 12}, 31, 31
    ),
    "Another request's continuation, and nothing beside it has it": lambda: read_leak(None, 31, 1),
    "Another request's continuation, of a log and of one decoded alone": lambda: read_leak(None, None, 0),
    "Nothing in common from the first token on": lambda: read_cause(leaked(0), text="x"),
    "A steady bucket gave other bits": lambda: read_cause(nudged(1e-5), noise=ZERO_NOISE),
    "A steady bucket gave another token, and other bits at it alone": lambda: read_cause(
        tied(), noise=ZERO_NOISE, text="x"
    ),
    "Two draws at a near tie": lambda: read_cause(tied(), base=replace(SIDE, temperature=0.7), text="x"),
    "Answers that part early, and no prompt is known": lambda: read_cause(
        tied(0.3, n_before=4), base=UNKNOWN_PROMPT, text="x"
    ),
    "Another backend, at a near tie": lambda: read_cause(tied(), text="The dog.", fingerprint="f2" * 32),
    "Another node by name": lambda: read_cause(drawn_once(), text="The dog.", backend="node-2"),
    "Another name of the model": lambda: read_cause(shifted(), text="The dog.", model_name="lab/paint-2b"),
    "Nothing but white space": lambda: read_cause(drawn_once(), text="The cat  sat.\n"),
    "White space that costs the score": lambda: read_cause(drawn_once(), text="The cat  sat.\n", score=0.0),
    "JSON written in another way": lambda: read_cause(
        drawn_once(), base=replace(SIDE, text='{"a": 1, "b": 2}'), text='{"b":2,"a":1}'
    ),
    "Cut at another token limit": lambda: read_cause(
        ended(), base=LONG, text="A long", finish_reason="length", max_tokens=40
    ),
    "Cut by a stop text": lambda: read_cause(ended(), base=LONG, text="A long", stop=("\n",)),
    "The provider filtered one side's answer": lambda: read_cause(
        drawn_once(), text="", ending="filtered", finish_reason="content_filter"
    ),
    "The model refused on one side": lambda: read_cause(drawn_once(), text="I will not.", ending="refused"),
    "One side's answer is empty": lambda: read_cause(drawn_once(), text="", ending="empty"),
    "One side was cut after the texts had parted": lambda: read_cause(
        drawn_once(), text="The dog", ending="cut", finish_reason="length"
    ),
    "A token that was not the most likely": lambda: read_cause(drawn_once(), text="The dog."),
    "Logprobs moved a little": lambda: read_cause(nudged(0.01)),
    "Logprobs moved further than noise": lambda: read_cause(nudged(0.9)),
    "One position of 120 moved by 2 nats": lambda: read_cause(
        spiked(), noise=choose_larger_noise((0.2, "bfloat16"), (0.2, "bfloat16"))
    ),
    "A near tie, noise assumed": lambda: read_cause(tied(), text="The dog."),
    "A near tie, noise measured": lambda: read_cause(tied(0.005), noise=MEASURED, text="The dog."),
    "An exact tie": lambda: read_cause(tied(0.0), text="The dog."),
    "A near tie at the first token": lambda: read_cause(tied(n_before=0), text="The dog."),
    "Logits moved further than noise, all along": lambda: read_cause(shifted(), text="The dog."),
    "Logits moved further than noise, at the flip alone": lambda: read_cause(
        tied(0.3), noise=MEASURED, text="The dog."
    ),
    "A near tie inside the thinking": lambda: read_cause(
        tied(0.005), base=replace(SIDE, n_reasoning_tokens=2000), text="The dog.", n_reasoning_tokens=1740
    ),
    "White space after another thinking": lambda: read_cause(
        drawn_once(), base=replace(SIDE, n_reasoning_tokens=2000), text="The cat  sat.", n_reasoning_tokens=2000
    ),
    "The prompt is what is judged, and it changed": lambda: read_cause(
        find_text_divergence("The cat sat.", "The dog."),
        base=replace(SIDE, n_prompt_tokens=31),
        has_other_prompt=True,
        text="The dog.",
        n_prompt_tokens=58,
    ),
    "The prompt is what is judged, and the model changed too": lambda: read_cause(
        find_text_divergence("The cat sat.", "The dog."),
        has_other_prompt=True,
        text="The dog.",
        weights_digest="2" * 64,
    ),
    "The prompt is what is judged, and this case's did not change": lambda: read_cause(
        find_text_divergence("The cat sat.", "The dog."), has_other_prompt=False, text="The dog."
    ),
    "Texts alone": lambda: read_cause(find_text_divergence("The cat sat.", "The dog."), text="The dog."),
    "Same tokens, another text": lambda: read_cause(None, text="The cat sat. And"),
    "An end that no limit explains": lambda: read_cause(ended(), base=LONG, text="A long"),
    "A token that was not the most likely, at an unknown temperature": lambda: read_cause(
        drawn_once(), base=replace(SIDE, temperature=None), text="The dog."
    ),
    "A warm sampler": lambda: read_cause(drawn_once(), base=replace(SIDE, temperature=0.7), text="The dog."),
    "A token that the other side does not list": lambda: read_cause(
        find_divergence(
            make_trace([1], [-1.0], [[(1, -1.0), (2, -1.0)]]), make_trace([3], [-1.0], [[(3, -1.0), (1, -1.0)]])
        ),
        text="x",
    ),
    "Noise measured": lambda: read_noise(sd=0.0213, near=0.0639, is_assumed=False, dtype="bfloat16"),
    "Noise measured, and more than noise does": lambda: read_noise(
        sd=0.27, near=0.891, is_assumed=False, dtype="", capped_from=0.412
    ),
    "Noise assumed": lambda: read_noise(sd=ASSUMED.sd, near=ASSUMED.near, is_assumed=True, dtype=ASSUMED.dtype),
    "No noise": lambda: read_noise(sd=0.0, near=0.0, is_assumed=False, dtype=""),
    "Some cases moved further than noise": lambda: [Sentence("larger shifts", "", count_larger_shifts(48, 800, 12))],
    "One case moved further than noise": lambda: [Sentence("larger shifts", "", count_larger_shifts(1, 1, 1))],
}
