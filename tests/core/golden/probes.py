"""What a probe says of an endpoint: seeds, batches, routing, canaries, capabilities; two of them; and a gateway."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bench.simulated_probes import BETWEEN_RUNS, QUIET, batch_calls, canary_runs, seed_calls
from evalboard.core.probes import (
    ProbeExchange,
    ProbeResult,
    compare_batch_probes,
    judge_audit_probe,
    judge_batch_probe,
    judge_border_probe,
    judge_canary_probe,
    judge_capability_probe,
    judge_determinism_probe,
    judge_routing_probe,
    judge_seed_probe,
    judge_vendor_facts,
    judge_vendor_probe,
)
from evalboard.wording.capability import describe_parameter
from evalboard.wording.hop import HopSide, describe_hop
from evalboard.wording.vendors import describe_vendor_row
from tests.capability import EVERYTHING, answer_calls
from tests.core.golden.readers import Sentence, Situations, read_batch_comparison, read_probe
from tests.core.test_audit_probe import BLUE
from tests.core.test_audit_probe import calls as audited
from tests.core.test_batch_probe import copies
from tests.core.test_canary_probe import Runs, runs_of
from tests.core.test_determinism_probe import answered, drifting, flipping, same
from tests.core.test_determinism_probe import parameters as conditions
from tests.core.test_routing_probe import STACKS, A, B, calls
from tests.core.test_seed_probe import as_greedy, calls_of
from tests.vendors import PARAMETERS as VENDOR_PARAMETERS
from tests.vendors import vendor_calls

CONDITIONS = conditions()
TEA = calls_of([["a sea of tea"] * 5] * 5, [["a sea of tea"] * 5] * 5)


def read_seed(asked: list[ProbeExchange]) -> list[Sentence]:
    return read_probe("seed", judge_seed_probe(asked))


def seeds(seed: int, *, n_failed: int = 0, **how: float) -> list[ProbeExchange]:
    asked = seed_calls(np.random.default_rng(seed), **how)  # type: ignore[arg-type]
    return [replace(call, token_ids=(), error="The engine is gone.") for call in asked[:n_failed]] + asked[n_failed:]


def dropped_by_one_bucket() -> list[ProbeExchange]:
    rng = np.random.default_rng(3)
    loyal = [replace(call, bucket=1) for call in seed_calls(rng, noise=QUIET)]
    dropping = iter(seed_calls(rng, dropped=1.0))
    return [replace(next(dropping), bucket=2) if index % 5 in (0, 2) else call for index, call in enumerate(loyal)]


def read_batch(asked: list[ProbeExchange]) -> list[Sentence]:
    return read_probe("batch", judge_batch_probe(asked))


def read_two_batches(one: list[ProbeExchange], other: list[ProbeExchange]) -> list[Sentence]:
    return read_batch_comparison(compare_batch_probes(one, other))


def batches(seed: int, *, share: float, moved: int = 0) -> list[ProbeExchange]:
    return batch_calls(np.random.default_rng(seed), share=share, moved=moved)


def read_routing(asked: list[ProbeExchange], last: str | None = None) -> list[Sentence]:
    finding = judge_routing_probe(asked, last_fingerprint=last)
    return read_probe("routing", replace(finding, numbers={**finding.numbers, "stacks": STACKS}))


def read_audit(now: list[ProbeExchange], earlier: list[ProbeExchange] | None = None) -> list[Sentence]:
    return read_probe("audit", judge_audit_probe(now, earlier or []))


def read_determinism(*asked: list[ProbeExchange]) -> list[Sentence]:
    finding = judge_determinism_probe([call for calls in asked for call in calls], parameters=CONDITIONS)
    covers = {"model": "smollm2-135m", "dtype": "float32", "quantization": None, "n_devices": 1}
    return read_probe("determinism", replace(finding, numbers={**finding.numbers, "covers": covers}))


def read_canary(runs: Runs) -> list[Sentence]:
    *earlier, now = runs
    return read_probe("canary", judge_canary_probe(now, earlier))


def canaries(**how: float) -> Runs:
    return canary_runs(np.random.default_rng(1), **how)  # type: ignore[arg-type]


def named(*backends: str) -> list[ProbeExchange]:
    """Answers of a server of others that say who gave them; "" where one does not."""
    return [
        ProbeExchange(prompt=0, group="ask", round=index, worker=1, text="Tuesday", is_remote=True, backend=backend)
        for index, backend in enumerate(backends)
    ]


def read_capability(asked: list[ProbeExchange]) -> list[Sentence]:
    """The finding's sentence, and what each row of the table says."""
    finding = judge_capability_probe(asked)
    rows = [
        Sentence(row["parameter"], row["state"], describe_parameter(row)) for row in finding.numbers.get("rows", ())
    ]
    return [*read_probe("capability", finding), *rows]


def read_border(*shares: float, search: bool = False, error: str = "") -> list[Sentence]:
    """Watches of 20 prompts, oldest first: the share of each one's first word; or a search with that of its prompts.

    error: of each call.
    """
    parameters = {"prompts": ["p"] * 20, "search": search, "calls": 10, "random_seed": 0, "n_prompts": 20}
    *earlier, now = [
        [
            ProbeExchange(
                prompt=prompt, group="ask", text="tea" if place < 10 * share else "coffee", is_remote=True, error=error
            )
            for prompt in range(20)
            for place in range(10)
        ]
        for share in shares
    ]
    known: list[Any] = []
    for watch in earlier:
        known.append(judge_border_probe(watch, known, parameters=parameters).numbers)
    return read_probe("border", judge_border_probe(now, known, parameters=parameters))


def read_vendor(change: Callable[[ProbeExchange], ProbeExchange] = lambda call: call) -> list[Sentence]:
    """The finding's sentence, and what each row of the card says next to an honest reference."""
    finding = judge_vendor_probe(vendor_calls(change), parameters=VENDOR_PARAMETERS)
    if finding.state == "incomplete":
        return read_probe("vendor", finding)
    reference = judge_vendor_probe(vendor_calls(), parameters=VENDOR_PARAMETERS).numbers["facts"]
    rows = judge_vendor_facts(finding.numbers["facts"], reference)
    said = [Sentence(row["row"], row["state"], describe_vendor_row(row)) for row in rows]
    return [*read_probe("vendor", finding), *said]


def with_other_texts(call: ProbeExchange) -> ProbeExchange:
    """Cut long prompts, stream other texts and answer as another model does, with logprobs."""
    if call.group == "long":
        return replace(call, text="unknown", n_prompt_tokens=2000)
    return replace(call, text=f"another {call.text}{' ' if call.group == 'stream' else ''}")


def with_every_fault(call: ProbeExchange) -> ProbeExchange:
    """Break what each row of the card looks at."""
    broken = replace(call, tool_calls=(), n_prompt_tokens=3 * call.prompt % 7 + 5, finish_reason="odd")
    broken = replace(broken, text=f"{call.group} {call.prompt}", system_fingerprint=f"fp-{call.prompt % 2}")
    return replace(broken, model=f"paint-{call.prompt % 2}b")


def without_answer(call: ProbeExchange) -> ProbeExchange:
    return replace(call, error="call_failed: no route to it")


def with_tools_refused(call: ProbeExchange) -> ProbeExchange:
    is_refused = call.group in ("tool", "named", "none")
    return replace(call, error="call_refused: It answered 400: no tools here.") if is_refused else call


def with_a_bad_call(call: ProbeExchange) -> ProbeExchange:
    is_bad = call.group == "tool" and call.prompt % 20 == 7
    return replace(call, tool_calls=(("book_table", "{}"),)) if is_bad else call


def read_hop(kind: str, direct: ProbeResult, gateway: ProbeResult) -> list[Sentence]:
    sides = [
        HopSide(slug, finding.state, finding.numbers) for slug, finding in (("vllm-a", direct), ("litellm", gateway))
    ]
    return [Sentence("hop", "", describe_hop(kind, *sides))]


def read_hop_of_states(kind: str, direct: str, gateway: str) -> list[Sentence]:
    return read_hop(kind, ProbeResult(direct), ProbeResult(gateway))


def capability(**how: Any) -> ProbeResult:
    return judge_capability_probe(answer_calls(**how))


def shifted(one: str, other: str) -> list[ProbeExchange]:
    """A check whose two calls with one seed part, and later than the third."""
    texts = {"same": [one, other], "different": ["a bee"]}
    return [
        replace(call, text=texts[call.group].pop()) if call.group in texts else call
        for call in answer_calls(honours=EVERYTHING - {"token_ids"})
    ]


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
        [*calls(1, A, A), ProbeExchange(prompt=0, group="ask", worker=2, error="The worker went away.")]
    ),
    "The stack was rotated": lambda: read_routing(calls(1, A, A), B),
    "Two stacks": lambda: read_routing([*calls(1, A, A, A), *calls(2, A, B, B, B, B)]),
    "Six stacks, and answers that name none": lambda: read_routing(
        calls(1, *(letter * 64 for letter in "abcdef"), "", "")
    ),
    "Answers that name no stack": lambda: read_routing([*calls(1, A, A), *calls(2, "", "")]),
    # Determinism.
    "The same bits under every condition": lambda: read_determinism(answered(CONDITIONS, same)),
    "Bits that move from four in a step on": lambda: read_determinism(answered(CONDITIONS, drifting)),
    "Answers that move beside long prompts, on one of two workers": lambda: read_determinism(
        answered(CONDITIONS, same), answered(CONDITIONS, flipping, worker=2)
    ),
    "No prompt was decoded under every condition": lambda: read_probe(
        "determinism", judge_determinism_probe(answered(CONDITIONS, same)[:4], parameters=CONDITIONS)
    ),
    # Audit.
    "Two workers give the same bits, as before": lambda: read_audit(
        [*audited(1, *BLUE), *audited(2, *BLUE)], audited(1, *BLUE)
    ),
    "One worker of three gives another token": lambda: read_audit(
        [*audited(1, *BLUE), *audited(2, "blew", "blue"), *audited(3, *BLUE)]
    ),
    "A worker gives other logprobs than before": lambda: read_audit(
        audited(1, *BLUE, trace="bb", logprob=-0.7), audited(1, *BLUE)
    ),
    "Two stacks give unlike answers": lambda: read_audit([*audited(1, *BLUE), *audited(2, "blue", "blew", bucket=2)]),
    "The first audit of one worker": lambda: read_audit(audited(1, *BLUE)),
    "An audit without an answer": lambda: read_audit([]),
    # Failures.
    "Every call failed": lambda: read_routing([ProbeExchange(prompt=0, group="ask", worker=1, error="Gone.")] * 3),
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
    # A server of others.
    "Sixty answers that name one backend": lambda: read_routing(named(*["vllm-a"] * 60)),
    "Sixty answers that name two backends": lambda: read_routing(named(*["vllm-a"] * 56, *["vllm-b"] * 4)),
    "Another backend than in the last probe": lambda: read_routing(named(*["vllm-b"] * 60), "vllm-a"),
    "Answers that name no backend": lambda: read_routing(named(*[""] * 60)),
    "Two backends, and answers that name none": lambda: read_routing(named("vllm-a", "vllm-b", "", "")),
    "Answers of a cache": lambda: read_routing(
        [*named(*["vllm-a"] * 40), *(replace(call, marks=("cached",)) for call in named(*["vllm-a"] * 20))]
    ),
    "Copies that a server of others decoded": lambda: read_batch(
        [replace(call, is_remote=True, batch_max=None) for call in copies(*["abc"] * 50)]
    ),
    "A server that honours everything": lambda: read_capability(answer_calls()),
    "A server that ignores all that it can": lambda: read_capability(answer_calls(honours={"usage"})),
    "A server that drops the seed": lambda: read_capability(answer_calls(honours=EVERYTHING - {"seed"})),
    "A server that knows OpenAI's parameters alone": lambda: read_capability(
        answer_calls(
            honours=EVERYTHING - {"token_ids"},
            largest=5,
            refuses={
                name: f"Unknown parameter: '{name}'."
                for name in ("top_k", "min_p", "repetition_penalty", "min_tokens", "ignore_eos")
            },
        )
    ),
    "A server that ignores the temperature and samples": lambda: read_capability(
        answer_calls(honours=EVERYTHING - {"temperature"}, samples=True)
    ),
    "A model that takes no temperature": lambda: read_capability(
        answer_calls(refuses={"temperature": "Unsupported value: 'temperature' does not support 0 with this model."})
    ),
    "Two calls with one seed part late": lambda: read_capability(shifted("a sea of tea", "a sea of salt")),
    "A check that most calls of failed": lambda: read_capability(
        [replace(call, text="", error="call_failed: no route to it") for call in answer_calls()]
    ),
    # Border.
    "A search that found split prompts": lambda: read_border(0.5, search=True),
    "A search without a split prompt": lambda: read_border(1.0, search=True),
    "A watch whose calls failed": lambda: read_border(0.5, error="call_failed: no route to it"),
    "The first watch": lambda: read_border(0.5),
    "Six watches alike": lambda: read_border(*[0.5] * 6),
    "The newest watch is split otherwise": lambda: read_border(*[0.5] * 6, 1.0),
    "An honest vendor": read_vendor,
    "A vendor with faults in most rows": lambda: read_vendor(with_every_fault),
    "A vendor that cuts prompts, streams other texts and answers as another model": lambda: read_vendor(
        with_other_texts
    ),
    "A vendor that refuses tools": lambda: read_vendor(with_tools_refused),
    "A vendor with one bad tool call": lambda: read_vendor(with_a_bad_call),
    "A vendor that answers no call": lambda: read_vendor(without_answer),
    "The gateway drops the seed": lambda: read_hop_of_states("seed", "honoured", "ignored"),
    "The gateway drops the seed at times": lambda: read_hop_of_states("seed", "honoured", "partly_honoured"),
    "The gateway answers all seeds alike": lambda: read_hop_of_states("seed", "honoured", "deterministic"),
    "The seed is honoured on both ways": lambda: read_hop_of_states("seed", "honoured", "honoured"),
    "The seed is ignored on both ways": lambda: read_hop_of_states("seed", "ignored", "ignored"),
    "The gateway drops the temperature": lambda: read_hop_of_states("seed", "honoured", "greedy"),
    "The seed gets lost in two ways": lambda: read_hop_of_states("seed", "ignored", "deterministic"),
    "The seed is honoured through the gateway alone": lambda: read_hop_of_states("seed", "ignored", "honoured"),
    "The seed is too noisy on one way": lambda: read_hop_of_states("seed", "too_noisy", "ignored"),
    "One of the two has too few answers": lambda: read_hop_of_states("seed", "honoured", "incomplete"),
    "The gateway moves answers": lambda: read_hop_of_states("batch", "invariant", "variant"),
    "The gateway spreads the calls": lambda: read_hop_of_states("routing", "one", "several"),
    "The gateway sends the calls elsewhere": lambda: read_hop_of_states("routing", "one", "rotated"),
    "The gateway changed": lambda: read_hop_of_states("canary", "stable", "changed"),
    "A part of what the gateway sends changed": lambda: read_hop_of_states("canary", "stable", "partly_changed"),
    "The gateway drops two parameters and refuses one": lambda: read_hop(
        "capability",
        capability(),
        capability(honours=EVERYTHING - {"seed", "top_k"}, refuses={"min_p": "Unknown parameter: 'min_p'."}),
    ),
    "The gateway drops one parameter": lambda: read_hop(
        "capability", capability(), capability(honours=EVERYTHING - {"seed"})
    ),
    "The gateway refuses a parameter": lambda: read_hop(
        "capability", capability(), capability(refuses={"min_p": "Unknown parameter: 'min_p'."})
    ),
    "The gateway drops nothing": lambda: read_hop("capability", capability(), capability()),
    "A canary without logprobs": lambda: read_canary([[ProbeExchange(prompt=0, group="ask", token_ids=(1,))]] * 12),
}
