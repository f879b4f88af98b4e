"""Rollouts as each trainer writes them: the same tokens and logprobs come out, without padding."""

import json
import math
from typing import Any

import numpy as np
import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.forced import check_on_policy
from evalboard.core.rollouts import Rollout, join_trainer, parse_rollouts
from tests import trainer_dumps
from tests.trainer_dumps import Laid

# A prompt of 3 tokens; an answer of 4, of which the third is a tool's.
PROMPT, TOKENS, SAMPLED = [11, 12, 13], [21, 22, 23, 24], [1, 1, 0, 1]
SAMPLER, TRAINER = [-0.5, -1.0, 0.0, -0.25], [-0.5, -1.5, 0.0, -0.125]

PLAIN: dict[str, Any] = {
    "prompt_token_ids": PROMPT,
    "token_ids": TOKENS,
    "logprobs": SAMPLER,
    "trainer_logprobs": TRAINER,
    "loss_mask": SAMPLED,
}
# Each as its writer has it: NeMo-RL's whole sequence padded on the right, in lists of one; verl's batch of tensors with
# the prompt padded on the left; SkyRL's training input padded on the left, and what its generator returns; TRL's inputs
# of the loss, and what its server answers (without a tool, as it knows none).
NEMO_RL = {
    "content": ["the text"],
    "rewards": [1.0],
    "input_lengths": [7],
    "token_ids": [[*PROMPT, *TOKENS, 0, 0]],
    "token_loss_mask": [[0, 0, 0, *SAMPLED, 0, 0]],
    "sample_loss_mask": [1.0],
    "generation_logprobs": [[0.0, 0.0, 0.0, *SAMPLER, 0.0, 0.0]],
    "prev_logprobs": [[0.0, -7.0, -8.0, *TRAINER, -9.0, 0.0]],
    "idx": 0,
}
VERL = {
    "prompts": [[0, 0, *PROMPT]],
    "responses": [[*TOKENS, 0]],
    "response_mask": [[*SAMPLED, 0]],
    "attention_mask": [[0, 0, 1, 1, 1, 1, 1, 1, 1, 0]],
    "rollout_log_probs": [[*SAMPLER, -1.0]],
    "old_log_probs": [[*TRAINER, 0.0]],
}
SKYRL_INPUT = {
    "sequences": [[0, *PROMPT, *TOKENS]],
    "attention_mask": [[0, 1, 1, 1, 1, 1, 1, 1]],
    "loss_mask": [[0.0, *map(float, SAMPLED)]],
    "response_mask": [[0, 1, 1, 1, 1]],
    "rollout_logprobs": [[0.0, *SAMPLER]],
    "action_log_probs": [[0.0, *TRAINER]],
}
SKYRL_OUTPUT = {
    "prompt_token_ids": [PROMPT],
    "response_ids": [TOKENS],
    "loss_masks": [SAMPLED],
    "rewards": [1.0],
    "stop_reasons": ["stop"],
    "rollout_metrics": {"turns": 2},
    "rollout_logprobs": [SAMPLER],
}
TRL_INPUT = {
    "prompt_ids": [[0, *PROMPT]],
    "prompt_mask": [[0, 1, 1, 1]],
    "completion_ids": [[*TOKENS, 0]],
    "completion_mask": [[1, 1, 1, 1, 0]],
    "tool_mask": [[*SAMPLED, 1]],
    "sampling_per_token_logps": [[*SAMPLER, 0.0]],
    "old_per_token_logps": [[*TRAINER, 0.0]],
    "num_items_in_batch": 3,
}
TRL_SERVER = {"prompt_ids": [PROMPT], "completion_ids": [TOKENS], "logprobs": [[[each] for each in SAMPLER]]}

WRITTEN = {
    "plain": PLAIN,
    "nemo-rl": NEMO_RL,
    "verl": VERL,
    "skyrl-training-input": SKYRL_INPUT,
    "trl-inputs": TRL_INPUT,
    "skyrl-generator": SKYRL_OUTPUT | {"tool": 0},
    "trl-server": TRL_SERVER,
}


def parse(*rows: dict[str, Any]) -> tuple[Rollout, ...]:
    return parse_rollouts([json.dumps(row) + "\n" for row in rows], field="ROLLOUTS")


def plain(**other: Any) -> Rollout:
    return parse(PLAIN | other)[0]


@pytest.mark.parametrize("name", list(WRITTEN))
def test_every_writer_s_rollout_is_the_same(name: str) -> None:
    (rollout,) = parse(WRITTEN[name])
    assert rollout.prompt_ids is not None
    assert rollout.prompt_ids.tolist() == PROMPT
    assert rollout.token_ids.tolist() == TOKENS
    is_sampled = [1, 1, 1, 1] if name == "trl-server" else SAMPLED
    assert rollout.is_sampled.tolist() == [bool(each) for each in is_sampled]
    assert rollout.logprobs.tolist() == SAMPLER
    if name in ("skyrl-generator", "trl-server"):
        assert rollout.trainer is None
    else:
        assert rollout.trainer is not None
        assert rollout.trainer.tolist() == TRAINER


def test_a_batch_is_as_many_rollouts() -> None:
    rows = {name: [*value, *value] for name, value in VERL.items()}
    one, other = parse(rows)
    assert one.token_ids.tolist() == other.token_ids.tolist() == TOKENS


# A long prompt with a short answer, and the other way round: no padding fits both, and the third is short in all.
UNEQUAL = (
    Laid(prompt=[11, 12, 13, 14, 15], tokens=[21, 22], sampled=[1, 1], sampler=[-0.5, -1.0], trainer=[-0.25, -1.0]),
    Laid(
        prompt=[16],
        tokens=[31, 32, 33, 34, 35, 36],
        sampled=[1, 1, 0, 0, 1, 1],
        sampler=[-0.5, -1.5, 0.0, 0.0, -2.0, -0.125],
        trainer=[-0.5, -1.5, -9.0, -9.0, -2.5, -0.125],
    ),
    Laid(prompt=[17], tokens=[41], sampled=[1], sampler=[-0.75], trainer=[-0.75]),
)


@pytest.mark.parametrize("writer", list(trainer_dumps.PADDED))
def test_what_a_trainer_pads_unequal_rollouts_with_is_cut(writer: str) -> None:
    rollouts = parse(*trainer_dumps.PADDED[writer](UNEQUAL))
    for rollout, laid in zip(rollouts, UNEQUAL, strict=True):
        assert rollout.prompt_ids is not None
        assert rollout.prompt_ids.tolist() == laid.prompt
        assert rollout.token_ids.tolist() == laid.tokens
        assert rollout.is_sampled.tolist() == [each == 1 for each in laid.sampled]
        assert rollout.logprobs.tolist() == laid.sampler
        trainer = None if rollout.trainer is None else rollout.trainer.tolist()
        assert trainer == (None if writer == "skyrl-generator" else laid.trainer)


def test_a_server_s_answers_to_one_prompt_share_it() -> None:
    several = parse(
        {
            "prompt_ids": [[11, 12], [13]],
            "completion_ids": [[21], [22], [23], [24]],
            "logprobs": [[[-0.5]], [[-0.25]], [[None]], [[-1.0]]],
            "logprob_token_ids": [[[21]], [[22]], [[23]], [[24]]],
        }
    )
    prompts = [None if each.prompt_ids is None else each.prompt_ids.tolist() for each in several]
    assert prompts == [[11, 12], [11, 12], [13], [13]]
    assert [each.token_ids.tolist() for each in several] == [[21], [22], [23], [24]]


def test_prompts_that_fit_no_number_of_answers_are_refused() -> None:
    row = {"prompt_ids": [[11], [12]], "completion_ids": [[21], [22], [23]], "logprobs": [[-0.5]] * 3}
    with pytest.raises(InvalidInput, match="prompt_ids must be a list of token ids"):
        parse(row)


@pytest.mark.parametrize(
    ("writer", "whose"),
    [
        ("verl", "verl's dump of its rollouts or validations"),
        ("skyrl", "SkyRL's dump of an evaluation"),
        ("nemo-rl", "NeMo-RL's log of a validation"),
    ],
)
def test_texts_that_a_trainer_dumps_are_refused_by_their_name(writer: str, whose: str) -> None:
    with pytest.raises(InvalidInput, match=f"line 1: it is {whose}, which has texts and no token ids or logprobs"):
        parse(trainer_dumps.TEXTS[writer])


def test_a_null_is_an_unknown_logprob() -> None:
    rollout = plain(logprobs=[None, -1.0, 0.0, -0.25])
    assert math.isnan(rollout.logprobs[0])
    assert check_on_policy([rollout]).figures.n_compared == 2


def test_a_rollout_of_which_nothing_was_sampled_is_empty() -> None:
    assert len(plain(loss_mask=[0, 0, 0, 0]).token_ids) == 0


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{", "line 2: "),
        ("[]", "it is no object"),
        ('{"text": "a"}', "no tokens with logprobs under any known name"),
        ({"token_ids": [-1, 2, 3, 4]}, "token_ids must be a list of token ids"),
        ({"token_ids": [True, 2, 3, 4]}, "token_ids must be a list of token ids"),
        ({"logprobs": [-0.5]}, "logprobs has 1 numbers for 4 tokens"),
        ({"logprobs": ["a", 1, 2, 3]}, "logprobs must be a list of logprobs"),
        ({"logprobs": [1e39, 1, 2, 3]}, "logprobs must be a list of logprobs"),
        ({"loss_mask": [1, 1]}, "loss_mask has 2 numbers for 4 tokens"),
        ({"loss_mask": [1, 1, 2, 0]}, "loss_mask must be a list of 0 and 1"),
    ],
)
def test_what_is_no_rollout_is_refused_by_its_line(row: str | dict[str, Any], problem: str) -> None:
    line = row if isinstance(row, str) else json.dumps(PLAIN | row)
    with pytest.raises(InvalidInput) as refused:
        parse_rollouts([json.dumps(PLAIN), line], field="ROLLOUTS")
    assert refused.value.fields["ROLLOUTS"].startswith("line 2: ")
    assert problem in refused.value.fields["ROLLOUTS"]


def test_a_file_without_rollouts_is_refused() -> None:
    with pytest.raises(InvalidInput, match="holds no rollout"):
        parse_rollouts(["\n"], field="ROLLOUTS")


def test_a_trainer_s_file_is_joined_by_order_or_by_name() -> None:
    own = {name: PLAIN[name] for name in ("token_ids", "loss_mask")}
    sampled = parse(*[own | {"id": name, "logprobs": SAMPLER} for name in "ab"])
    scored = parse(*[own | {"id": name, "logprobs": [-float(n)] * 4} for n, name in ((2, "b"), (1, "a"))])
    joined = join_trainer(sampled, scored, field="--trainer")
    assert [each.trainer.tolist() for each in joined if each.trainer is not None] == [[-1.0] * 4, [-2.0] * 4]
    unnamed = parse(*[own | {"logprobs": [-float(n)] * 4} for n in (1, 2)])
    joined = join_trainer(sampled, unnamed, field="--trainer")
    assert [each.trainer.tolist() for each in joined if each.trainer is not None] == [[-1.0] * 4, [-2.0] * 4]


def test_a_trainer_s_file_of_other_tokens_is_refused() -> None:
    with pytest.raises(InvalidInput, match="rollout 1 has other tokens"):
        join_trainer([plain()], [plain(token_ids=[21, 22, 23, 25])], field="--trainer")
    with pytest.raises(InvalidInput, match="2 rollouts where 1 were sampled"):
        join_trainer([plain()], [plain(), plain()], field="--trainer")


def test_only_what_the_model_sampled_is_compared_and_keeps_its_place() -> None:
    check = check_on_policy(parse(NEMO_RL))
    assert check.figures.n_positions == check.figures.n_compared == 3
    assert [(each.position, each.log_ratio) for each in check.worst] == [(1, -0.5), (3, 0.125)]


def test_the_states_of_a_check() -> None:
    same = plain(trainer_logprobs=SAMPLER)
    assert check_on_policy([same]).state == "bit_identical"
    rng = np.random.default_rng(0)

    def drift(scale: float, n: int) -> list[Rollout]:
        logprobs = rng.uniform(-2, 0, (n, 200))
        shifted = logprobs + rng.normal(0, scale, logprobs.shape)
        rows = [
            {"token_ids": list(range(200)), "logprobs": one.tolist(), "trainer_logprobs": other.tolist()}
            for one, other in zip(logprobs, shifted, strict=True)
        ]
        return list(parse(*rows))

    assert check_on_policy(drift(0.01, 20)).state == "on_policy"
    assert check_on_policy(drift(0.1, 20)).state == "off_policy"
    assert check_on_policy(drift(0.1, 20), max_kl=0.1).state == "on_policy"
    assert check_on_policy(drift(0.045, 20)).state == "too_few_tokens"  # half of its square is the limit
    assert check_on_policy(drift(0.5, 4)).state == "too_few_tokens"  # responses without an interval
    assert check_on_policy([plain(trainer_logprobs=[None] * 4)]).state == "too_few_tokens"


def test_a_field_of_zeros_is_no_trainer() -> None:
    with pytest.raises(InvalidInput, match="Every logprob of the trainer is 0"):
        check_on_policy([plain(trainer_logprobs=[0.0] * 4)])
