"""What a replay's results say, for people; and which cases share a batch with the one that is decoded again.

A result is the dictionary that `core.replay_result` writes; docs/api.md lists its fields.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Result = Mapping[str, Any]

HELD = "identical", "drift", "flip", "shorter", "longer"  # outcomes of what was held against another answer
PARTED = "flip", "shorter", "longer"
MAX_WORDS = 300  # of an engine's own account of why there is no answer


def neighbours(case_index: int, *, n_cases: int, batch_size: int, shift: int = 0) -> list[int]:
    """The case indexes that fill a batch: the next ones, wrapped, beginning `shift` further on.

    A suite with fewer cases than the batch has places gives some twice; one of a single case gives that one.
    """
    others = [(case_index + step) % n_cases for step in range(1, n_cases)] or [case_index]
    return [others[(shift + place) % len(others)] for place in range(batch_size - 1)]


def shifts(*, n_choices: int, n_cases: int, batch_size: int) -> list[int] | None:
    """Where each of several choices of neighbours begins, apart as far as the suite allows; None: it has too few cases.

    Two choices never are the same cases, so one case must be left over.
    """
    n_others = n_cases - 1
    if n_choices == 1 or batch_size == 1:
        return [0]
    if n_others < max(batch_size, n_choices):
        return None
    step = min(batch_size - 1, n_others // n_choices)
    return [choice * step for choice in range(n_choices)]


def reading(results: Sequence[Result]) -> tuple[str, ...]:
    """Say what the results of a replay show, the finding first and what limits it after."""
    sentences: list[str] = []
    by_dtype = _grouped(results, "dtype")
    for dtype, group in by_dtype.items():
        has_sizes = any("batch_size" in each["variant"] for each in group)
        found = _of_sizes(group, by_first=dtype is not None) if has_sizes else [_sentence(each) for each in group]
        sentences += [f"{dtype}: {sentence}" if dtype is not None else sentence for sentence in found]
    return (*sentences, *_limits(results))


def phrase(result: Result) -> str:
    """One result in a few words, for a table."""
    outcome = result["outcome"]
    if outcome == "error":
        return f"no answer: {_reason(result)}"
    if outcome == "decoded":
        return "decoded; the run has no response to hold it against"
    return _found(result)


def _sentence(result: Result) -> str:
    if result["outcome"] == "error":
        return f"There is no answer: {_reason(result)}"
    held = _held(result)
    if held is None:
        return "Decoded again, and there is nothing to hold it against."
    if held["outcome"] == "identical":
        return f"Identical: every token and every logprob has the bits of {_basis(result)}."
    return f"{_capital(_found(held))}, against {_basis(result)}."


def _of_sizes(group: Sequence[Result], *, by_first: bool) -> list[str]:
    """The sweep over batch sizes, each with its first choice of neighbours; then what other neighbours did.

    by_first: under another dtype than the run's every size differs from its response, so they are held against the
    first size.
    """
    by_size = _grouped(group, "batch_size")
    firsts = {size: members[0] for size, members in by_size.items()}
    decoded = {size: each for size, each in firsts.items() if each["outcome"] != "error"}
    by_first = by_first and len(decoded) > 1
    held = {size: each["against_first"] if by_first else _held(each) for size, each in decoded.items()}
    sentences = []
    if by_first:
        size, first = next(iter(decoded.items()))
        sentences.append(f"At batch size {size}: {_sentence(first)}")
    sentences += _sweep(held)
    if len(decoded) > 1 and any(found is None for found in held.values()):
        sentences.append(f"Each batch size is held against {next(iter(decoded))}.")
    for size, each in firsts.items():
        if each["outcome"] == "error":
            sentences.append(f"There is no answer at batch size {size}: {_reason(each)}")
    for size, members in by_size.items():
        sentences += [*_of_neighbours(size, members), *_not_reached(size, members)]
    return sentences


def _sweep(held: Mapping[int, Result | None]) -> list[str]:
    """Held by batch size. None: the first one, against which the others are held where the run has no response."""
    if not held:
        return []
    sizes = sorted(held)
    kinds = {size: "identical" if found is None else str(found["outcome"]) for size, found in held.items()}
    if all(kind == "identical" for kind in kinds.values()):
        return [_identical_everywhere(sizes)]
    same = [size for size in sizes if kinds[size] == "identical"]
    drifted = [size for size in sizes if kinds[size] == "drift"]
    parted = [size for size in sizes if kinds[size] in PARTED]
    first = " first" if len(sizes) > 1 else ""
    sentences = []
    if parted:
        sentences.append(f"{_at(parted, held, f'Flips{first}')}{_only_at(parted, sizes)}.")
    if drifted:
        never = "" if parted else f"; no token changes at any size up to {sizes[-1]}" if first else "; no token changes"
        sentences.append(f"{_at(drifted, held, f'Drifts{first}')}{_only_at(drifted, sizes)}{never}.")
    if same:
        sentences.append(f"Identical at batch size {_listed(same)}.")
    return sentences


def _identical_everywhere(sizes: Sequence[int]) -> str:
    if len(sizes) == 1:
        return f"Identical at batch size {sizes[0]}."
    return f"Identical at every batch size from {sizes[0]} to {sizes[-1]}."


def _at(sizes: Sequence[int], held: Mapping[int, Result | None], verb: str) -> str:
    """What was found at the first of the sizes."""
    found = held[sizes[0]]
    assert found is not None  # noqa: S101  for the type checker: what is not held counts as identical
    if found["outcome"] == "drift":
        return f"{verb} at batch size {sizes[0]}, {_drift(found)}"
    what = _tokens(found) if found["outcome"] == "flip" else _ending(found)
    return f"{verb} at batch size {sizes[0]}, position {found['flip_position']}: {what}"


def _only_at(sizes: Sequence[int], all_sizes: Sequence[int]) -> str:
    """The sizes, where they are not simply all from the first one on."""
    onwards = [size for size in all_sizes if size >= sizes[0]]
    return "" if list(sizes) == onwards else f" (at {_listed(sizes)} of {_listed(all_sizes)})"


def _of_neighbours(size: int, members: Sequence[Result]) -> list[str]:
    """With the size fixed, other neighbours must not change the answer."""
    decoded = [each for each in members if each["outcome"] != "error"]
    if len(decoded) < 2:
        return []
    other = next((each for each in decoded[1:] if each["against_neighbours"]["outcome"] != "identical"), None)
    if other is None:
        return [f"At batch size {size} other neighbours change no bit: {len(decoded)} choices of them gave the same."]
    n_first, n_other = decoded[0]["n_neighbour_prompt_tokens"], other["n_neighbour_prompt_tokens"]
    found = other["against_neighbours"]
    sentence = f"Possible leakage: at batch size {size}, with other neighbours, the same case {_moved(found)}."
    if n_first is None or n_other is None or n_first == n_other:
        return [sentence]
    shape = (
        f"Their prompts have {n_other:,} tokens against {n_first:,}, though, and share a step with this one: "
        "on kernels that are not batch-invariant the shape of a step alone moves bits."
    )
    return [sentence, shape]


def _not_reached(size: int, members: Iterable[Result]) -> list[str]:
    """The engine counts who shared each step with the answer, so that a batch that was not full is seen."""
    decoded = [each for each in members if each["outcome"] != "error" and each["batch_max"] is not None]
    most = min((int(each["batch_max"]) for each in decoded), default=size)
    least = min((int(each["batch_min"]) for each in decoded), default=size)
    if most < size:
        return [f"Batch size {size} was not reached: at most {most} shared a step."]
    if least < size:
        return [f"Batch size {size} was not held throughout: in some step only {least} took part."]
    return []


def _limits(results: Sequence[Result]) -> list[str]:
    """What keeps the results from saying more."""
    decoded = [each for each in results if each["outcome"] != "error"]
    found = []
    if any(each["outcome"] == "decoded" for each in decoded):
        found.append("The run has no response to this case in this repeat to hold it against.")
    if any(each["same_prompt"] is False for each in decoded):
        found.append("The prompt's tokens are not those of the run: chat template, tokenizer or messages have changed.")
    if any(each["same_model"] is False for each in decoded):
        found.append("The model is not the run's: its files have changed.")
    if any(each["same_fingerprint"] is False and "dtype" not in each["variant"] for each in decoded):
        found.append("Another serving stack than the run's decoded it, and that alone can move bits.")
    return found


def _held(result: Result) -> Result | None:
    """What the result is read by: against the run's response, or where that cannot be, against the first variant."""
    bases = _bases(result)
    return next(iter(bases.values()), None)


def _bases(result: Result) -> dict[str, Result]:
    bases: dict[str, Result] = {}
    if result["outcome"] in HELD:
        bases["against_response"] = result
    if result.get("against_first") is not None:
        bases["against_first"] = result["against_first"]
    return bases


def _basis(result: Result) -> str:
    return "the run’s response" if "against_response" in _bases(result) else "the first variant"


def _found(held: Result) -> str:
    """What was found, as the rest of "The case …"."""
    outcome = held["outcome"]
    if outcome == "identical":
        return "identical"
    if outcome == "drift":
        return f"drifts {_drift(held)}, and every token is the same"
    what = _tokens(held) if outcome == "flip" else _ending(held)
    return f"flips at position {held['flip_position']}: {what}"


def _moved(held: Result) -> str:
    return _found(held) if held["outcome"] in PARTED else f"drifts {_drift(held)}"


def _drift(held: Result) -> str:
    if held["drift_onset"] is None:
        return "in the alternatives that are listed"
    gap = held["gap_at_onset"]
    return f"from position {held['drift_onset']}" + ("" if gap is None else f" (by {gap:.2g} nats there)")


def _tokens(held: Result) -> str:
    """The two tokens, with the margins that say how near the choice was."""
    margins = [held["margin_baseline"], held["margin_candidate"]]
    near = "" if None in margins else f" (margins {margins[0]:.2g} and {margins[1]:.2g} nats)"
    return f"‘{held['drawn_baseline']}’ → ‘{held['drawn_candidate']}’{near}"


def _ending(held: Result) -> str:
    goes_on = held["drawn_baseline"] if held["outcome"] == "shorter" else held["drawn_candidate"]
    which = "the replay ends there" if held["outcome"] == "shorter" else "the replay goes on there"
    return f"{which}, where the other {'goes on' if held['outcome'] == 'shorter' else 'ends'} (‘{goes_on}’)"


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


def _listed(sizes: Sequence[int]) -> str:
    names = [str(size) for size in sizes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
