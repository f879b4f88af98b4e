"""Models that think, on the real vLLM: what switches do to the prompt, and where thinking ends and an answer begins.

The model is the small sample model under a chat template that thinks; it was never taught to.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalboard.calling.calls import DecodeRequest
from evalboard.core.trace import Decoded
from tests.worker.engine_cases import Running, by_index, decoded, make_plan, request

pytestmark = [pytest.mark.engine, pytest.mark.nightly]

QUESTION = "What is the capital of France?"
# As published models have it: thinking is opened by the prompt, or closed in it where it is switched off.
TEMPLATE = """{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if reasoning_effort is defined %}<|im_start|>system
Effort: {{ reasoning_effort }}<|im_end|>
{% endif %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% else %}<think>
{% endif %}"""


@pytest.fixture(scope="module")
def thinker(vllm_python: Path, sample_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("thinker")
    for file in sample_model.iterdir():
        if file.name != "chat_template.jinja":
            (folder / file.name).symlink_to(file)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    running = Running(vllm_python, folder, make_plan())
    yield running
    running.engine.stop()


def ask(thinker: Running, **sampling: Any) -> DecodeRequest:
    return request(0, QUESTION, {**thinker.plan.sampling, **sampling})


def answer(thinker: Running, **sampling: Any) -> Decoded:
    return decoded(by_index(thinker.engine.decode([ask(thinker, **sampling)]))[0])


def spell(thinker: Running, ids: Any) -> str:
    tokens = thinker.engine.vocabulary().tokens
    return b"".join(tokens[index] or b"" for index in ids.tolist()).decode()


def prompt(thinker: Running, **sampling: Any) -> str:
    """Decode the question and return the prompt that the engine was given."""
    return spell(thinker, answer(thinker, max_tokens=1, **sampling).trace.prompt_token_ids)


def test_switches_reach_the_template_and_a_template_ignores_what_it_does_not_read(thinker: Running) -> None:
    plain = prompt(thinker)
    assert plain.endswith("<think>\n")
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    assert prompt(thinker, **off) == f"{plain}\n</think>\n\n"
    assert "Effort: high" in prompt(thinker, reasoning_effort="high")
    assert prompt(thinker, chat_template_kwargs={"no_such_switch": 3}) == plain


def test_thinking_is_apart_from_the_answer_and_the_trace_has_both(thinker: Running) -> None:
    """The small model writes no tags of its own, so a word that it does write stands for the end tag."""
    plain = answer(thinker, max_tokens=24)
    assert (plain.reasoning, plain.n_reasoning_tokens) == (None, None)
    assert " capital of France" in plain.text
    thought, _, rest = plain.text.partition(" of France")
    tags = {"start": "<think>", "end": "of France"}
    apart = answer(thinker, max_tokens=24, reasoning_tags=tags)
    assert (apart.reasoning, apart.text) == (f"{thought} ", rest)
    assert apart.trace.digest == plain.trace.digest
    assert apart.n_reasoning_tokens is not None
    assert spell(thinker, apart.trace.token_ids[: apart.n_reasoning_tokens]) == f"{thought} of France"
    special = answer(thinker, max_tokens=24, reasoning_tags={"start": "<think>", "end": "<|im_end|>"})
    assert special.text == ""  # a special token is no part of any text; it ended the response
    assert special.n_reasoning_tokens == len(special.trace)

    closed = answer(thinker, reasoning_tags=tags, chat_template_kwargs={"enable_thinking": False})
    assert closed.reasoning is None  # the prompt closed the thinking: all of it is the answer


def test_what_never_stops_thinking_is_no_answer(thinker: Running) -> None:
    tags = {"start": "<think>", "end": "</think>"}
    cut = answer(thinker, max_tokens=5, reasoning_tags=tags)
    assert (cut.text, cut.finish_reason, cut.n_reasoning_tokens) == ("", "length", 5)
    assert cut.reasoning
