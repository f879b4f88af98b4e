"""The tokens that a probe's numbers speak of, as people can see them."""

from collections.abc import Collection

from evalboard.core.vocabulary import Vocabulary
from runs.models import EngineProcess, Probe


def probe_tokens(probe_id: int, token_ids: Collection[int]) -> dict[int, str]:
    """Tokens by their ids, as any engine process of the probe has them; empty where nobody stored a vocabulary."""
    answers = Probe.objects.values_list("answers", flat=True).get(pk=probe_id) if token_ids else []
    processes = {call["engine_process"] for call in answers}
    process = EngineProcess.objects.filter(pk__in=processes - {None}, vocabulary__isnull=False).first()
    if process is None or process.vocabulary is None:
        return {}
    words = Vocabulary.unpack(bytes(process.vocabulary.data))
    return dict(zip(token_ids, words.draw(token_ids), strict=True))
