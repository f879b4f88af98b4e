"""Who served a response: the first of the known places that says it, and nothing that may be a secret."""

from typing import Any

import pytest

from evalboard.importers.backends import address, flags, read_headers, served_by

BIFROST = {
    "X-Bifrost-Routing-Info-Provider": "vllm",
    "x-bifrost-routing-info-model": "llama",
    "x-bifrost-routing-info-key": "gpu-02",
}
LITELLM = {
    "X-LiteLLM-Model-Api-Base": "http://10.0.0.1:8101/v1",
    "x-litellm-model-id": "e1db",
    "x-litellm-model-name": "hosted_vllm/smol",
}
PORTKEY = {"x-portkey-provider": "openai", "x-portkey-last-used-option-index": "config.targets[1]"}
AZURE = {"x-ms-region": "West US", "x-ms-deployment-name": "gpt", "azureml-model-session": "d013-2024"}
OPENROUTER = {"provider": "Cerebras"}
FINGERPRINT = {"system_fingerprint": "fp-1"}


def test_the_first_place_in_the_order_gives_the_key() -> None:
    """Each place is taken away in turn: then the next one speaks."""
    headers = {**BIFROST, **LITELLM, **PORTKEY, **AZURE, "x-evalboard-backend": "blue"}
    body: dict[str, Any] = {**OPENROUTER, **FINGERPRINT}
    told = []
    for gone in ({"x-evalboard-backend"}, BIFROST, LITELLM, OPENROUTER, PORTKEY, AZURE, FINGERPRINT):
        found = served_by(headers=headers, body=body, base_url="http://host:1/v1")
        told.append((found.key_from, found.key))
        headers = {name: value for name, value in headers.items() if name not in gone}
        body = {name: value for name, value in body.items() if name not in gone}
    last = served_by(headers=headers, body=body, base_url="http://host:1/v1")
    assert [*told, (last.key_from, last.key)] == [
        ("x-evalboard-backend", "blue"),
        ("bifrost", "vllm llama gpu-02"),
        ("litellm", "http://10.0.0.1:8101/v1 e1db"),
        ("openrouter", "Cerebras"),
        ("portkey", "openai config.targets[1]"),
        ("azure", "West US gpt d013-2024"),
        ("system_fingerprint", "fp-1"),
        ("base_url", "http://host:1/v1"),
    ]


def test_nobody_said_is_unknown() -> None:
    found = served_by(headers={}, body={"system_fingerprint": None})
    assert (found.key, found.key_from, found.system_fingerprint, dict(found.parts)) == ("", "", "", {})


def test_the_gateways_word_on_the_model_counts_more_than_the_rewritten_body() -> None:
    assert served_by(headers=LITELLM, body={"model": "what-was-asked"}).model == "hosted_vllm/smol"
    assert served_by(headers={}, body={"model": "acme-2026-01-01"}).model == "acme-2026-01-01"


def test_bifrost_says_it_in_the_body_too() -> None:
    body = {
        "extra_fields": {"routing_info": {"provider": "vllm", "model": "llama", "key": "gpu-02", "is_fallback": True}}
    }
    found = served_by(headers={}, body=body)
    assert (found.key, found.key_from, found.model) == ("vllm llama gpu-02", "bifrost", "llama")
    assert flags({}, body) == ("fallback",)


SECRETS = {
    "Authorization": "Bearer s3cret",
    "Set-Cookie": "session=s3cret",
    "x-api-key": "s3cret",
    "x-litellm-key": "s3cret",
    "x-litellm-call-id": "s3cret-per-call",
    "x-ms-client-request-id": "s3cret-per-call",
    "openai-organization": "s3cret",
    "llm_provider-set-cookie": "s3cret",
    "x-litellm-model-api-base": "https://user:s3cret@host/v1?api_key=s3cret#s3cret",
    "llm_provider-x-ms-region": "West US",
}


def test_only_named_headers_are_kept_and_addresses_without_their_secrets() -> None:
    found = served_by(
        headers=SECRETS, body={"api_key": "s3cret"}, base_url="http://u:s3cret@host/v1/chat/completions?s3cret"
    )
    assert dict(found.parts) == {
        "base_url": "http://host/v1",
        "llm_provider-x-ms-region": "West US",
        "x-litellm-model-api-base": "https://host/v1",
    }
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://127.0.0.1:8101/v1/chat/completions", "http://127.0.0.1:8101/v1"),
        ("https://host/v1/completions/", "https://host/v1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
        ("http://host:port/v1", ""),
        ("file:///etc/passwd", ""),
        ("/v1/chat/completions", ""),
        ("http://[", ""),
        (None, ""),
    ],
)
def test_an_address_is_the_servers_and_not_the_calls(url: Any, found: str) -> None:
    assert address(url) == found


@pytest.mark.parametrize(
    ("headers", "body", "found"),
    [
        ({"x-litellm-attempted-retries": "0", "x-litellm-attempted-fallbacks": "0"}, {}, ()),
        ({"X-LiteLLM-Attempted-Retries": "2"}, {}, ("retried",)),
        ({"x-litellm-attempted-fallbacks": "1", "x-litellm-cache-key": "k"}, {}, ("cached", "fallback")),
        ({"x-bifrost-fallback-index": "1"}, {}, ("fallback",)),
        ({"x-ms-is-spilled-over": "true"}, {}, ("fallback",)),
        ({"x-portkey-cache-status": "SEMANTIC HIT", "x-portkey-retry-attempt-count": "-1"}, {}, ("cached",)),
        ({"x-portkey-cache-status": "MISS"}, {}, ()),
        ({"cf-aig-cache-status": "HIT"}, {}, ("cached",)),
        ({"Helicone-Cache": "HIT"}, {}, ("cached",)),
        ({"X-Cache-Status": "Hit"}, {}, ("cached",)),
        ({"X-Cache": "Hit from a-proxy"}, {}, ("cached",)),
        ({"X-Cache": "Miss from a-proxy", "cf-cache-status": "DYNAMIC"}, {}, ()),
        ({}, {"extra_fields": {"cache_debug": {"cache_hit": True}}}, ("cached",)),
        ({}, {"usage": {"prompt_tokens_details": {"cached_tokens": 64}}}, ()),
        ({"x-litellm-attempted-retries": "None"}, {"extra_fields": []}, ()),
    ],
)
def test_what_is_no_clean_sample_is_flagged(headers: dict[str, str], body: dict[str, Any], found: tuple[str]) -> None:
    assert flags(headers, body) == found


def test_headers_come_as_an_object_or_as_pairs_with_names_given_twice() -> None:
    assert read_headers([["Via", "a"], ["via", "b"], ["broken"], 3, [1, 2]]) == {"via": "a, b"}
    assert read_headers({"X-Ms-Region": ["West", "East"], "n": 1}) == {"x-ms-region": "West, East", "n": "1"}
    assert read_headers("no headers") == {}
