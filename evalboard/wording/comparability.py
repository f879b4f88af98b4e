"""Sentences for why two sides cannot be compared, one for each code of `core.compare.BLOCK_ORDER`.

The docstring of a block that only warns is its text in the table of docs/releases.md.
"""

from collections.abc import Callable, Mapping
from typing import Any

from evalboard.contract.manifest import MovedField
from evalboard.wording.manifest import render_moved, render_sides
from evalboard.wording.numbers import counted, listed, nats_rounded, percent
from evalboard.wording.probe_states import STATES

Facts = Mapping[str, Any]

SCORE_AGAIN = "Score the baseline again with the candidate's scorer."
SAY_WHO_SERVES = (
    "Record what serves the responses, or use an endpoint that says it; else run both sides in turn, judged by a "
    "paired policy within its window."
)
MOVED_CANARIES = frozenset({"changed", "partly_changed", "drift"})


def explain_block(code: str, facts: Facts) -> str:
    """Say what differs, with both values, and what to do. facts: those of `core.compare.Block`."""
    return BLOCKS[code](facts)


def _prompts_unknown(facts: Facts) -> str:
    sides = " and ".join(facts["sides"])
    return (
        f"The log of the {sides} does not hold the prompts, so equal case ids may be other questions. Import the "
        "requests of the log as well, or import it with --suite and the suite that was asked."
    )


def _suite_changed(facts: Facts) -> str:
    text = f"The suite changed: {_against(facts)}."
    return f"{text} Only cases with the same id and content are paired. Run the baseline again with today's suite."


def _scorer_changed(facts: Facts) -> str:
    return f"The scorer changed ({_moved(facts)}). {SCORE_AGAIN}"


def _params_changed(facts: Facts) -> str:
    if facts["moved"][0]["field"] == "chat_template":
        text = f"{_template_differs(facts)} while the weights are the same"
        return f"{text}: the two sides were asked different things."
    return f"The runs were sampled differently: {_moved(facts)}. Run the baseline again with today's settings."


def _mixed_fingerprint(facts: Facts) -> str:
    side = facts["side"]
    shares = listed([_share(served) for served in facts["served"]])
    moved = _moved(facts) or "the model that was served"
    text = f"{len(facts['served'])} buckets served the {side}: {shares} of its responses. They differ in {moved}."
    how = "on one backend"
    if [each["field"] for each in facts["moved"]] == ["batch_class"]:
        how = "under a profile that keeps to one batch class"
    return f"{text} One score would mix them: look at one bucket alone, or run the {side} again {how}."


def _share(served: Facts) -> str:
    share = percent(served["share"], 0 if served["share"] >= 0.02 else 1)
    fingerprint = served.get("shown", served["fingerprint"])  # comparisons of before have the one that was compared
    return f"{fingerprint[:8] or 'an unknown stack'} ({served['batch_class']}) {share}"


def _model_changed(facts: Facts) -> str:
    text = f"The release judges what serves a model, and the models differ: {_against(facts)}."
    more = ", or say in the settings that these are two names of one" if facts["is_named"] else ""
    return f"{text} Run one model on both stacks{more}."


def _rebaseline(facts: Facts) -> str:
    text = f"The same model was served by another stack ({_moved(facts)})"
    moved = {each["field"] for each in facts["moved"] if None not in (each["baseline"], each["candidate"])}
    if any(field.endswith("_code") and field.removesuffix("_code") not in moved for field in moved):
        text = f"{text}. The versions are the same and the engine code differs"
    more = "To judge a model, run the baseline again on today's stack."
    return f"{text}, so the change may be the stack's and not the model's. {more}"


def _batch_class(facts: Facts) -> str:
    if facts.get("is_stack_judged"):
        text = "To judge what serves a model, both sides must be decoded alone or batch-invariant; here it was"
        return f"{text} {_against(facts)}. Run both under such a profile."
    return f"The responses were batched differently: {_against(facts)}. Run both sides under one profile."


def _stack_changed(facts: Facts) -> str:
    text = f"Model and serving stack both changed ({_moved(facts)}), so nobody can say which of them made the"
    return f"{text} difference. Run both models on one stack."


def _computation_apart(facts: Facts) -> str:
    cases = f"{facts['n_apart']:,} of {counted(facts['n_cases'], 'case')}"
    how = f"repeats of either side agree to the bit, and the sides differ in {cases}"
    if not facts["is_steady"]:
        how = f"their logprobs lie {nats_rounded(facts['shift'])} further apart than repeats of one side do"
    text = f"One bucket answered both sides, and they are two computations: {how}."
    return f"{text} No fingerprint shows what changed, so the difference may not be the model's."


def _unknown_stack(facts: Facts) -> str:
    who = " and the ".join(facts["sides"])
    text = f"What served the {who} is not known, so nobody can say that both were served alike."
    return f"{text} {SAY_WHO_SERVES}"


def _template_changed(facts: Facts) -> str:
    """the chat template came with other weights"""
    return f"{_template_differs(facts)}, as the weights do."


def _stack_judged(facts: Facts) -> str:
    """the release judges the serving stack: what changed in it"""
    return f"What is judged is what serves the model, not the model: {_moved(facts)}."


def _stack_unchanged(_: Facts) -> str:
    """the release judges the serving stack, and nothing in it changed"""
    return "The release judges what serves the model, and both sides were served alike: any change is noise."


def _service_judged(facts: Facts) -> str:
    """the release judges model and stack together: what differs"""
    text = f"What is judged is what answers under each name, model and stack together: {_moved(facts)}."
    return f"{text} Which of the two makes a difference cannot be told."


def _service_unchanged(_: Facts) -> str:
    """the release judges model and stack together, and nothing differs"""
    return "The release judges what answers under each name, and both sides are one service: any change is noise."


def _identity_assumed(facts: Facts) -> str:
    """the stack is unknown; both sides were interleaved within the window and are assumed to share it.

    Includes what the canaries found
    """
    # canaries: {"endpoint", "state"} each.
    who = " and the ".join(facts["sides"])
    text = f"What served the {who} is not known. Both sides took turns within {_hours(facts['hours'])}"
    text = f"{text}, and it is assumed that nothing changed meanwhile."
    if not facts["canaries"]:
        return f"{text} No canary was run in that time."
    canaries = [f"{each['endpoint']} {STATES['canary'][each['state']].word.lower()}" for each in facts["canaries"]]
    doubt = ""
    if any(each["state"] in MOVED_CANARIES for each in facts["canaries"]):
        doubt = " A canary that changed speaks against it: find out what changed before you sign."
    return f"{text} Canaries in that time: {'; '.join(canaries)}.{doubt}"


def _hours(hours: float) -> str:
    return counted(max(round(hours * 60), 1), "minute") if hours < 2 else f"{hours:.0f} hours"


def _stack_reported(facts: Facts) -> str:
    """both sides name the same stack, but that is self-reported: the name"""
    text = f"What served is known only as it was reported ({' and '.join(facts['stacks'])})"
    return f"{text}: a change that does not show in it would not be seen."


def _other_model(facts: Facts) -> str:
    """answers of a side name another model than requested: which, and how many. The reported name counts"""
    request = f"The {facts['side']} asked for {facts['asked']}"
    return f"{request}; {listed(facts['answered'])} answered {facts['n']:,} of {facts['total']:,}."


BLOCKS: dict[str, Callable[[Facts], str]] = {
    "prompts_unknown": _prompts_unknown,
    "suite_changed": _suite_changed,
    "scorer_changed": _scorer_changed,
    "params_changed": _params_changed,
    "mixed_fingerprint": _mixed_fingerprint,
    "model_changed": _model_changed,
    "rebaseline": _rebaseline,
    "batch_class": _batch_class,
    "stack_changed": _stack_changed,
    "computation_apart": _computation_apart,
    "unknown_stack": _unknown_stack,
    "template_changed": _template_changed,
    "stack_judged": _stack_judged,
    "stack_unchanged": _stack_unchanged,
    "service_judged": _service_judged,
    "service_unchanged": _service_unchanged,
    "identity_assumed": _identity_assumed,
    "stack_reported": _stack_reported,
    "other_model": _other_model,
}


def _moved(facts: Facts) -> str:
    return render_moved([MovedField(**each) for each in facts["moved"]])


def _against(facts: Facts) -> str:
    [moved] = facts["moved"]
    return f"{moved['baseline']} against {moved['candidate']}"


def _template_differs(facts: Facts) -> str:
    [moved] = facts["moved"]
    return f"The chat template differs ({' against '.join(render_sides(MovedField(**moved)))})"
