"""Sentences for why two sides cannot be compared, one for each code of `core.compare.BLOCK_ORDER`.

The docstring of a block that only warns is its text in the table of docs/releases.md.
"""

from collections.abc import Mapping
from typing import Any

from evalboard.contract.manifest import MovedField
from evalboard.contract.treatments import BY_ID
from evalboard.core.profile import OBSERVED
from evalboard.wording.manifest import ARROW, name_batching, render_batching, render_moved, render_sides
from evalboard.wording.messages import Messages, write
from evalboard.wording.numbers import change_and_interval, counted, listed, percent, signed
from evalboard.wording.probe_states import STATES

Facts = Mapping[str, Any]

SCORE_AGAIN = "Score the baseline again with the candidate's scorer."
SCORES_AWAITED = "Wait until a worker has scored the baseline with the candidate's scorer."
SAY_WHO_SERVES = (
    "Use an endpoint or a log that reports its serving stack. Or run both sides, alternating, under a paired policy."
)
SAME_STACK = "Run the baseline again on the candidate's stack"
MOVED_CANARIES = frozenset({"changed", "partly_changed", "drift"})


def explain_block(code: str, facts: Facts) -> str:
    """Say what differs, with both values, and what to do. facts: those of `core.compare.Block`."""
    return BLOCKS.write(code, facts)


def explain_unpaired(prompts: Facts) -> str:
    """Say why no case of two sides is paired. prompts: the counts of `core.compare.PromptPairs`."""
    n = prompts["n_alone_baseline"]
    if prompts["n_other_target"]:
        what = "id" if prompts["pair_by"] == BY_ID else "input"
        return f"{counted(prompts['n_other_target'], 'case')} of {n:,} have the same {what} and another target."
    if prompts["n_repeated"]:
        return f"{counted(prompts['n_repeated'], 'case')} of {n:,} share an input with others, and their ids differ."
    if prompts["pair_by"] == BY_ID:
        return "no id is on both sides."
    return "no input is on both sides. Where equal ids are equal questions, pair them by id: --pair-by id."


def write_prompts(prompts: Facts) -> str:
    """Say in how many cases the prompt changed alike. prompts: as a comparison's summary has them."""
    n_changed, n_read, n = prompts["n_changed"], prompts["n_read"], prompts["n_changes"]
    if not n_changed:
        return PROMPTS.write("same", where=_all_cases(prompts["n_pairs"]))
    if n == 1:
        whole = n_read == n_changed == prompts["n_pairs"]
        where = _all_cases(n_read) if whole else f"the {counted(n_changed, 'case')} where it changed"
        if n_read < n_changed:
            where = f"the {n_read:,} cases compared. It changed in {n_changed:,} cases"
        return PROMPTS.write("one_way", where=where)
    return PROMPTS.write("several_ways", n=n, most=prompts["changes"][0]["n_cases"], n_read=n_read)


PROMPTS = Messages(
    "prompts",
    {
        ("prompt", "denies"): {"same": "The prompt is the same in {where}."},
        ("prompt", "asserts"): {
            "one_way": "The prompt changed in the same way in {where}.",
            "several_ways": "The prompt changed in {n:,} ways. The most frequent is in {most:,} of "
            "{n_read:case} compared.",
        },
    },
)


def _suite_changed(facts: Facts) -> str:
    """Say how many cases are the same. n_shared, n_cases: not there in verdicts of before."""
    are_logged = facts.get("are_logged")
    changed = "The cases differ." if are_logged else f"The suite changed: {_from_to(facts)}."
    if "n_shared" in facts and [facts["n_shared"]] * 2 == facts["n_cases"]:
        same = f"{_all_cases(facts['n_shared']).capitalize()} are the same, but their order, tags or limits differ."
        return same if are_logged else f"{changed} {same}"
    shared = "Only cases with the same id and content are paired."
    if "n_shared" in facts:
        shared = write(
            "{n:case} {n:is|are} compared: {n:it is|they are} the same on both sides ({ours:,} cases in the baseline, "
            "{theirs:,} in the candidate).",
            n=facts["n_shared"],
            ours=facts["n_cases"][0],
            theirs=facts["n_cases"][1],
        )
    again = "Run both sides on the same cases." if are_logged else "Run the baseline again with today's suite."
    return f"{changed} {shared} {again}"


def _scorer_changed(facts: Facts) -> str:
    return f"The scorer changed ({_moved(facts)}). {SCORES_AWAITED if facts.get('is_awaited') else SCORE_AGAIN}"


def _scorer_shared(facts: Facts) -> str:
    """the suite's scorer changed, and the candidate's judges both sides: how far it moved the baseline"""
    text = f"The suite's scorer changed ({_moved(facts)}). The candidate's scorer judges both sides."
    if not facts["n_cases"]:
        return f"{text} It moves no score of the baseline."
    where = counted(facts["n_cases"], "case")
    if facts["points"] is None:
        return f"{text} It moves the baseline's score of {where}."
    return (
        f"{text} It moves the baseline's score by {signed(facts['points'])} points over {where}. The change "
        "shown leaves these points out."
    )


def _judged_again(facts: Facts) -> str:
    """a side was judged again, and its newest judging counts: how far that moved it"""
    text = f"The {facts['side']} was judged again, and the newest judging counts."
    if not facts["n_cases"]:
        return f"{text} It moves no score."
    where = counted(facts["n_cases"], "case")
    if facts["points"] is None:
        return f"{text} It moves the score of {where}."
    return f"{text} It moves the score by {signed(facts['points'])} points over {where}."


def judge_again(facts: Facts) -> str:
    """Say which side the judge is to score again: the one that it scored first."""
    side = facts.get("side") or facts["sides"][0]
    return f"Let the judge, as it is now, score the {side} again"


def _judge_changed(facts: Facts) -> str:
    """Say who answered as the judge, and what the anchors show. They may not be there, or not tell."""
    again = f"{judge_again(facts)}."
    other = f"Another model or stack answered as the judge ({_from_to(facts).strip()}). " if facts["moved"] else ""
    if facts["has_moved"]:
        return (
            f"{other}The judge “{facts['judge']}” moved: its scores of {_anchors(facts)} changed by {_shifted(facts)}. "
            f"About as many points of the difference come from the judge. {again}"
        )
    if "points" not in facts:
        return f"{other}No fixed answers show whether it scores alike. {again}"
    return f"{other}Scores of {_anchors(facts)} changed by {_shifted(facts)}, which may be noise. {again}"


def _judge_rebuilt(facts: Facts) -> str:
    """the judge's server reports another build, and its anchors exclude a shift of 5 points"""
    return (
        f"The judge's server reports another build ({_from_to(facts).strip()}). Scores of {_anchors(facts)} changed by "
        f"{_shifted(facts)}, so a shift of 5 points is excluded."
    )


def _judge_unchecked(facts: Facts) -> str:
    """only a server says that the judge is the same, or several buckets judged; no anchors tell"""
    text = f"Nothing attests that the judge {facts['judge']} is the same"
    if "points" not in facts:
        return f"{text}, and no fixed answers were judged with both runs. A silent change would be missed."
    return f"{text}. Scores of {_anchors(facts)} changed by {_shifted(facts)}, which does not exclude 5 points."


def _anchors(facts: Facts) -> str:
    return counted(facts["n_anchors"], "fixed answer")


def _shifted(facts: Facts) -> str:
    return " points ".join(change_and_interval(facts["points"], facts["low"], facts["high"]))


def _params_changed(facts: Facts) -> str:
    if facts["moved"][0]["field"] == "chat_template":
        return f"{_template_differs(facts)} but the weights are the same. The two sides got different prompts."
    return f"The sampling settings differ: {_moved(facts)}. Run the baseline again with today's settings."


def _mixed_fingerprint(facts: Facts) -> str:
    how = "on one backend"
    if [each["field"] for each in facts["moved"]] == ["batch_class"]:
        how = "under a profile with one batch class"
    return write(
        "{n} buckets answered for the {side}: {shares}. They differ in: {moved}. Look at one bucket, or run the {side} "
        "again {how}.",
        n=len(facts["served"]),
        side=facts["side"],
        shares=listed([_share(served) for served in facts["served"]]),
        moved=_moved(facts) or "the model",
        how=how,
    )


def _share(served: Facts) -> str:
    share = percent(served["share"], 0 if served["share"] >= 0.02 else 1)
    return f"backend {served['backend']} ({name_batching(served['batch_class'])}) {share}"


def _model_changed(facts: Facts) -> str:
    if facts.get("is_prompt_judged"):
        return f"The models differ, but the prompt is judged: {_from_to(facts)}. Run one model with both prompts."
    more = " Or declare in the settings that both names are one model." if facts["is_named"] else ""
    return f"The models differ, but the serving stack is judged: {_from_to(facts)}. Run one model on both stacks.{more}"


def _rebaseline(facts: Facts) -> str:
    text = f"Both sides served the same model on different stacks ({_moved(facts)})."
    moved = {each["field"] for each in facts["moved"] if None not in (each["baseline"], each["candidate"])}
    if any(field.endswith("_code") and field.removesuffix("_code") not in moved for field in moved):
        text = f"{text} The versions are the same and the engine code differs."
    if facts.get("is_prompt_judged"):
        return f"{text} The change may come from the stack, not from the prompt. Run both prompts on one stack."
    more = "To judge the stack, make the release with --treatment stack. To judge a new model, run that model, and the"
    return f"{text} So a change says nothing about a model. {more} baseline again, on today's stack."


def _batch_class(facts: Facts) -> str:
    text = f"{_batching(facts)} {batch_alike(facts)}"
    if facts.get("is_stack_judged"):
        return f"To judge a stack, batches must not change answers. {text}"
    return text


def _batching(facts: Facts) -> str:
    """Say how each side was batched."""
    [moved] = facts["moved"]
    ran = {side: moved[side] for side in ("baseline", "candidate")}
    unknown = [side for side, batch_class in ran.items() if batch_class in (None, OBSERVED)]
    if len(unknown) == 2:
        return "How both sides were batched is unknown."
    if unknown:
        [(side, batch_class)] = [each for each in ran.items() if each[0] not in unknown]
        return f"The {side} ran {render_batching(batch_class)}. How the {unknown[0]} was batched is unknown."
    ours, theirs = map(render_batching, ran.values())
    return f"Both sides ran {ours}." if ours == theirs else f"The baseline ran {ours}, the candidate {theirs}."


def batch_alike(facts: Facts) -> str:
    """Say how both sides get to be batched alike. facts: of the block `batch_class`."""
    [moved] = facts["moved"]
    if facts.get("is_stack_judged"):
        return "Run both sides at batch size 1 or with batch-invariant kernels."
    if {moved["baseline"], moved["candidate"]} & {None, OBSERVED}:
        return "Run both sides on one endpoint."
    return "Run the candidate under the baseline's profile."


def _computation_apart(facts: Facts) -> str:
    how = "{n_apart:,} of {n_cases:case} differ, though repeats of each side agree to the bit"
    if not facts["is_steady"]:
        how = "their logprobs differ by {shift:nats_rounded} more than repeats do"
    text = (
        f"One backend answered both sides, but {how}. No recorded setting shows what changed. It may not be the model."
    )
    return write(text, **facts)


def _template_changed(facts: Facts) -> str:
    """the chat template came with other weights"""
    return f"{_template_differs(facts)}, as the weights do."


def _stack_judged(facts: Facts) -> str:
    """the release judges the serving stack: what changed in it"""
    return f"This release tests the serving stack, and it differs: {_moved(facts)}."


def _stack_unchanged(_: Facts) -> str:
    """the release judges the serving stack, and nothing in it changed"""
    return "This release tests the serving stack, but it is the same on both sides. Any change is noise."


def _service_judged(facts: Facts) -> str:
    """the release judges model and stack together: what differs"""
    return (
        f"The service is judged, model and stack together: {_moved(facts)}. The verdict does not say which made a "
        "difference."
    )


def _service_unchanged(_: Facts) -> str:
    """the release judges model and stack together, and nothing differs"""
    return "The service is judged, but it is the same on both sides. Any change is noise."


def _prompt_judged(facts: Facts) -> str:
    """the release judges the prompt: in how many cases it changed"""
    n, n_changed = facts["n_pairs"], facts["n_changed"]
    where = _all_cases(n) if n_changed == n else f"{n_changed:,} of {counted(n, 'case')}"
    inputs = "" if facts["pair_by"] == BY_ID else " with equal inputs"
    return f"The prompt is judged. It changed in {where}{inputs}."


def _prompt_unchanged(facts: Facts) -> str:
    """the release judges the prompt, and it is the same in all cases"""
    return f"The prompt is judged, but it is the same in {_all_cases(facts['n_pairs'])}. Any change is noise."


def _cases_left_out(facts: Facts) -> str:
    """the release judges the prompt: cases that have no partner on the other side, and why"""
    what = "id" if facts["pair_by"] == BY_ID else "input"
    sides = {"baseline": facts["n_alone_baseline"], "candidate": facts["n_alone_candidate"]}
    who = " and ".join(f"{counted(n, 'case')} of the {side}" for side, n in sides.items() if n)
    text = f"{who} {'is' if sum(sides.values()) == 1 else 'are'} left out. The other side has none with the same {what}"
    text = f"{text} and target."
    why = [f"{facts['n_other_target']:,} have another target"] if facts["n_other_target"] else []
    why += [f"{facts['n_repeated']:,} share an input with other cases"] if facts["n_repeated"] else []
    text = f"{text} In the baseline, {listed(why)}." if why else text
    return text if what == "id" else f"{text} To pair by id instead: --pair-by id."


def _paired_by_id(facts: Facts) -> str:
    """the release judges the prompt: cases were paired by id on request; whether their inputs are equal"""
    n, n_other = facts["n_pairs"], facts["n_other_input"]
    if not n_other:
        return f"Cases are paired by id, as chosen. Their inputs are equal in {_all_cases(n)}."
    where = "" if n_other == n else f" in {n_other:,} of {counted(n, 'case')}"
    return f"Cases are paired by id, as chosen. Nothing shows that their inputs are equal{where}."


def _all_cases(n: int) -> str:
    return "the one case" if n == 1 else f"all {n:,} cases"


def _unsteady_batches(facts: Facts) -> str:
    """a comparison of two stacks whose batches move answers too; a release is not comparable then"""
    return f"{_batching(facts)} Batching can change answers too."


def _stack_assumed(facts: Facts) -> str:
    """a comparison of prompts: what served is not known, and both sides asked for one model"""
    return write(
        "The stack of the {who} is unknown. Both sides requested {model}. Only the prompt is assumed to differ.",
        who=" and the ".join(facts["sides"]),
        model=facts["model"],
    )


def _identity_assumed(facts: Facts) -> str:
    """the stack is unknown; both sides were interleaved within the window and are assumed to share it.

    Includes what the canaries found
    """
    # canaries: {"endpoint", "state"} each.
    who, hours = " and the ".join(facts["sides"]), _hours(facts["hours"])
    assumed = f"Both sides alternated within {hours}, so we assume that the same server answered both."
    text = f"The stack of the {who} is unknown. {assumed}"
    if not facts["canaries"]:
        return f"{text} No canary probe ran in that time."
    canaries = [f"{each['endpoint']} {STATES['canary'][each['state']].word.lower()}" for each in facts["canaries"]]
    doubt = ""
    if any(each["state"] in MOVED_CANARIES for each in facts["canaries"]):
        doubt = " So this may be wrong. Find out what changed before you sign."
    return f"{text} Canary probes in that time: {'; '.join(canaries)}.{doubt}"


def _hours(hours: float) -> str:
    return counted(max(round(hours * 60), 1), "minute") if hours < 2 else f"{hours:.0f} hours"


def _stack_reported(facts: Facts) -> str:
    """both sides name the same stack, but that is self-reported: the name"""
    return (
        f"We only have the server's own fingerprint ({' and '.join(facts['stacks'])}). A silent change would be missed."
    )


def _other_model(facts: Facts) -> str:
    """answers of a side name another model than requested: which, and how many. The reported name counts"""
    return write(
        "The {side} requested {model}, but {answered} answered {n:,} of {total:,}.",
        **{**facts, "model": facts["asked"], "answered": listed(facts["answered"])},
    )


BLOCKS = Messages(
    "block",
    {
        ("prompt", "unknown"): {
            "prompts_unknown": lambda facts: (
                f"The log of the {' and '.join(facts['sides'])} has no prompts, so equal ids may be different "
                "questions. Import the log with its requests, or pass its suite with --suite."
            )
        },
        ("suite", "asserts"): {"suite_changed": _suite_changed},
        ("scorer", "asserts"): {"scorer_changed": _scorer_changed, "scorer_shared": _scorer_shared},
        ("judge", "asserts"): {"judge_changed": _judge_changed, "judged_again": _judged_again},
        ("judge", "allows"): {"judge_rebuilt": _judge_rebuilt},
        ("judge", "unknown"): {"judge_unchecked": _judge_unchecked},
        ("sampling", "asserts"): {"params_changed": _params_changed},
        ("backends", "asserts"): {"mixed_fingerprint": _mixed_fingerprint},
        ("model", "asserts"): {"model_changed": _model_changed, "other_model": _other_model},
        ("cause", "allows"): {"rebaseline": _rebaseline},
        ("batching", "asserts"): {"batch_class": _batch_class},
        ("cause", "unknown"): {
            "stack_changed": lambda facts: (
                f"Model and serving stack both changed ({_moved(facts)}). Either may have made the difference. "
                f"{SAME_STACK}."
            ),
            "service_judged": _service_judged,
        },
        ("computation", "asserts"): {"computation_apart": _computation_apart},
        ("identity", "unknown"): {
            "unknown_stack": lambda facts: (
                f"The stack of the {' and the '.join(facts['sides'])} is unknown, so the sides may have been served "
                f"differently. {SAY_WHO_SERVES}"
            ),
            "stack_assumed": _stack_assumed,
            "identity_assumed": _identity_assumed,
            "stack_reported": _stack_reported,
        },
        ("template", "asserts"): {"template_changed": _template_changed},
        ("stack", "asserts"): {"stack_judged": _stack_judged},
        ("stack", "denies"): {"stack_unchanged": _stack_unchanged, "service_unchanged": _service_unchanged},
        ("prompt", "asserts"): {"prompt_judged": _prompt_judged},
        ("prompt", "denies"): {"prompt_unchanged": _prompt_unchanged},
        ("pairing", "asserts"): {"cases_left_out": _cases_left_out, "paired_by_id": _paired_by_id},
        ("batching", "allows"): {"unsteady_batches": _unsteady_batches},
    },
)


def _moved(facts: Facts) -> str:
    return render_moved([MovedField(**each) for each in facts["moved"]])


def _from_to(facts: Facts) -> str:
    [moved] = facts["moved"]
    return f" {ARROW} ".join(render_sides(MovedField(**moved)))


def _template_differs(facts: Facts) -> str:
    [moved] = facts["moved"]
    return f"The chat template differs ({f' {ARROW} '.join(render_sides(MovedField(**moved)))})"
