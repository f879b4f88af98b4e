"""Cases by id and by the words of their messages, and tokens by where responses flip to or from them."""

from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from django.contrib.postgres.search import SearchQuery, SearchVectorField
from django.db.models import F, Func, JSONField, Q, QuerySet, Value
from django.urls import reverse

from evalboard.contract.find import Hit
from evalboard.core.trace import END
from evalboard.path_converters import reverse_case
from evalboard.wording import find as words
from runs.compare import drawn
from runs.find.wanted import COUNTED, EXACT, PREFIX, Match, Wanted, make_hit, rank_name
from runs.models import Case, ComparisonRecord, VocabularyRecord
from runs.pairs import stored_words
from runs.run import prompt_of

LOOKED_AT = 400  # cases that hold the words, of all versions; of each suite the newest version that has one is shown
MIN_WORD = 2  # letters
TOKENS_LOOKED_FOR = 40  # spellings of what was typed, per vocabulary
COMPARISONS_LOOKED_AT = 100
# PostgreSQL breaks words at these by rules of its own ("tool-041" becomes "tool" and "-041"), so they become spaces,
# in the index (the function `case_words` of the database) and here.
PUNCTUATION = str.maketrans(dict.fromkeys("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", " "))
TOKEN_IDS = Func(
    F("summary"), Value("$.clusters[*].tokens[*][*]"), function="jsonb_path_query_array", output_field=JSONField()
)


def match_cases(wanted: Wanted) -> list[Match]:
    """Find cases by the start of their id, or by the starts of words in id and messages."""
    shown = Case.objects.filter(suite_version__suite__judged_suite=None)
    by_id = shown.filter(case_id__startswith=wanted.text).order_by("case_id", "-pk")
    rows = list(by_id.values_list("pk", "case_id", "suite_version__suite", "suite_version__created_at")[:LOOKED_AT])
    if parts := [part for part in wanted.text.translate(PUNCTUATION).split() if len(part) >= MIN_WORD]:
        with_words = shown.annotate(words=CaseWords()).filter(words=_prefixes(parts))
        rows += with_words.values_list("pk", "case_id", "suite_version__suite", "suite_version__created_at")[:LOOKED_AT]
    newest: dict[tuple[int, str], Match] = {}
    for key, case_id, suite, at in sorted(rows):
        newest[suite, case_id] = Match("case", key, rank_name(case_id, wanted), at)
    return list(newest.values())


class CaseWords(Func):
    """The words of a case's id and messages, as the index `case_words` has them."""

    function = "case_words"
    output_field = SearchVectorField()

    def __init__(self) -> None:
        super().__init__(F("case_id"), F("content"))


def _prefixes(parts: Sequence[str]) -> SearchQuery:
    return SearchQuery(" & ".join(f"'{part}':*" for part in parts), config="simple", search_type="raw")


def show_cases(matches: Sequence[Match]) -> Iterable[Hit]:
    by_id = {match.key: match for match in matches}
    for case in Case.objects.filter(pk__in=by_id).select_related("suite_version__suite"):
        version = case.suite_version
        yield make_hit(
            by_id[case.pk],
            case.case_id,
            " ".join(prompt_of(case).split()),
            str(version),
            case_page(version.suite.slug, case.case_id),
        )


def case_page(slug: str, case_id: str) -> str:
    """Return the address of a case's page."""
    return reverse_case("suite_case", slug, case_id)


def match_tokens(wanted: Wanted) -> list[Match]:
    """Find flips in the newest comparisons from or to tokens that start with the text, after spaces."""
    spelled = {key: _ids(key, wanted.text) for key in VocabularyRecord.objects.values_list("pk", flat=True)}
    ids = {token for of in spelled.values() for token in of}
    if not ids:
        return []
    rows = _with_any_of(ids).order_by("-pk").values_list("pk", "baseline", "candidate", "summary", "created_at")
    matches: dict[tuple[int, int, str], Match] = {}
    for key, baseline, candidate, summary, at in rows[:COMPARISONS_LOOKED_AT]:
        sides = [summary["sides"][side]["vocabulary"] for side in ("baseline", "candidate")]
        for cluster in summary["clusters"]:
            ranks = [
                spelled.get(vocabulary, {}).get(token)
                for pair in cluster["tokens"]
                for vocabulary, token in zip(sides, pair, strict=True)
            ]
            if near := [rank for rank in ranks if rank is not None]:
                place = (baseline, candidate, cluster["key"])
                matches.setdefault(place, Match("token", (key, cluster["key"]), min(near), at))
    return list(matches.values())[: COUNTED + 1]


def _with_any_of(ids: Iterable[int]) -> "QuerySet[ComparisonRecord]":
    has_one = Q()
    for token in ids:
        has_one |= Q(token_ids__contains=[token])
    whole = ComparisonRecord.objects.filter(
        status=ComparisonRecord.Status.FINISHED, baseline_repeat=None, candidate_repeat=None
    )
    return whole.annotate(token_ids=TOKEN_IDS).filter(has_one)


def _ids(vocabulary_id: int, text: str) -> dict[int, int]:
    """Return token id → rank of tokens spelled so; `·` and `⏎` mean a space and a line end."""
    plain = text.replace("·", " ").replace("⏎", "\n").strip() or text
    vocabulary = stored_words(vocabulary_id)
    if text == END:
        return dict.fromkeys(vocabulary.end_ids, EXACT)
    ranks = {}
    for token in vocabulary.ids_beginning(plain.encode()):
        bare = (vocabulary.token_bytes(token) or b"").strip()
        ranks[token] = EXACT if bare == plain.encode() else PREFIX
    return dict(sorted(ranks.items(), key=lambda item: item[1])[:TOKENS_LOOKED_FOR])


def show_tokens(matches: Sequence[Match]) -> Iterable[Hit]:
    rows = ComparisonRecord.objects.in_bulk({match.key[0] for match in matches})
    for match in matches:
        row = rows[match.key[0]]
        cluster = next(each for each in row.summary["clusters"] if each["key"] == match.key[1])
        names = [
            drawn(token, row.summary["sides"][side]["vocabulary"]) or "nothing"
            for side, token in zip(("baseline", "candidate"), cluster["tokens"][0], strict=True)
        ]
        about, fact = words.describe_flips(row.baseline_id, row.candidate_id, cluster["n_cases"])
        url = reverse("compare", args=[row.baseline_id, row.candidate_id])
        yield make_hit(match, " → ".join(names), about, fact, f"{url}?{urlencode({'cluster': cluster['key']})}#cases")
