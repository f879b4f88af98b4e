"""What one call to a server of others says, and what a refusal of it teaches."""

from typing import Any

import pytest

from evalboard.calling.calls import DecodeRequest
from evalboard.calling.request import Built, Dialect, NotCallable, build, learn
from evalboard.core.profile import DEFAULT_PROFILES

SAMPLING = {
    "temperature": 0.7,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "seed": 42,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.5,
    "min_tokens": 0,
    "ignore_eos": False,
    "skip_special_tokens": True,
    "logprobs": 3,
    "max_tokens": 64,
    "stop": ["\n\n"],
}
QUESTION = [{"role": "user", "content": "Why is the sky blue?"}]


def call(
    api: str = "chat",
    *,
    messages: list[dict[str, Any]] | None = None,
    tools: list[Any] | None = None,
    prompt_token_ids: list[int] | None = None,
    extra_body: dict[str, Any] | None = None,
    dialect: Dialect | None = None,
    is_vllm: bool = False,
    **sampling: Any,
) -> Built:
    request = DecodeRequest(
        case_index=7,
        messages=QUESTION if messages is None else messages,
        sampling=SAMPLING | sampling,
        tools=tools,
        prompt_token_ids=prompt_token_ids,
    )
    return build(
        request, api=api, model="m", extra_body=extra_body or {}, dialect=dialect or Dialect(), is_vllm=is_vllm
    )


def test_a_chat_has_the_usual_parameters_in_full_and_no_idle_ones():
    built = call()
    assert built.path == "/chat/completions"
    assert built.body == {
        "model": "m",
        "messages": QUESTION,
        "temperature": 0.7,
        "top_p": 1.0,
        "seed": 42,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.5,
        "stop": ["\n\n"],
        "logprobs": True,
        "top_logprobs": 3,
        "max_tokens": 64,
    }
    assert (built.left_out, built.seed) == ((), 42)


def test_what_asks_for_something_is_sent_to_everybody():
    built = call(top_k=20, min_p=0.1, repetition_penalty=1.1, min_tokens=4, ignore_eos=True, skip_special_tokens=False)
    sent = {"top_k": 20, "min_p": 0.1, "repetition_penalty": 1.1, "min_tokens": 4, "ignore_eos": True}
    assert {**sent, "skip_special_tokens": False}.items() <= built.body.items()


def test_a_vllm_is_sent_everything_for_its_defaults_are_the_models():
    """`vllm serve` takes top_k and the like out of the model's generation_config.json where a call is silent."""
    built = call(is_vllm=True)
    idle = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "ignore_eos": False, "skip_special_tokens": True}
    assert {**idle, "return_token_ids": True}.items() <= built.body.items()


def test_with_the_servers_own_temperature_nothing_neutral_is_sent():
    settings = DEFAULT_PROFILES["hosted"]["settings"]["sampling"]
    built = call(**settings)
    assert built.body.keys() - {"messages"} == {"model", "seed", "stop", "max_completion_tokens"}
    assert built.left_out == ()
    assert call(**{**settings, "top_p": 0.9}).body["top_p"] == 0.9
    assert call(is_vllm=True, **settings).body["top_p"] == 1.0


def test_a_limit_that_counts_the_thinking_replaces_the_suites():
    """Under its own name in a chat, or where a server refuses that by name, as `max_tokens`."""
    limits = {"max_completion_tokens": 4096, "max_tokens": 24}
    built = call(**limits)
    assert {name: value for name, value in built.body.items() if name in limits} == {"max_completion_tokens": 4096}
    assert call("completions", **limits).body["max_tokens"] == 4096
    assert call("responses", **limits).body["max_output_tokens"] == 4096
    learnt = learn(Dialect(), built, "Unrecognized request argument supplied: 'max_completion_tokens'")
    assert learnt == Dialect(is_plain_limit=True)
    again = call(dialect=learnt, **limits)
    assert {name: value for name, value in again.body.items() if name in limits} == {"max_tokens": 4096}
    assert learn(learnt, again, "Unsupported parameter: 'max_tokens'.") == Dialect(
        is_plain_limit=True, is_completion_limit=True
    )


def test_constants_of_the_endpoint_decide_nothing_that_the_profile_or_the_call_does():
    built = call(
        top_k=9, extra_body={"top_k": -1, "temperature": 2.0, "provider": {"only": ["a"]}, "stream": True, "n": 4}
    )
    assert built.body["top_k"] == 9
    assert built.body["temperature"] == 0.7
    assert built.body["provider"] == {"only": ["a"]}
    assert {"stream", "n"}.isdisjoint(built.body)


def test_thinking_goes_where_each_api_has_it():
    thinking = {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}}
    chat = call(**thinking, reasoning_tags={"start": "<think>", "end": "</think>"})
    assert thinking.items() <= chat.body.items()
    assert chat.left_out == ("reasoning_tags",)
    assert "reasoning_tags" not in chat.body
    assert call("responses", reasoning_effort="low").body["reasoning"] == {"effort": "low"}


def test_a_plain_completion_has_a_prompt_and_a_number_of_logprobs():
    built = call("completions")
    assert built.path == "/completions"
    assert built.body["prompt"] == "Why is the sky blue?"
    assert built.body["logprobs"] == 3
    assert {"messages", "top_logprobs"}.isdisjoint(built.body)
    assert call("completions", messages=[{"role": "completion", "content": "The sky"}]).body["prompt"] == "The sky"
    assert call("completions", messages=[], prompt_token_ids=[5, 6]).body["prompt"] == [5, 6]


@pytest.mark.parametrize(
    ("api", "messages", "tools"),
    [
        ("completions", [{"role": "system", "content": "Be brief."}, *QUESTION], None),
        ("completions", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], None),
        ("completions", QUESTION, [{"type": "function"}]),
        ("completions", [{"role": "assistant", "content": "The sky"}], None),
        ("completions", QUESTION * 2, None),
        ("completions", [{**QUESTION[0], "name": "ann"}], None),
        ("responses", [{"role": "tool", "content": "4"}], None),
        ("responses", [{"role": "tool", "content": "4", "tool_call_id": "a", "audio": {}}], None),
        ("responses", [{"role": "user", "content": "4", "tool_call_id": "a"}], None),
        ("responses", [{"role": "user", "content": "4", "tool_calls": []}], None),
        ("responses", [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}], None),
        ("responses", [{"role": "assistant", "tool_calls": [{"id": "a"}]}], None),
        ("responses", [{"role": "user", "content": "4", "audio": {}}], None),
        ("responses", [{"role": "assistant", "tool_calls": [{"function": {"name": "add"}}]}], None),
        ("chat", [], None),
        ("chat", [{"role": "completion", "content": "The sky"}], None),
    ],
)
def test_a_case_that_an_api_cannot_be_sent_is_refused_in_words(api: str, messages: Any, tools: Any):
    with pytest.raises(NotCallable, match="API"):
        call(api, messages=messages, tools=tools)


def test_the_responses_api_has_its_own_names_and_no_seed():
    tool = {"type": "function", "function": {"name": "add", "parameters": {}}}
    built = call("responses", tools=[tool])
    assert built.path == "/responses"
    assert built.body == {
        "model": "m",
        "input": QUESTION,
        "tools": [{"type": "function", "name": "add", "parameters": {}}],
        "temperature": 0.7,
        "top_p": 1.0,
        "top_logprobs": 3,
        "include": ["message.output_text.logprobs"],
        "max_output_tokens": 64,
        "store": False,
    }
    assert built.left_out == ("seed", "frequency_penalty", "stop")  # presence_penalty 0 asks for nothing
    assert built.seed is None


def test_tools_of_a_chat_are_sent_as_they_are_and_none_where_there_are_none():
    tools = [{"type": "function", "function": {"name": "add"}}]
    assert call(tools=tools).body["tools"] == tools
    assert "tools" not in call().body.keys() | call("responses").body.keys()


def test_a_talk_with_calls_of_tools_goes_to_the_responses_api_as_items():
    asked = {"id": "a", "type": "function", "function": {"name": "add", "arguments": {"x": 2, "y": 2}}}
    again = {"id": "b", "type": "function", "function": {"name": "add", "arguments": '{"x": 4}'}}
    talk = [
        *QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "a", "content": "4"},
        {"role": "assistant", "content": "Once more.", "tool_calls": [again]},
    ]
    assert call("responses", messages=talk).body["input"] == [
        *QUESTION,
        {"type": "function_call", "call_id": "a", "name": "add", "arguments": '{"x": 2, "y": 2}'},
        {"type": "function_call_output", "call_id": "a", "output": "4"},
        {"role": "assistant", "content": "Once more."},
        {"type": "function_call", "call_id": "b", "name": "add", "arguments": '{"x": 4}'},
    ]


def test_what_a_talk_may_leave_out_the_responses_api_is_sent_all_the_same():
    named = {"role": "tool", "tool_call_id": "a", "name": "now", "content": "noon"}
    asked = {"id": "a", "type": "function", "function": {"name": "now"}}
    bare = {"type": "web_search"}
    built = call(
        "responses", messages=[{"role": "assistant", "content": "", "tool_calls": [asked]}, named], tools=[bare]
    )
    assert built.body["input"] == [
        {"type": "function_call", "call_id": "a", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "noon"},
    ]
    assert built.body["tools"] == [bare]
    assert call("responses", messages=[{"role": "assistant", "content": ""}]).body["input"] == [
        {"role": "assistant", "content": ""}
    ]


def test_images_between_words_go_to_the_responses_api_in_their_order():
    words, image = {"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:,"}}
    sharp = {"type": "image_url", "image_url": {"url": "data:,", "detail": "high"}}
    (sent,) = call("responses", messages=[{"role": "user", "content": [words, image, sharp]}]).body["input"]
    assert [list(part.values()) for part in sent["content"]] == [
        ["input_text", "What is this?"],
        ["input_image", "data:,", "auto"],
        ["input_image", "data:,", "high"],
    ]
    (plain,) = call("responses", messages=[{"role": "user", "content": [words]}]).body["input"]
    assert plain["content"] == "What is this?"


@pytest.mark.parametrize(
    ("api", "refused", "is_sent"),
    [("chat", "", True), ("completions", "", True), ("responses", "", False), ("chat", "return_token_ids", False)],
)
def test_a_vllm_is_asked_for_token_ids_where_it_takes_that(api: str, refused: str, is_sent: bool):
    built = call(api, is_vllm=True, dialect=Dialect(refused=frozenset({refused} - {""})))
    assert built.body.get("return_token_ids", False) is is_sent


@pytest.mark.parametrize("refused", ["", "cache"])
def test_a_litellm_that_refuses_the_word_about_its_cache_is_not_sent_it(refused: str):
    built = call(dialect=Dialect(is_litellm=True, refused=frozenset({refused} - {""})))
    assert ("cache" in built.body, built.is_uncached) == (not refused, not refused)


def refusal(words: str, **sampling: Any) -> Dialect | None:
    return learn(Dialect(), call(top_k=20, **sampling), words)


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ('{"error": {"message": "Unknown parameter: \'top_k\'.", "param": "top_k"}}', {"top_k"}),
        ('{"error": {"message": "Unrecognized request argument supplied: top_k", "param": null}}', {"top_k"}),
        ('{"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]}', {"seed"}),
        ("litellm.UnsupportedParamsError: openai does not support parameters: ['seed', 'top_k']", {"seed", "top_k"}),
        ('{"error": {"message": "You are not allowed to request logprobs from this model"}}', {"logprobs"}),
        (
            '{"error": {"message": "Unsupported value: \'temperature\' does not support 0.7 with this model.", '
            '"param": "temperature", "code": "unsupported_value"}}',
            {"temperature"},
        ),
        ("Unsupported parameter: 'top_logprobs' is not supported with this model.", {"logprobs"}),
        ("Log probabilities: `topLogprobs` is not supported for this model.", {"logprobs"}),
        ("Top-K is not supported for this model.", {"top_k"}),
        ("TEMPERATURE does not support 0.", {"temperature"}),
        ("Unknown parameter: 'top_k'. Its seed and temperature stay.", {"top_k"}),  # what is quoted is meant
    ],
)
def test_a_parameter_that_is_refused_by_name_is_left_out_and_said_so(words: str, refused: set[str]):
    learnt = refusal(words)
    assert learnt == Dialect(refused=frozenset(refused))
    built = call(top_k=20, dialect=learnt)
    assert set(built.left_out) == refused
    assert not refused & set(built.body)
    assert "top_logprobs" not in built.body or "logprobs" not in refused


def test_a_limit_that_goes_by_another_name_is_sent_by_that_name():
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    learnt = refusal(words)
    assert learnt == Dialect(is_completion_limit=True)
    built = call(dialect=learnt)
    assert built.body["max_completion_tokens"] == 64
    assert "max_tokens" not in built.body
    assert built.left_out == ()
    assert learn(learnt, built, "Unknown parameter: 'max_completion_tokens'.") is None  # an answer without an end
    assert learn(learnt, call(), words) is None  # of a call that was under way before


@pytest.mark.parametrize(
    "words",
    [
        '{"error": {"message": "Invalid value at \'generation_config.seed\' (TYPE_INT32), 9007199254740993"}}',
        '{"error": {"message": "Invalid \'seed\': integer above maximum value.", "param": "seed", "code": "too_big"}}',
        '{"detail": [{"type": "less_than_equal", "loc": ["body", "seed"], "msg": "Must be less than 2147483648"}]}',
        "json: cannot unmarshal number 9007199254740993 into Go struct field ChatRequest.seed of type int32",
        "body/seed must be <= 2147483647",
        "Failed to deserialize: seed: invalid value: integer `9007199254740993`, expected i32",
        "seed out of range",
    ],
)
def test_a_complaint_about_the_value_of_the_seed_leaves_it_out(words: str):
    learnt = refusal(words)
    assert learnt == Dialect(refused=frozenset({"seed"}))
    built = call(dialect=learnt)
    assert (built.left_out, built.seed) == (("seed",), None)


@pytest.mark.parametrize(
    "words",
    [
        '{"error": {"message": "top_p must be between 0 and 1", "body": {"top_p": 2, "seed": 7}}}',
        "The prompt is about a seed.",
        '{"error": {"message": "max_tokens is too large: 64. This model has at most 16.", "param": "max_tokens"}}',
        '{"error": {"message": "Invalid value for \'top_logprobs\': integer above maximum value."}}',
        '{"error": {"message": "Unknown parameter: \'tools\'."}}',
        '{"error": {"message": "messages[0] is not allowed to be empty"}}',
        "",
    ],
)
def test_a_refusal_that_is_about_a_value_teaches_nothing(words: str):
    assert refusal(words) is None


def test_what_was_learnt_already_is_learnt_no_more():
    known = Dialect(refused=frozenset({"seed"}))
    assert learn(known, call(dialect=known), "Unknown parameter: 'seed'.") is None
