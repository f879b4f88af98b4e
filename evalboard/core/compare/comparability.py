"""Decide whether two sides can be compared as one change, and list what differs (docs/verdict.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from evalboard.contract.judge import AnchorShift
from evalboard.contract.manifest import MovedField
from evalboard.contract.treatments import (
    BY_ID,
    MODEL_TREATMENT,
    PROMPT_TREATMENT,
    SERVICE_TREATMENT,
    STACK_TREATMENT,
    Terms,
)
from evalboard.core.errors import InvalidInput
from evalboard.core.profile import find_moved_fields, is_known_by_log, name_stack
from evalboard.core.stats import anchor_shift

# Said beside a comparison that holds all the same: the template came with the weights that are judged, the stack, the
# service or the prompt is what is judged, or what served is known from reports alone, or assumed to have stayed.
BLOCK_WARNINGS = frozenset(
    {
        "template_changed",
        "stack_judged",
        "stack_unchanged",
        "service_judged",
        "service_unchanged",
        "prompt_judged",
        "prompt_unchanged",
        "cases_left_out",
        "paired_by_id",
        "identity_assumed",
        "stack_reported",
        "other_model",
        "judge_rebuilt",
        "judge_unchecked",
        "judged_again",
        "scorer_shared",
    }
)
# What keeps a release from being judged, and beside a comparison only warns.
COMPARISON_WARNINGS = frozenset({"stack_assumed", "unsteady_batches"})
JUDGED_PROMPTS = ("prompt_judged", "prompt_unchanged", "paired_by_id", "cases_left_out")
# In the order of docs/verdict.md: what comes first is what a verdict names first.
BLOCK_ORDER = (
    "prompts_unknown",
    "suite_changed",
    "scorer_changed",
    "judge_changed",
    "params_changed",
    "mixed_fingerprint",
    "model_changed",
    "rebaseline",
    "batch_class",
    "stack_changed",
    "computation_apart",
    "unknown_stack",
    *JUDGED_PROMPTS,
    *sorted((BLOCK_WARNINGS | COMPARISON_WARNINGS).difference(JUDGED_PROMPTS)),
)
# Batching under which a response does not depend on its neighbours, so that a change of stack is all that is seen.
STEADY_BATCHES = ("alone", "invariant")
JUDGE_TOLERANCE = 5.0  # points: what the anchors must exclude where only a report says who answered as the judge
FIXED_GROUPS = "fixed-"  # and how many cases share each batch
LOADED_BATCHES = ("mixed", "observed")  # what else the engine decodes decides who shares a step


@dataclass(frozen=True, slots=True)
class Block:
    """Why the two may not be compared as one change; a code of BLOCK_WARNINGS only warns.

    facts: what its sentence in `wording.comparability` gives, ready for JSON; there `moved` are the fields behind it,
    as [{"field", "baseline", "candidate"}].
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedShare:
    """A bucket of a side, and its share of the responses. Digests are hexadecimal, "" if unknown.

    fingerprint: of the stack without the model, for comparing. shown: of all that the bucket's fingerprint covers, for
    pages; the two differ if a report names the model too. manifest: of the stack, without the model. named:
    distinguishes models with unknown weights. backend: what pages call it, "" on a side of one bucket. asked_name: the
    requested model, if answers name another one, which is model_name then; "" otherwise.
    """

    model_name: str
    weights_digest: str
    template_digest: str
    fingerprint: str
    manifest: Mapping[str, Any]
    batch_class: str
    share: float
    named: str = ""
    shown: str = ""
    backend: str = ""
    asked_name: str = ""
    n_answers: int = 0

    @property
    def model(self) -> str:
        """Return the identity of the model: its content, or only its name."""
        return self.weights_digest or self.named


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """Who answered as the judge of a side, and its scores of the anchors.

    name: the endpoint's. served: what pages call the buckets that answered. models: their models' names, sorted.
    identity: of each bucket its model and fingerprint, sorted. is_reported: only a server's word says who answered.
    anchors_digest: of the answers that are the anchors, "" without any. anchor_scores: one row an anchor, one score a
    draw, None where it could not be read; in the same order wherever the digest is the same. order: of when it was
    asked; larger is later. sd_points: the standard deviation of a run's score by judging alone; None if not measured.
    """

    name: str
    served: tuple[str, ...]
    models: tuple[str, ...]
    identity: tuple[str, ...]
    is_reported: bool
    anchors_digest: str = ""
    anchor_scores: tuple[tuple[float | None, ...], ...] | None = None
    order: int = 0
    sd_points: float | None = None


@dataclass(frozen=True, slots=True)
class ScorerShift:
    """What judging a side by the other side's scorer changed.

    own_digest, own_code: of its suite's scorer, as in `SideSetup`. points: by how much its score moved, None where
    several buckets served it.
    n_cases: how many cases moved.
    """

    own_digest: str
    points: float | None
    n_cases: int
    own_code: str = ""


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """The effect of judging a side again.

    scorer_digest: of the newest judging. points, n_cases: as in `ScorerShift`.
    """

    scorer_digest: str
    points: float | None
    n_cases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSetup:
    """A side's settings and scorer, and its buckets, the largest share first.

    max_tokens: None where a log does not say it. sampling: the settings that are known (core.profile.facts), each with
    its value; unknown beside unknown is no difference. unknown_prompts: the log, where it does not hold the prompts; ""
    where they are known. suite_digest: of the suite version; if the scorers differ, of what it asks. is_logged: read
    from a log, so that nothing of it can be decoded here. n_cases: of the suite. judge: None where none scored it.
    scorer_digest: of the scorer that judges it. scorer_code: what people call its code, "" if it is ours.
    scorer_shift: where that is not its suite's. judged_again: where that is a judge that was asked again. is_awaited: a
    worker has yet to score it by the other side's scorer.
    """

    suite_version: str
    suite_digest: str
    scorer_digest: str
    max_tokens: int | None
    stop: tuple[str, ...]
    sampling: Mapping[str, Any]
    served: Sequence[ServedShare]
    unknown_prompts: str = ""
    is_logged: bool = False
    n_cases: int = 0
    judge: JudgeFacts | None = None
    scorer_code: str = ""
    scorer_shift: ScorerShift | None = None
    judged_again: JudgedAgain | None = None
    is_awaited: bool = False


def find_moved_setup(baseline: SideSetup, candidate: SideSetup) -> tuple[MovedField, ...]:
    """Return the differing fields: settings first, then those of each side's main bucket."""
    pairs = [
        ("suite_version", baseline.suite_version, candidate.suite_version),
        ("scorer", baseline.scorer_digest, candidate.scorer_digest),
        ("max_tokens", baseline.max_tokens, candidate.max_tokens),
        ("stop", list(baseline.stop), list(candidate.stop)),
    ]
    for name in sorted({*baseline.sampling, *candidate.sampling}):
        pairs.append((f"sampling.{name}", baseline.sampling.get(name), candidate.sampling.get(name)))
    if not baseline.served or not candidate.served:
        return _differing(pairs)
    ours, theirs = baseline.served[0], candidate.served[0]
    if ours.model != theirs.model:
        pairs.append(("model", _name(ours), _name(theirs)))
    pairs += [
        ("chat_template", ours.template_digest or None, theirs.template_digest or None),
        ("batch_class", ours.batch_class, theirs.batch_class),
    ]
    return _differing(pairs) + find_moved_fields(ours.manifest, theirs.manifest)


def find_blocks(
    baseline: SideSetup,
    candidate: SideSetup,
    treatment: str = MODEL_TREATMENT,
    *,
    window: Mapping[str, Any] | None = None,
    prompts: Mapping[str, Any] | None = None,
    n_shared: int | None = None,
    is_verdict: bool = True,
) -> tuple[Block, ...]:
    """Find everything that forbids reading the difference as one change, worst first; and warnings.

    window: if both sides were interleaved in so short a time that the stack can be assumed unchanged, the facts of that
    time for the sentence; else None. prompts: if the prompt is judged, the counts of `PromptPairs`. n_shared: how many
    cases are on both sides, None if not counted. is_verdict: a release is judged; a comparison only warns of two
    stacks' batches, and of an unknown stack next to one model's name.
    """
    blocks = [*_find_question_blocks(baseline, candidate, treatment, n_shared), *_find_side_blocks(baseline, candidate)]
    blocks += _find_prompt_blocks(prompts) if treatment == PROMPT_TREATMENT and prompts is not None else []
    if baseline.served and candidate.served:
        blocks += _find_serving_blocks(baseline.served[0], candidate.served[0], treatment, window)
        if not is_verdict:
            blocks = [_weaken(block, baseline.served[0], candidate.served[0], treatment) for block in blocks]
        blocks += _find_report_blocks(baseline.served[0], candidate.served[0]) if allows_comparing(blocks) else []
    return tuple(sorted(blocks, key=lambda block: BLOCK_ORDER.index(block.code)))


def allows_comparing(blocks: Sequence[Block]) -> bool:
    return all(block.code in BLOCK_WARNINGS | COMPARISON_WARNINGS for block in blocks)


def is_steady_batch(batch_class: str, *, are_batches_equal: bool) -> bool:
    """Tell whether a bucket of this batch class gives the same bits each time.

    are_batches_equal: the same cases are decoded greedily, so that fixed groups share the same batches.
    """
    return batch_class in STEADY_BATCHES or (are_batches_equal and batch_class.startswith(FIXED_GROUPS))


def _find_question_blocks(
    baseline: SideSetup, candidate: SideSetup, treatment: str, n_shared: int | None
) -> list[Block]:
    """Find differences in the settings of the two sides.

    A service's treatment of a setting is part of the service, so that a known setting may be paired with an unknown
    one, as if one of two hosted models refuses a temperature. Likewise, what another stack of ours makes of temperature
    0 is part of that stack.
    """
    blocks = []
    moved = find_moved_setup(baseline, candidate)
    if baseline.unknown_prompts != candidate.unknown_prompts:
        sides = {"baseline": baseline.unknown_prompts, "candidate": candidate.unknown_prompts}
        blocks.append(Block("prompts_unknown", {"sides": [name for name, unknown in sides.items() if unknown]}))
    if baseline.suite_digest != candidate.suite_digest and treatment != PROMPT_TREATMENT:
        versions = MovedField("suite_version", baseline.suite_version, candidate.suite_version)
        counts = {} if n_shared is None else {"n_shared": n_shared, "n_cases": [baseline.n_cases, candidate.n_cases]}
        are_logged = {"are_logged": True} if baseline.is_logged and candidate.is_logged else {}
        blocks.append(_moved_block("suite_changed", (versions,), **counts, **are_logged))
    if shift := baseline.scorer_shift:
        own = _name_scorers(
            MovedField("scorer", shift.own_digest, candidate.scorer_digest), shift.own_code, candidate.scorer_code
        )
        blocks.append(_moved_block("scorer_shared", (own,), points=shift.points, n_cases=shift.n_cases))
    for side, setup in (("baseline", baseline), ("candidate", candidate)):
        if again := setup.judged_again:
            blocks.append(Block("judged_again", {"side": side, "points": again.points, "n_cases": again.n_cases}))
    if scorer := _select_fields(moved, "scorer"):
        scorer = tuple(_name_scorers(each, baseline.scorer_code, candidate.scorer_code) for each in scorer)
        awaited = {"is_awaited": True} if baseline.is_awaited else {}
        blocks.append(_moved_block("scorer_changed", scorer, **awaited))
    elif baseline.judge is not None and candidate.judge is not None:
        blocks += _find_judge_blocks(baseline.judge, candidate.judge)
    sampled = _select_fields(moved, "sampling", "max_tokens", "stop")
    if treatment == SERVICE_TREATMENT:
        sampled = tuple(each for each in sampled if None not in (each.baseline, each.candidate))
    elif _is_engine_changed(baseline, candidate):
        sampled = tuple(each for each in sampled if not _is_greedy_lost(each))
    if sampled:
        blocks.append(_moved_block("params_changed", sampled))
    return blocks


def _name_scorers(moved: MovedField, ours: str, theirs: str) -> MovedField:
    """Name the code on both sides in place of the scorers' digests, where it tells them apart."""
    if ours == theirs:
        return moved
    return MovedField(moved.field, ours or moved.baseline, theirs or moved.candidate)


def _find_judge_blocks(ours: JudgeFacts, theirs: JudgeFacts) -> list[Block]:
    """Tell whether one judge scored both sides: by who answered, and by the anchors.

    A judge that only its server's word identifies is another one where that word changed, unless the anchors exclude a
    shift of JUDGE_TOLERANCE. Where several buckets answered, nothing says that they did so in equal shares.
    """
    shift = find_anchor_shift(ours, theirs)
    is_other = ours.identity != theirs.identity
    is_same_name = bool(ours.models) and ours.models == theirs.models
    is_excluded = shift is not None and shift.interval[0] > -JUDGE_TOLERANCE and shift.interval[1] < JUDGE_TOLERANCE
    served = (MovedField("judge", " + ".join(ours.served), " + ".join(theirs.served)),) if is_other else ()
    older = "baseline" if ours.order <= theirs.order else "candidate"
    facts: dict[str, Any] = {"judge": theirs.name}
    if shift is not None:
        low, high = shift.interval
        facts |= {"points": shift.points, "low": low, "high": high, "p": shift.p, "n_anchors": shift.n_anchors}
    if shift is not None and shift.has_moved:
        return [_moved_block("judge_changed", served, **facts, has_moved=True, side=older)]
    if is_other and not (ours.is_reported and theirs.is_reported and is_same_name and is_excluded):
        return [_moved_block("judge_changed", served, **facts, has_moved=False, side=older)]
    if is_other:
        return [_moved_block("judge_rebuilt", served, **facts)]
    is_sure = not (ours.is_reported or theirs.is_reported) and len(ours.identity) == 1
    return [] if is_sure or is_excluded else [Block("judge_unchecked", facts)]


def find_anchor_shift(ours: JudgeFacts, theirs: JudgeFacts) -> AnchorShift | None:
    """Return how far the judge scores the anchors differently; None without the same ones."""
    if not ours.anchors_digest or ours.anchors_digest != theirs.anchors_digest:
        return None
    if ours.anchor_scores is None or theirs.anchor_scores is None:
        return None
    return _shift_anchors(ours.anchor_scores, theirs.anchor_scores)


@lru_cache(maxsize=256)  # a release and its pages ask for the same pairs
def _shift_anchors(
    before: tuple[tuple[float | None, ...], ...], after: tuple[tuple[float | None, ...], ...]
) -> AnchorShift | None:
    sides = []
    for rows in (before, after):
        scores = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
        for place, row in enumerate(rows):
            scores[place, : len(row)] = [np.nan if score is None else score for score in row]
        sides.append(scores)
    return anchor_shift(sides[0], sides[1])


def _find_prompt_blocks(prompts: Mapping[str, Any]) -> list[Block]:
    """Say how cases were paired, which were left out, and in how many the prompt changed."""
    counts = {name: value for name, value in prompts.items() if name == "pair_by" or name.startswith("n_")}
    blocks = [Block("prompt_judged" if prompts["n_changed"] else "prompt_unchanged", counts)]
    if prompts["pair_by"] == BY_ID:
        blocks.append(Block("paired_by_id", counts))
    if prompts["n_alone_baseline"] or prompts["n_alone_candidate"]:
        blocks.append(Block("cases_left_out", counts))
    return blocks


def _weaken(block: Block, ours: ServedShare, theirs: ServedShare, treatment: str) -> Block:
    """Return as a warning what keeps a release from being judged and no comparison from being read."""
    if block.code == "batch_class" and block.facts.get("is_stack_judged"):
        return Block("unsteady_batches", block.facts)
    is_one_name = bool(ours.model) and ours.model == theirs.model
    if block.code == "unknown_stack" and treatment == PROMPT_TREATMENT and is_one_name:
        return Block("stack_assumed", {**block.facts, "model": ours.model_name})
    return block


def _is_engine_changed(baseline: SideSetup, candidate: SideSetup) -> bool:
    """Tell whether two engines of ours served the sides, and differ in more than the model."""
    served = [side.served[0] for side in (baseline, candidate) if side.served]
    are_ours = len(served) == 2 and all(each.weights_digest and each.fingerprint for each in served)
    return are_ours and served[0].fingerprint != served[1].fingerprint


def _is_greedy_lost(moved: MovedField) -> bool:
    """Tell whether one side decoded at temperature 0 and the other, on our own engine, ignored it.

    Only its answers can make that temperature unknown.
    """
    values = (moved.baseline, moved.candidate)
    return moved.field == "sampling.temperature" and None in values and 0 in values


def _find_side_blocks(baseline: SideSetup, candidate: SideSetup) -> list[Block]:
    """Find sides of several buckets, and sides answered by another model than requested.

    moved: between the two buckets that served most.
    """
    blocks = []
    for name, side in (("baseline", baseline), ("candidate", candidate)):
        if others := [each for each in side.served if each.asked_name]:
            n, total = (sum(each.n_answers for each in given) for given in (others, side.served))
            models = list(dict.fromkeys(each.model_name for each in others))
            facts = {"side": name, "asked": others[0].asked_name, "answered": models, "n": n, "total": total}
            blocks.append(Block("other_model", facts))
        if len(side.served) > 1:
            shares = [
                {"backend": each.backend, "batch_class": each.batch_class, "share": each.share} for each in side.served
            ]
            moved = _moved_stack(side.served[0], side.served[1])
            blocks.append(_moved_block("mixed_fingerprint", moved, side=name, served=shares))
    return blocks


def _find_serving_blocks(
    ours: ServedShare, theirs: ServedShare, treatment: str, window: Mapping[str, Any] | None
) -> list[Block]:
    is_same_model = ours.model == theirs.model
    is_other_template = "" not in (ours.template_digest, theirs.template_digest) and (
        ours.template_digest != theirs.template_digest
    )
    template = (MovedField("chat_template", ours.template_digest, theirs.template_digest),)
    blocks = []
    if is_other_template and is_same_model and treatment != SERVICE_TREATMENT:
        blocks.append(_moved_block("params_changed", template))
    blocks += FIND_BY_TREATMENT[treatment](ours, theirs)
    unknown = [name for name, side in (("baseline", ours), ("candidate", theirs)) if not _is_known(side)]
    if unknown:
        facts = {"sides": unknown}
        blocks.append(
            Block("unknown_stack", facts) if window is None else Block("identity_assumed", {**facts, **window})
        )
    if is_other_template and not is_same_model:
        blocks.append(_moved_block("template_changed", template))
    return blocks


def _find_stack_blocks(ours: ServedShare, theirs: ServedShare) -> list[Block]:
    """Find what keeps a change from being the model's: everything else that serves must be the same."""
    blocks = []
    if _is_known(ours) and _is_known(theirs) and ours.fingerprint != theirs.fingerprint:
        code = "rebaseline" if ours.model == theirs.model else "stack_changed"
        moved = find_moved_fields(ours.manifest, theirs.manifest)
        blocks.append(_moved_block(code, moved or _fingerprints(ours, theirs)))
    if ours.batch_class != theirs.batch_class:
        blocks.append(_moved_block("batch_class", _batch_classes(ours, theirs)))
    return blocks


def _find_judged_stack_blocks(ours: ServedShare, theirs: ServedShare) -> list[Block]:
    """Find what keeps a change from being the stack's: another model, or batching that neighbours disturb.

    is_named: a name is all that tells one of the models.
    """
    blocks = []
    moved = _moved_stack(ours, theirs)
    if ours.model != theirs.model:
        models = (MovedField("model", _name(ours), _name(theirs)),)
        is_named = not (ours.weights_digest and theirs.weights_digest)
        blocks.append(_moved_block("model_changed", models, is_named=is_named))
    if not {ours.batch_class, theirs.batch_class} <= set(STEADY_BATCHES):
        blocks.append(_moved_block("batch_class", _batch_classes(ours, theirs), is_stack_judged=True))
    if ours.model != theirs.model or not (_is_known(ours) and _is_known(theirs)):
        return blocks
    if ours.fingerprint == theirs.fingerprint and not moved:
        return [*blocks, Block("stack_unchanged")]
    return [*blocks, _moved_block("stack_judged", moved or _fingerprints(ours, theirs))]


def _find_unjudged_blocks(ours: ServedShare, theirs: ServedShare) -> list[Block]:
    """Find what keeps a change from being the prompt's: another model, or anything else that serves."""
    blocks = [
        replace(each, facts={**each.facts, "is_prompt_judged": True}) for each in _find_stack_blocks(ours, theirs)
    ]
    if ours.model == theirs.model:
        return blocks
    models = (MovedField("model", _name(ours), _name(theirs)),)
    is_named = not (ours.weights_digest and theirs.weights_digest)
    others = [block for block in blocks if block.code != "stack_changed"]
    return [_moved_block("model_changed", models, is_named=is_named, is_prompt_judged=True), *others]


def _find_judged_service_blocks(ours: ServedShare, theirs: ServedShare) -> list[Block]:
    """Name what differs between two services; nothing of it keeps them from being judged."""
    models = _differing([("model", _name(ours), _name(theirs))]) if ours.model != theirs.model else ()
    is_known = _is_known(ours) and _is_known(theirs)
    if moved := models + (_moved_stack(ours, theirs) if is_known else ()):
        return [_moved_block("service_judged", moved)]
    return [Block("service_unchanged")] if is_known and ours.fingerprint == theirs.fingerprint else []


FIND_BY_TREATMENT = {
    MODEL_TREATMENT: _find_stack_blocks,
    STACK_TREATMENT: _find_judged_stack_blocks,
    SERVICE_TREATMENT: _find_judged_service_blocks,
    PROMPT_TREATMENT: _find_unjudged_blocks,
}


def find_terms(treatment: str, pair_by: str, *, are_prompts_other: bool) -> Terms:
    """Return what is judged, as named by a person or by default.

    The default is the model, or the prompt if no case is equal except for its prompt, or if cases are to be paired by
    id. treatment: "" if not named. Raises InvalidInput for a pairing by id if no prompt is judged.
    """
    if pair_by == BY_ID and treatment not in ("", PROMPT_TREATMENT):
        text = f"Cases are paired by id where the prompt is judged, and {treatment} is named."
        raise InvalidInput(text, fields={"pair_by": f"Must go with the treatment {PROMPT_TREATMENT}, or be left out."})
    if treatment:
        return Terms(treatment, pair_by)
    return Terms(PROMPT_TREATMENT if are_prompts_other or pair_by == BY_ID else MODEL_TREATMENT, pair_by)


def choose_treatment(baseline: SideSetup, candidate: SideSetup) -> str:
    """Return what differs between two sides with equal settings: the stack of one model, or the model."""
    if not (baseline.served and candidate.served):
        return MODEL_TREATMENT
    ours, theirs = baseline.served[0], candidate.served[0]
    is_one_model = _is_known(ours) and _is_known(theirs) and ours.model == theirs.model
    return STACK_TREATMENT if is_one_model and ours.fingerprint != theirs.fingerprint else MODEL_TREATMENT


def _find_report_blocks(ours: ServedShare, theirs: ServedShare) -> list[Block]:
    """Warn that only reports say that both sides were served alike; stacks: their names."""
    reported = [side.manifest["source"] for side in (ours, theirs) if is_known_by_log(side.manifest)]
    stacks = list(dict.fromkeys(name_stack(source) for source in reported))
    return [Block("stack_reported", {"stacks": stacks})] if stacks else []


def _moved_block(code: str, moved: Sequence[MovedField], **facts: Any) -> Block:
    return Block(code, {"moved": [asdict(each) for each in moved], **facts})


def _is_known(served: ServedShare) -> bool:
    return "" not in (served.fingerprint, served.model)


def _select_fields(moved: Sequence[MovedField], *names: str) -> tuple[MovedField, ...]:
    return tuple(each for each in moved if each.field.partition(".")[0] in names)


def _moved_stack(ours: ServedShare, theirs: ServedShare) -> tuple[MovedField, ...]:
    """Return the differing fields of the stack, including the batch class."""
    batches = _differing([("batch_class", ours.batch_class, theirs.batch_class)])
    return batches + find_moved_fields(ours.manifest, theirs.manifest)


def _fingerprints(ours: ServedShare, theirs: ServedShare) -> tuple[MovedField, ...]:
    """Return the fingerprints as a field, for use if none of their fields is known to differ."""
    return (MovedField("fingerprint", ours.shown or ours.fingerprint, theirs.shown or theirs.fingerprint),)


def _batch_classes(ours: ServedShare, theirs: ServedShare) -> tuple[MovedField, ...]:
    return (MovedField("batch_class", ours.batch_class, theirs.batch_class),)


def _differing(pairs: Sequence[tuple[str, Any, Any]]) -> tuple[MovedField, ...]:
    return tuple(MovedField(name, ours, theirs) for name, ours, theirs in pairs if ours != theirs)


def _name(served: ServedShare) -> str:
    return ", ".join(filter(None, (served.model_name, served.weights_digest[:8])))
