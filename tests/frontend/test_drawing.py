"""Nothing that a model wrote can hide, break out or turn the page around."""

import re

import pytest
from django.template import Context, Template
from django.test import RequestFactory

from frontend.templatetags import drawing


def test_markup_is_escaped():
    assert drawing.drawn("<script>alert(1)</script>") == "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>"


@pytest.mark.parametrize(
    "hidden",
    ["\u202e", "\u2066", "\u200b", "\u00ad", "\ufeff", "\x07", "\x1b", "\x7f", "\x85", "\u2028", "\U000e0041", "\r"],
)
def test_characters_that_cannot_be_seen_are_drawn_as_their_code(hidden):
    shown = drawing.drawn(f"a{hidden}b")
    assert hidden not in shown
    assert f"⟨U+{ord(hidden):04X}⟩" in shown


@pytest.mark.parametrize("plain", ["a\nb", "a\tb", "naïve", "日本語", "שלום", "👩‍🚀".replace("\u200d", "")])
def test_ordinary_text_of_any_script_stays_as_it_is(plain):
    assert drawing.drawn(plain) == f"<bdi>{plain}</bdi>"


def test_attributes_get_no_elements():
    assert drawing.drawn_plain('"\u202e<b>') == '"⟨U+202E⟩<b>'


def test_marks_of_a_token_are_set_apart_from_its_text():
    assert drawing.token("·the") == '<span class="drawn">·</span>the'
    assert drawing.token("⟨end⟩") == '<span class="drawn">⟨end⟩</span>'
    assert drawing.token("<b>&") == "&lt;b&gt;&amp;"


def test_a_message_with_parts_or_calls_is_shown_whole():
    assert drawing.content({"role": "user", "content": "Hi"}) == "Hi"
    parts = [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": "odd"}, {"type": "input_audio"}, "odd"]
    assert drawing.content({"role": "user", "content": parts}) == 'Hi\n[image]\n{"type": "input_audio"}\n"odd"'
    assert str(drawing.images([{"role": "user", "content": parts}])) == ""
    assert "get_weather" in drawing.content(
        {"role": "assistant", "content": "", "tool_calls": [{"name": "get_weather"}]}
    )


@pytest.mark.parametrize(
    ("score", "said"),
    [(1.0, "repeat 2: pass"), (0.0, "repeat 2: fail"), (0.5, "repeat 2: 0.50 of 1"), (None, "repeat 2: missing")],
)
def test_a_score_is_a_glyph_with_a_name(score, said):
    assert f'aria-label="{said}"' in drawing.score_mark(score, 2)


def test_long_text_is_one_line_in_tables():
    assert drawing.shortened("a\n b", 10) == "a b"
    assert drawing.shortened("abcdef", 4) == "abc…"


def test_a_page_explains_a_term_at_its_first_place_and_a_part_of_it_by_another_id():
    page, part = RequestFactory().get("/"), RequestFactory().get("/", headers={"HX-Request": "true"})
    template = Template('{% term "Runs by bucket" "bucket" %}|{% term "Bucket" %}')
    first, second = template.render(Context({"request": page})).split("|")
    assert 'popovertarget="term-bucket">Runs by bucket</button>' in first
    assert 'id="term-bucket" popover>One model, fingerprint and batch class together:' in first
    assert second == "Bucket"
    assert 'id="part-bucket"' in template.render(Context({"request": part}))
    tags = ('label "p"', 'label "KL per token, k1"', 'label "texts"', 'cause_label "near_tie"')
    labels = Template(f"{{% load pairs %}}{''.join(f'{{% {tag} %}}' for tag in tags)}")
    shown = labels.render(Context({"request": page}))
    assert re.findall('popovertarget="term-([a-z-]+)"', shown) == ["p", "kl", "near-tie"]


def test_ids_are_cut_by_what_they_share_and_in_the_middle_and_break_at_their_separators():
    names = ["bfcl/simple_python_129", "bfcl/simple_python_7", "bfcl/simple_java_33"]
    prefix = drawing.common_prefix(names)
    assert prefix == "bfcl/simple_"
    assert drawing.case_name(names[0], prefix) == "<bdi>…python_<wbr>129</bdi>"
    assert drawing.common_prefix(["case-1", "case-2"]) == "", "short ids fit as they are"
    assert drawing.common_prefix(names[:1]) == ""
    long = drawing.case_name("a" * 40 + "/" + "b" * 40)
    assert long == f"<bdi>{'a' * 18}…{'b' * 18}</bdi>"
    assert "<script" not in drawing.case_name("<script>", "")
