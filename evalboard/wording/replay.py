"""What a replay's results mean, the finding first and what limits it after.

A result is the dictionary that `core.compare.replay` makes; docs/api-reference.md lists its fields.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalboard.core.compare import REPLAY_OUTCOMES
from evalboard.wording.numbers import capital, listed

Result = Mapping[str, Any]

PARTED_OUTCOMES = "flip", "shorter", "longer"
MAX_WORDS = 300  # of an engine's own account of why there is no answer


def replay_command(run_id: int, case_id: str, *, repeat: int) -> str:
    """Return the `evalboard replay` command of one response, quoted for a shell."""
    if case_id.startswith("-"):
        return f"evalboard replay --repeat {repeat} -- {run_id} {shlex.quote(case_id)}"
    return f"evalboard replay {run_id} {shlex.quote(case_id)} --repeat {repeat}"


def explain_replay(results: Sequence[Result]) -> tuple[str, ...]:
    """Say what the results of a replay show, the finding first and what limits it after."""
    sentences: list[str] = []
    by_dtype = _grouped(results, "dtype")
    for dtype, group in by_dtype.items():
        has_sizes = any("batch_size" in each["variant"] for each in group)
        lines = _render_sizes(group, by_first=dtype is not None) if has_sizes else [_sentence(each) for each in group]
        sentences += [f"{dtype}: {sentence}" if dtype is not None else sentence for sentence in lines]
    return (*sentences, *_limits(results))


def explain_result(result: Result) -> str:
    """Return one result in a few words, for a table."""
    outcome = result["outcome"]
    if outcome == "error":
        return f"no answer: {_reason(result)}"
    if outcome == "decoded":
        return "decoded; the run has no response to compare with"
    return _render_parting(result)


def _sentence(result: Result) -> str:
    if result["outcome"] == "error":
        return f"There is no answer: {_reason(result)}"
    parting = _choose_parting(result)
    if parting is None:
        return "Decoded again; there is nothing to compare it with."
    if parting["outcome"] == "identical":
        return f"Identical: every token and logprob equals {_basis(result)} to the bit."
    return f"{capital(_render_parting(parting))}, against {_basis(result)}."


def _render_sizes(group: Sequence[Result], *, by_first: bool) -> list[str]:
    """Return lines for each batch size with its first choice of neighbours, then other neighbours.

    by_first: under another dtype than the run's every size differs from its response, so they are compared with the
    first size.
    """
    by_size = _grouped(group, "batch_size")
    firsts = {size: members[0] for size, members in by_size.items()}
    decoded = {size: each for size, each in firsts.items() if each["outcome"] != "error"}
    by_first = by_first and len(decoded) > 1
    partings = {size: each["against_first"] if by_first else _choose_parting(each) for size, each in decoded.items()}
    sentences = []
    if by_first:
        size, first = next(iter(decoded.items()))
        sentences.append(f"At batch size {size}: {_sentence(first)}")
    sentences += _sweep(partings)
    if len(decoded) > 1 and any(parting is None for parting in partings.values()):
        sentences.append(f"Each batch size is compared with {next(iter(decoded))}.")
    for size, each in firsts.items():
        if each["outcome"] == "error":
            sentences.append(f"There is no answer at batch size {size}: {_reason(each)}")
    for size, members in by_size.items():
        sentences += [*_render_neighbours(size, members), *_not_reached(size, members)]
    return sentences


def _sweep(partings: Mapping[int, Result | None]) -> list[str]:
    """Return lines that compare the batch sizes by their results.

    None marks the first size, which is the reference if the run has no response.
    """
    if not partings:
        return []
    sizes = sorted(partings)
    kinds = {size: "identical" if parting is None else str(parting["outcome"]) for size, parting in partings.items()}
    if all(kind == "identical" for kind in kinds.values()):
        return [_identical_everywhere(sizes)]
    same = [size for size in sizes if kinds[size] == "identical"]
    drifted = [size for size in sizes if kinds[size] == "drift"]
    parted = [size for size in sizes if kinds[size] in PARTED_OUTCOMES]
    first = " first" if len(sizes) > 1 else ""
    sentences = []
    if parted:
        sentences.append(f"{_at(parted, partings, f'Flips{first}')}{_only_at(parted, sizes)}.")
    if drifted:
        never = "" if parted else f"; no token changes at any size up to {sizes[-1]}" if first else "; no token changes"
        sentences.append(f"{_at(drifted, partings, f'Drifts{first}')}{_only_at(drifted, sizes)}{never}.")
    if same:
        sentences.append(f"Identical at batch size {_sizes(same)}.")
    return sentences


def _identical_everywhere(sizes: Sequence[int]) -> str:
    if len(sizes) == 1:
        return f"Identical at batch size {sizes[0]}."
    return f"Identical at every batch size from {sizes[0]} to {sizes[-1]}."


def _at(sizes: Sequence[int], partings: Mapping[int, Result | None], verb: str) -> str:
    """Render the comparison at the first of the sizes."""
    parting = partings[sizes[0]]
    assert parting is not None  # noqa: S101  for the type checker: without a comparison it counts as identical
    if parting["outcome"] == "drift":
        return f"{verb} at batch size {sizes[0]}, {_drift(parting)}"
    what = _tokens(parting) if parting["outcome"] == "flip" else _ending(parting)
    return f"{verb} at batch size {sizes[0]}, position {parting['flip_position']}: {what}"


def _only_at(sizes: Sequence[int], all_sizes: Sequence[int]) -> str:
    """Return the sizes, where they are not simply all from the first one on."""
    onwards = [size for size in all_sizes if size >= sizes[0]]
    return "" if list(sizes) == onwards else f" (at {_sizes(sizes)} of {_sizes(all_sizes)})"


def _render_neighbours(size: int, members: Sequence[Result]) -> list[str]:
    """With the size fixed, other neighbours must not change the answer."""
    decoded = [each for each in members if each["outcome"] != "error"]
    if len(decoded) < 2:
        return []
    other = next((each for each in decoded[1:] if each["against_neighbours"]["outcome"] != "identical"), None)
    if other is None:
        return [f"At batch size {size}, other neighbours change no bit ({len(decoded)} sets tried)."]
    n_first, n_other = decoded[0]["n_neighbour_prompt_tokens"], other["n_neighbour_prompt_tokens"]
    parting = other["against_neighbours"]
    sentence = f"Possible leakage: at batch size {size}, with other neighbours, the same case {_moved(parting)}."
    if n_first is None or n_other is None or n_first == n_other:
        return [sentence]
    shape = (
        f"But their prompts differ in length ({n_other:,} and {n_first:,} tokens). On kernels that are not "
        "batch-invariant, the shape of a step alone moves bits."
    )
    return [sentence, shape]


def _not_reached(size: int, members: Iterable[Result]) -> list[str]:
    """Return a line if a batch was not full, by the engine's counts of who shared each step."""
    decoded = [each for each in members if each["outcome"] != "error" and each["batch_max"] is not None]
    most = min((int(each["batch_max"]) for each in decoded), default=size)
    least = min((int(each["batch_min"]) for each in decoded), default=size)
    if most < size:
        return [f"Batch size {size} was not reached: at most {most} shared a step."]
    if least < size:
        return [f"Batch size {size} was not kept: in some steps only {least} took part."]
    return []


def _limits(results: Sequence[Result]) -> list[str]:
    """List what keeps the results from saying more."""
    decoded = [each for each in results if each["outcome"] != "error"]
    lines = []
    if any(each["outcome"] == "decoded" for each in decoded):
        lines.append("The run has no response to this case in this repeat to compare with.")
    if any(each["same_prompt"] is False for each in decoded):
        lines.append("The prompt's tokens are not those of the run: chat template, tokenizer or messages have changed.")
    if any(each["same_model"] is False for each in decoded):
        lines.append("The model is not the run's: its files have changed.")
    if any(each["same_fingerprint"] is False and "dtype" not in each["variant"] for each in decoded):
        lines.append("Decoded on another serving stack than the run's, which alone can move bits.")
    return lines


def _choose_parting(result: Result) -> Result | None:
    """Return the comparison with the run's response, or with the first variant if there is none."""
    bases = _bases(result)
    return next(iter(bases.values()), None)


def _bases(result: Result) -> dict[str, Result]:
    bases: dict[str, Result] = {}
    if result["outcome"] in REPLAY_OUTCOMES:
        bases["against_response"] = result
    if result.get("against_first") is not None:
        bases["against_first"] = result["against_first"]
    return bases


def _basis(result: Result) -> str:
    return "the run’s response" if "against_response" in _bases(result) else "the first variant"


def _render_parting(parting: Result) -> str:
    """Return the comparison as a predicate of "The case …"."""
    outcome = parting["outcome"]
    if outcome == "identical":
        return "identical"
    if outcome == "drift":
        return f"drifts {_drift(parting)}, and every token is the same"
    what = _tokens(parting) if outcome == "flip" else _ending(parting)
    return f"flips at position {parting['flip_position']}: {what}"


def _moved(parting: Result) -> str:
    return _render_parting(parting) if parting["outcome"] in PARTED_OUTCOMES else f"drifts {_drift(parting)}"


def _drift(parting: Result) -> str:
    if parting["drift_onset"] is None:
        return "in the alternatives that are listed"
    gap = parting["gap_at_onset"]
    return f"from position {parting['drift_onset']}" + ("" if gap is None else f" (by {gap:.2g} nats there)")


def _tokens(parting: Result) -> str:
    """Return the two tokens, with the margins that say how near the choice was."""
    margins = [parting[f"margin_{side}"] for side in ("baseline", "candidate")]
    near = "" if None in margins else f" (margins {margins[0]:.2g} and {margins[1]:.2g} nats)"
    return f"‘{parting['drawn_baseline']}’ → ‘{parting['drawn_candidate']}’{near}"


def _ending(parting: Result) -> str:
    goes_on = parting["drawn_baseline"] if parting["outcome"] == "shorter" else parting["drawn_candidate"]
    which = "the replay ends there" if parting["outcome"] == "shorter" else "the replay goes on there"
    return f"{which}, where the other {'goes on' if parting['outcome'] == 'shorter' else 'ends'} (‘{goes_on}’)"


def _reason(result: Result) -> str:
    error = result["error"]
    words = " ".join(str(error["detail"]).split())
    return f"{error['code']}: {words[:MAX_WORDS]}"


def _grouped(results: Iterable[Result], name: str) -> dict[Any, list[Result]]:
    """By a field of the variant, None where it has none; in the order of the results."""
    groups: dict[Any, list[Result]] = {}
    for each in results:
        groups.setdefault(each["variant"].get(name), []).append(each)
    return groups


def _sizes(sizes: Sequence[int]) -> str:
    return listed([str(size) for size in sizes])
