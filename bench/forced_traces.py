"""Answers of the sample model on four stacks, all scored on the first: float32, bfloat16, and weights of 8 and 4 bits.

Real engines decode and score. The next call reads what they gave from bench/results/forced/, so that the simulations
can be made again without them. `flock` around the whole keeps a shared machine to one engine at a time.
"""

import itertools
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evalboard.core.forced import ForcedPositions, measure_positions
from evalboard.core.trace import join_traces, make_trace

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "bench" / "results" / "forced"
STORED_ANSWERS = STORED / "fresh"
BENCH = Path(__file__).parent
MAX_TOKENS = 64
REFERENCE = "float32"
BITS = {"8 bits": 8, "4 bits": 4}  # both answer in bfloat16
STACKS = ("bfloat16", *BITS)
N_BANDS = 40  # prompts that make the bands; the others are held apart
# The statistic of a verification was chosen by answers to these.
WISHES = (
    "Explain in a few sentences {}.",
    "Write the first lines of a story about {}.",
    "Give three facts on {}, as a list.",
    "What would you ask an expert on {}? Write a short letter.",
    "Describe {} to a child of six.",
)
SUBJECTS = (
    "how bread is baked",
    "the tides of the sea",
    "a lighthouse at night",
    "the rings of Saturn",
    "learning to swim",
    "old railway stations",
    "how glass is made",
    "the life of bees",
    "a city without cars",
    "the history of paper",
    "volcanoes under ice",
    "playing the violin",
    "the first telephones",
    "a garden in winter",
    "how rivers change course",
    "mountain weather",
    "the work of a baker",
    "ships in bottles",
    "why leaves turn red",
    "a market in the morning",
    "clocks and pendulums",
    "the bones of the hand",
    "sand dunes",
    "a long train journey",
)


# By answers to these nothing was chosen: they have no subject and no wish of the others.
FRESH_WISHES = (
    "My neighbour knows nothing about {}. What should I tell her first?",
    "Compare {} today with fifty years ago.",
    "Write a dialogue of two friends who disagree about {}.",
    "Which mistakes do beginners make with {}, and why?",
    "Invent a museum for {} and describe its first room.",
)
FRESH_SUBJECTS = (
    "repairing a bicycle",
    "growing tomatoes on a balcony",
    "reading maps",
    "chess openings",
    "keeping a diary",
    "public libraries",
    "night buses",
    "knitting socks",
    "brewing coffee",
    "forecasting the harvest",
    "singing in a choir",
    "wooden bridges",
    "saving money",
    "training a dog",
    "packing for a hike",
    "tuning a piano",
    "street lamps",
    "collecting stamps",
    "roof tiles",
    "learning a second alphabet",
    "cutting hair",
    "fishing through ice",
    "writing letters by hand",
    "moving house",
)


def prompts() -> list[str]:
    """Return the texts by which the statistic was chosen, subject by subject."""
    return [wish.format(subject) for subject, wish in itertools.product(SUBJECTS, WISHES)]


def fresh_prompts() -> list[str]:
    """Return the other texts subject by subject, so that bands and tests have every wish and no subject in common."""
    return [wish.format(subject) for subject, wish in itertools.product(FRESH_SUBJECTS, FRESH_WISHES)]


def load(stack: str, *, model: Path, python: Path) -> ForcedPositions:
    """Return the answers of one stack to the fresh prompts, each scored on the reference, in their order."""
    reference = _reference(model, python)
    sampled = reference["decoded"] if stack == REFERENCE else _decoded(stack, model, python)
    n = len(fresh_prompts())
    first = n * [*STACKS, REFERENCE].index(stack)
    traces = [make_trace(each["token_ids"], each["logprobs"], [[]] * len(each["token_ids"])) for each in sampled]
    forced = [
        make_trace(each["token_ids"], scores["logprobs"], [[(0, top)] for top in scores["tops"]])
        for each, scores in zip(sampled, reference["scored"][first : first + n], strict=True)
    ]
    return measure_positions(join_traces(traces), join_traces(forced))


def select(positions: ForcedPositions, chosen: Sequence[int]) -> ForcedPositions:
    """Return the positions of some responses, in this order; one may come more than once."""
    own = [slice(*positions.starts[index : index + 2].tolist()) for index in chosen]
    starts = np.concatenate([[0], np.cumsum([each.stop - each.start for each in own], dtype=np.int64)])
    return ForcedPositions(
        starts,
        np.concatenate([positions.log_ratios[each] for each in own]),
        np.concatenate([positions.deficits[each] for each in own]),
    )


def _reference(model: Path, python: Path) -> dict[str, Any]:
    path = STORED_ANSWERS / "reference.json"
    if not path.exists():
        given = [(each["prompt_ids"], each["token_ids"]) for stack in STACKS for each in _decoded(stack, model, python)]
        _write(path, _run(python, model, "float32", given=given, scores=True))
    return dict(json.loads(path.read_text()))


def _decoded(stack: str, model: Path, python: Path) -> list[dict[str, Any]]:
    path = STORED_ANSWERS / f"{stack.replace(' ', '_')}.json"
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            served = model
            if stack in BITS:
                served = Path(folder) / "rounded"
                command = [python, BENCH / "rounded_model.py", model, served, str(BITS[stack])]
                subprocess.run(command, check=True)
            _write(path, _run(python, served, "bfloat16", given=[], scores=False))
    return list(json.loads(path.read_text())["decoded"])


def _run(python: Path, model: Path, dtype: str, *, given: Sequence[Any], scores: bool) -> dict[str, Any]:
    plan = {
        "model": str(model),
        "dtype": dtype,
        "max_tokens": MAX_TOKENS,
        "prompts": fresh_prompts(),
        "given": given,
        "scores": scores,
    }
    command = ["flock", os.environ.get("EVALBOARD_ENGINE_LOCK", os.devnull), python, BENCH / "forced_engine.py"]
    ended = subprocess.run(command, input=json.dumps(plan) + "\n", stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(ended.stdout))


def _write(path: Path, reply: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(reply))
