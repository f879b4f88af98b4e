"""Read rollouts with the sampler's logprobs, in four trainers' formats and a plain one.

A line is one rollout, or a batch of them whose fields are lists of equal length. Its fields show which trainer wrote
it. Padding is cut, tokens that the model did not sample (a tool's answer) are marked, and everything before the first
sampled token is the prompt. docs/forced.md has the fields.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from evalboard.core.document import read_strict_json
from evalboard.core.errors import InvalidInput

Numbers = NDArray[np.float64]

MAX_TOKEN_ID = 2**31 - 1  # a trace holds int32
MAX_LOGPROB = 3.4e38  # a trace holds float32


@dataclass(frozen=True, eq=False, kw_only=True)
class Rollout:
    """One response as it was sampled.

    name: its id where the line has one, else "". prompt_ids: int32[m], None where the line has no prompt.
    token_ids: int32[n]. is_sampled: bool[n], False for a token that the model did not choose. logprobs: float64[n] in
    nats, the sampler's. trainer: the trainer's of the same tokens, None where the line has none. NaN is unknown.
    """

    name: str
    prompt_ids: NDArray[np.int32] | None
    token_ids: NDArray[np.int32]
    is_sampled: NDArray[np.bool_]
    logprobs: Numbers
    trainer: Numbers | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutShape:
    """The field names of one writer.

    masks: over the tokens, 0 where the model did not sample. padding_masks: over the prompt, or over it and the tokens.
    is_right_aligned: the response is the last part of `tokens`, as long as its logprobs.
    """

    tokens: str
    logprobs: str
    trainer: str
    prompt: str = ""
    masks: tuple[str, ...] = ()
    padding_masks: tuple[str, ...] = ()
    is_right_aligned: bool = False


# The first one whose tokens and logprobs a line has. Some words are common to several: the telling fields come first.
_SHAPES = (
    # NeMo-RL
    RolloutShape(
        tokens="token_ids",
        logprobs="generation_logprobs",
        trainer="prev_logprobs",
        masks=("token_loss_mask",),
    ),
    # verl
    RolloutShape(
        prompt="prompts",
        tokens="responses",
        logprobs="rollout_log_probs",
        trainer="old_log_probs",
        masks=("response_mask",),
        padding_masks=("attention_mask",),
    ),
    # SkyRL
    RolloutShape(
        tokens="sequences",
        logprobs="rollout_logprobs",
        trainer="action_log_probs",
        masks=("loss_mask", "response_mask"),
        padding_masks=("attention_mask",),
        is_right_aligned=True,
    ),
    # SkyRL
    RolloutShape(
        prompt="prompt_token_ids",
        tokens="response_ids",
        logprobs="rollout_logprobs",
        trainer="action_log_probs",
        masks=("loss_masks",),
    ),
    # TRL
    RolloutShape(
        prompt="prompt_ids",
        tokens="completion_ids",
        logprobs="sampling_per_token_logps",
        trainer="old_per_token_logps",
        masks=("completion_mask", "tool_mask"),
        padding_masks=("prompt_mask",),
    ),
    # TRL
    RolloutShape(
        prompt="prompt_ids",
        tokens="completion_ids",
        logprobs="logprobs",
        trainer="old_per_token_logps",
        masks=("completion_mask", "tool_mask"),
        padding_masks=("prompt_mask",),
    ),
    # the plain form
    RolloutShape(
        prompt="prompt_token_ids",
        tokens="token_ids",
        logprobs="logprobs",
        trainer="trainer_logprobs",
        masks=("loss_mask",),
    ),
)


# What the trainers write of completions, by fields that such a line has: texts alone, which no logprob belongs to.
_TEXTS = (
    ("verl's dump of its rollouts or validations", {"input", "output", "score", "step"}),
    ("SkyRL's dump of an evaluation", {"input_prompt", "output_response", "score"}),
    ("NeMo-RL's log of a validation", {"content", "rewards", "idx"}),
)


def parse_rollouts(lines: Iterable[str], *, field: str) -> tuple[Rollout, ...]:
    """Return the rollouts of a JSONL file, in order. Raises InvalidInput at `field`, naming lines."""
    rollouts: list[Rollout] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rollouts += parse_row(_read_object(line))
        except ValueError as problem:
            raise _wrong(field, f"line {number}: {problem}") from problem
    if not rollouts:
        raise _wrong(field, "it holds no rollout")
    return tuple(rollouts)


def parse_row(row: Mapping[str, Any]) -> list[Rollout]:
    """Return the rollouts of one line: one, or a batch. Raises ValueError if it has none."""
    shape = find_shape(row)
    if shape is None:
        raise ValueError(_explain_texts(row) or "it has no tokens with logprobs under any known name")
    return [_parse_row(each, shape) for each in _unbatch(row, shape)]


def find_shape(row: Mapping[str, Any]) -> RolloutShape | None:
    """Return the first shape whose tokens the line has, with logprobs of either side."""
    for shape in _SHAPES:
        if shape.tokens in row and (row.get(shape.logprobs) is not None or row.get(shape.trainer) is not None):
            return shape
    return None


def is_like_rollout(row: Mapping[str, Any]) -> bool:
    """Tell whether a line, or the start of a long one, has token ids or logprobs like rollouts.

    Text dumps of a trainer count too: `parse_row` reports what they lack.
    """
    names = {name for shape in _SHAPES for name in (shape.prompt, shape.tokens, shape.logprobs, shape.trainer)}
    return any(name in row and _is_numeric(row[name]) for name in names) or bool(_explain_texts(row))


def write_row(rollout: Rollout) -> dict[str, Any]:
    """Return a rollout in the plain form, which `parse_row` reads back; unknown values are null."""
    row: dict[str, Any] = {"id": rollout.name} if rollout.name else {}
    if rollout.prompt_ids is not None:
        row["prompt_token_ids"] = rollout.prompt_ids.tolist()
    row |= {"token_ids": rollout.token_ids.tolist(), "logprobs": _write_logprobs(rollout.logprobs)}
    if rollout.trainer is not None:
        row["trainer_logprobs"] = _write_logprobs(rollout.trainer)
    return row | {"loss_mask": rollout.is_sampled.astype(int).tolist()}


def refuse_zeros(rollouts: Sequence[Rollout]) -> None:
    """Raise InvalidInput where every logprob of the trainer is 0: it wrote the field and computed nothing."""
    known = [each.trainer[each.is_sampled] for each in rollouts if each.trainer is not None]
    if sum(map(len, known)) and not any(each.any() for each in known):
        raise InvalidInput("Every logprob of the trainer is 0, as some write where they computed none.")


def join_trainer(rollouts: Sequence[Rollout], scored: Sequence[Rollout], *, field: str) -> tuple[Rollout, ...]:
    """Add a trainer's logprobs from a second file: by name if all have one, else by order.

    Its lines have the same tokens; its logprobs are the trainer's under whichever name. Raises InvalidInput at `field`
    where a rollout lacks its line, or the tokens are not the same.
    """
    names = [each.name for each in scored]
    are_named = all(names) and len(set(names)) == len(names) and {each.name for each in rollouts} <= set(names)
    if not are_named and len(scored) != len(rollouts):
        raise _wrong(field, f"it has {len(scored)} rollouts where {len(rollouts)} were sampled")
    by_name = dict(zip(names, scored, strict=True))
    joined = []
    for index, rollout in enumerate(rollouts):
        other = by_name[rollout.name] if are_named else scored[index]
        if not np.array_equal(rollout.token_ids, other.token_ids):
            raise _wrong(field, f"rollout {index + 1} has other tokens than were sampled")
        joined.append(replace(rollout, trainer=other.logprobs if other.trainer is None else other.trainer))
    return tuple(joined)


def _wrong(field: str, problem: str) -> InvalidInput:
    return InvalidInput(f"The rollouts cannot be read: {problem}.", fields={field: problem})


def _explain_texts(row: Mapping[str, Any]) -> str:
    """Return which trainer's text dump a line is and what it lacks; "" if it is none."""
    for name, fields in _TEXTS:
        if fields <= row.keys():
            return f"it is {name}, which has texts and no token ids or logprobs"
    return ""


def _read_object(line: str) -> dict[str, Any]:
    row = read_strict_json(line)
    if not isinstance(row, dict):
        raise ValueError("it is no object")
    return row


def _is_numeric(value: Any) -> bool:
    """Return whether a value is a list of numbers, or of such lists, judging by its first item."""
    if not isinstance(value, list) or not value:
        return False
    first = next((each for each in value if each is not None), None)
    return _is_numeric(first) if isinstance(first, list) else type(first) in (int, float)


def _unbatch(row: Mapping[str, Any], shape: RolloutShape) -> Iterator[Mapping[str, Any]]:
    """Yield the row, or each row of a batch; values that are no list of the batch's length are shared.

    Of fewer prompts each has as many answers in a row, as a server gives that is asked for several.
    """
    tokens = row[shape.tokens]
    if not _is_lists(tokens):
        yield row
        return
    n = len(tokens)
    prompts = row.get(shape.prompt)
    if _is_lists(prompts) and len(prompts) < n and n % len(prompts) == 0:
        row = {**row, shape.prompt: [each for each in prompts for _ in range(n // len(prompts))]}
    for index in range(n):
        yield {
            name: value[index] if isinstance(value, list) and len(value) == n else value for name, value in row.items()
        }


def _is_lists(value: Any) -> TypeGuard[list[list[Any]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(each, list) for each in value)


def _parse_row(row: Mapping[str, Any], shape: RolloutShape) -> Rollout:
    ids = _read_ids(row, shape.tokens)
    prompt = _read_ids(row, shape.prompt) if row.get(shape.prompt) is not None else None
    sampler, trainer = (_read_logprobs(row, name) for name in (shape.logprobs, shape.trainer))
    known = trainer if sampler is None else sampler
    if shape.is_right_aligned and known is not None:
        prompt, ids = ids[: len(ids) - len(known)], ids[len(ids) - len(known) :]
    for name, values in ((shape.logprobs, sampler), (shape.trainer, trainer)):
        if values is not None and len(values) != len(ids):
            raise ValueError(f"{name} has {len(values)} numbers for {len(ids)} tokens")
    is_sampled = np.ones(len(ids), np.bool_)
    for name in shape.masks:
        if row.get(name) is not None:
            is_sampled &= _read_mask(row, name, len(ids))
    is_real = np.ones(len(ids) + (0 if prompt is None else len(prompt)), np.bool_)
    for name in shape.padding_masks:
        if prompt is not None and row.get(name) is not None:
            mask = _read_mask(row, name, None)[: len(is_real)]
            is_real[: len(mask)] &= mask
    return _cut(_name(row), prompt, ids, is_sampled, is_real, sampler, trainer)


def _cut(
    name: str,
    prompt: NDArray[np.int32] | None,
    ids: NDArray[np.int32],
    is_sampled: NDArray[np.bool_],
    is_real: NDArray[np.bool_],
    sampler: Numbers | None,
    trainer: Numbers | None,
) -> Rollout:
    """Return the rollout from its first to its last sampled token: prompt before it, padding after it.

    is_real: over the prompt and `ids`, False for padding, which may stand in either before a prompt begins.
    """
    places = np.flatnonzero(is_sampled)
    own = slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)
    before = ids[: own.start]
    if prompt is not None or len(before):
        before = before if prompt is None else np.concatenate([prompt, before])
        prompt = before[is_real[: len(before)]]
    return Rollout(
        name=name,
        prompt_ids=prompt,
        token_ids=ids[own],
        is_sampled=is_sampled[own],
        logprobs=np.full(own.stop - own.start, np.nan) if sampler is None else sampler[own],
        trainer=None if trainer is None else trainer[own],
    )


def _name(row: Mapping[str, Any]) -> str:
    value = next((row[name] for name in ("id", "request_id", "idx") if row.get(name) is not None), "")
    return str(value) if isinstance(value, str | int) else ""


def _read_ids(row: Mapping[str, Any], name: str) -> NDArray[np.int32]:
    values = row[name]
    if not isinstance(values, list) or not (
        set(map(type, values)) <= {int} and all(0 <= each <= MAX_TOKEN_ID for each in values)
    ):
        raise ValueError(f"{name} must be a list of token ids from 0 to {MAX_TOKEN_ID}")
    return np.array(values, np.int32)


def _read_logprobs(row: Mapping[str, Any], name: str) -> Numbers | None:
    """Return a field's logprobs, None where the row has no such field; null is unknown.

    A server's top 1 is a list of one number for each token.
    """
    values = row.get(name)
    if values is None:
        return None
    if isinstance(values, list) and all(isinstance(each, list) and len(each) == 1 for each in values):
        values = [each[0] for each in values]
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float, type(None)}:
        raise ValueError(f"{name} must be a list of logprobs in nats, one for each token")
    numbers = np.array([np.nan if each is None else each for each in values], np.float64)
    if (np.abs(numbers) > MAX_LOGPROB).any():
        raise ValueError(f"{name} must be a list of logprobs in nats, one for each token")
    return numbers


def _write_logprobs(values: Numbers) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _read_mask(row: Mapping[str, Any], name: str, n: int | None) -> NDArray[np.bool_]:
    values = row[name]
    if not isinstance(values, list) or not all(each in (0, 1) for each in values):
        raise ValueError(f"{name} must be a list of 0 and 1")
    if n is not None and len(values) != n:
        raise ValueError(f"{name} has {len(values)} numbers for {n} tokens")
    mask: NDArray[np.bool_] = np.array(values, np.float64) != 0
    return mask
