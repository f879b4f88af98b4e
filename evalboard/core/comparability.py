"""May two sides be compared as one change, and which fields moved between them. docs/verdict.md has the codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.core import fingerprint, fingerprint_words
from evalboard.core.fingerprint import Moved

# What a release judges: a model, both sides being served alike, or what serves one and the same model.
MODEL, STACK = "model", "stack"
TREATMENTS = (MODEL, STACK)
# Said beside a comparison that holds all the same: the template came with the weights that are judged, the stack is
# what is judged, or it is known from logs alone.
WARNINGS = frozenset({"template_changed", "stack_judged", "stack_unchanged", "stack_reported"})
# In the order of docs/verdict.md: what comes first is what a verdict names first.
GRAVEST_FIRST = (
    "suite_changed",
    "scorer_changed",
    "params_changed",
    "mixed_fingerprint",
    "model_changed",
    "rebaseline",
    "batch_class",
    "stack_changed",
    "unknown_stack",
    *sorted(WARNINGS),
)
# Batching under which a response does not depend on its neighbours, so that a change of stack is all that is seen.
STEADY_BATCHES = ("alone", "invariant")


@dataclass(frozen=True, slots=True)
class Block:
    """Why the two may not be compared as one change; a code of WARNINGS does not forbid it.

    moved: the fields that it rests on, which the text names with both values.
    """

    code: str
    text: str
    moved: tuple[Moved, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What served some of a side's responses: a bucket, and its share of them. Digests are hexadecimal, "" unknown.

    manifest: what served, the model apart. named: what tells a model from others whose weights nobody knows.
    """

    model_name: str
    weights_digest: str
    template_digest: str
    fingerprint: str
    manifest: Mapping[str, Any]
    batch_class: str
    share: float
    named: str = ""

    @property
    def model(self) -> str:
        """What tells one model from another: its content, or its name where that is all."""
        return self.weights_digest or self.named


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a side was asked and scored, and by what it was served, the largest share first.

    max_tokens: None where a log does not say it. is_logged: read from a log, so that nothing of it can be decoded here.
    """

    suite_version: str
    suite_digest: str
    scorer_digest: str
    max_tokens: int | None
    stop: tuple[str, ...]
    sampling: Mapping[str, Any]
    served: Sequence[Served]
    is_logged: bool = False


def find_moved(baseline: Asked, candidate: Asked) -> tuple[Moved, ...]:
    """The fields that differ, what was asked first, then what served the largest share of each side."""
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
    return _differing(pairs) + fingerprint.moved(ours.manifest, theirs.manifest)


def find_blocks(baseline: Asked, candidate: Asked, treatment: str = MODEL) -> tuple[Block, ...]:
    """Everything that forbids reading the difference as one change, the gravest first; and the warnings."""
    found = [*_of_the_question(baseline, candidate), *_of_one_side(baseline, candidate)]
    if baseline.served and candidate.served:
        found += _of_the_serving(baseline.served[0], candidate.served[0], treatment)
        found += _of_reports(baseline.served[0], candidate.served[0]) if is_comparable(found) else []
    return tuple(sorted(found, key=lambda block: GRAVEST_FIRST.index(block.code)))


def is_comparable(blocks: Sequence[Block]) -> bool:
    return all(block.code in WARNINGS for block in blocks)


def _of_the_question(baseline: Asked, candidate: Asked) -> list[Block]:
    found = []
    moved = find_moved(baseline, candidate)
    if baseline.suite_digest != candidate.suite_digest:
        versions = Moved("suite_version", baseline.suite_version, candidate.suite_version)
        text = f"The suite changed: {versions.baseline} against {versions.candidate}."
        more = "Only cases with the same id and content are paired. Run the baseline again with today's suite."
        found.append(Block("suite_changed", f"{text} {more}", (versions,)))
    if scorer := _of_fields(moved, "scorer"):
        text = f"The scorer changed ({fingerprint_words.sentence(scorer)})."
        more = "Score one run again with the other's scorer to take its part out."
        found.append(Block("scorer_changed", f"{text} {more}", scorer))
    if sampled := _of_fields(moved, "sampling", "max_tokens", "stop"):
        text = f"The runs were sampled differently: {fingerprint_words.sentence(sampled)}."
        found.append(Block("params_changed", f"{text} Run the baseline again with today's settings.", sampled))
    return found


def _of_one_side(baseline: Asked, candidate: Asked) -> list[Block]:
    found = []
    for name, side in (("baseline", baseline), ("candidate", candidate)):
        if len(side.served) > 1:
            shares = ", ".join(f"{_percent(served.share)} by {_bucket(served)}" for served in side.served)
            moved = _moved_stack(side.served[0], side.served[1])
            parts = fingerprint_words.sentence(moved) or "the model that was served"
            text = f"{len(side.served)} buckets served the {name}, {shares} of its responses. They differ in {parts}."
            more = f"One score would mix them: look at one bucket alone, or run the {name} again on one backend."
            found.append(Block("mixed_fingerprint", f"{text} {more}", moved))
    return found


def _of_the_serving(ours: Served, theirs: Served, treatment: str) -> list[Block]:
    is_same_model = ours.model == theirs.model
    is_other_template = "" not in (ours.template_digest, theirs.template_digest) and (
        ours.template_digest != theirs.template_digest
    )
    found = []
    template = (Moved("chat_template", ours.template_digest, theirs.template_digest),)
    said = f"The chat template differs ({fingerprint_words.sentence(template)})"
    if is_other_template and is_same_model:
        text = f"{said} while the weights are the same: the two sides were asked different things."
        found.append(Block("params_changed", text, template))
    found += _of_the_stack_judged(ours, theirs) if treatment == STACK else _of_the_stack(ours, theirs)
    unknown = [name for name, side in (("baseline", ours), ("candidate", theirs)) if not _is_known(side)]
    if unknown:
        text = (
            f"What served the {' and the '.join(unknown)} is not known, so nobody can say that both were served alike."
        )
        more = "Log what serves, or run both sides on an endpoint that says it."
        found.append(Block("unknown_stack", f"{text} {more}"))
    if is_other_template and not is_same_model:
        found.append(Block("template_changed", f"{said}, as the weights do.", template))
    return found


def _of_the_stack(ours: Served, theirs: Served) -> list[Block]:
    """What forbids to say that a change is the model's: everything else that serves must be the same."""
    found = []
    moved = fingerprint.moved(ours.manifest, theirs.manifest)
    stacks = _stacks(ours, theirs, moved)
    if _is_known(ours) and _is_known(theirs) and ours.fingerprint != theirs.fingerprint:
        if ours.model == theirs.model:
            text = f"The same model was served by another stack ({stacks})"
            more = "To judge a model, run the baseline again on today's stack."
            text = f"{text}, so the change may be the stack's and not the model's. {more}"
            found.append(Block("rebaseline", text, moved))
        else:
            text = (
                f"Model and serving stack both changed ({stacks}), so no part of the difference can be given to either."
            )
            found.append(Block("stack_changed", f"{text} Run both models on one stack.", moved))
    if ours.batch_class != theirs.batch_class:
        text = f"The responses were batched differently: {ours.batch_class} against {theirs.batch_class}."
        batches = (Moved("batch_class", ours.batch_class, theirs.batch_class),)
        found.append(Block("batch_class", f"{text} Run both sides under one profile.", batches))
    return found


def _of_the_stack_judged(ours: Served, theirs: Served) -> list[Block]:
    """What forbids to say that a change is the stack's: one model, and batching that no neighbour disturbs."""
    found = []
    moved = _moved_stack(ours, theirs)
    if ours.model != theirs.model:
        text = f"The release judges what serves a model, and the models differ: {_name(ours)} against {_name(theirs)}."
        models = (Moved("model", _name(ours), _name(theirs)),)
        more = "Run one model on both stacks"
        is_named = not (ours.weights_digest and theirs.weights_digest)
        more = f"{more}, or say in the settings that these are two names of one" if is_named else more
        found.append(Block("model_changed", f"{text} {more}.", models))
    disturbed = [side.batch_class for side in (ours, theirs) if side.batch_class not in STEADY_BATCHES]
    if disturbed:
        text = "To judge what serves a model, both sides must be decoded alone or batch-invariant; here it was"
        batches = (Moved("batch_class", ours.batch_class, theirs.batch_class),)
        text = f"{text} {ours.batch_class} against {theirs.batch_class}. Run both under such a profile."
        found.append(Block("batch_class", text, batches))
    if found or not (_is_known(ours) and _is_known(theirs)):
        return found
    if ours.fingerprint == theirs.fingerprint and not moved:
        text = "The release judges what serves the model, and both sides were served alike: any change is noise."
        return [Block("stack_unchanged", text)]
    text = f"What is judged is what serves the model, not the model: {_stacks(ours, theirs, moved)}."
    return [Block("stack_judged", text, moved)]


def _of_reports(ours: Served, theirs: Served) -> list[Block]:
    """How it is known that both sides were served alike, where only logs say it."""
    reported = [side.manifest["source"] for side in (ours, theirs) if fingerprint.is_reported(side.manifest)]
    if not reported:
        return []
    told = " and ".join(dict.fromkeys(fingerprint.named(source) for source in reported))
    text = f"What served is known only as the logs report it ({told})"
    return [Block("stack_reported", f"{text}: a change that does not show in it would not be seen.")]


def _is_known(served: Served) -> bool:
    return "" not in (served.fingerprint, served.model)


def _of_fields(moved: Sequence[Moved], *names: str) -> tuple[Moved, ...]:
    return tuple(each for each in moved if each.field.partition(".")[0] in names)


def _moved_stack(ours: Served, theirs: Served) -> tuple[Moved, ...]:
    """The fields of what served that differ, the batch class among them."""
    batches = _differing([("batch_class", ours.batch_class, theirs.batch_class)])
    return batches + fingerprint.moved(ours.manifest, theirs.manifest)


def _stacks(ours: Served, theirs: Served, moved: Sequence[Moved]) -> str:
    """What moved in words; the fingerprints where no field is known to have."""
    fingerprints = (Moved("fingerprint", ours.fingerprint, theirs.fingerprint),)
    return fingerprint_words.sentence(moved or fingerprints)


def _bucket(served: Served) -> str:
    return f"{served.fingerprint[:8] or 'an unknown stack'} ({served.batch_class})"


def _differing(pairs: Sequence[tuple[str, Any, Any]]) -> tuple[Moved, ...]:
    return tuple(Moved(name, ours, theirs) for name, ours, theirs in pairs if ours != theirs)


def _name(served: Served) -> str:
    return ", ".join(filter(None, (served.model_name, served.weights_digest[:8])))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.02 else f"{100 * share:.1f} %"
