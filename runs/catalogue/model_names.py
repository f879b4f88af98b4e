"""Merge names of models with unknown weights that a person declared to be one model."""

from functools import cached_property

from evalboard.core.compare import is_all_that_is_known
from runs.models import SameModelRecord

__all__ = ["OneNames", "is_all_that_is_known"]


class OneNames:
    """The present merged names, read once on first use."""

    def of(self, name: str) -> str:
        """Return the name that all names of the model share: the first of them by the alphabet."""
        return self._shared.get(name, name)

    def all_of(self, name: str) -> set[str]:
        """Return every name of the model, this one among them."""
        return {known for known, shared in self._shared.items() if shared == self.of(name)} | {name}

    @cached_property
    def _shared(self) -> dict[str, str]:
        shared: dict[str, str] = {}
        same = SameModelRecord.objects.filter(taken_back_at__isnull=True)
        for pair in same.order_by("id").values_list("name", "other_name"):
            before = {shared.get(name, name) for name in pair}
            joined = {name for name, first in shared.items() if first in before}
            shared |= dict.fromkeys({*joined, *pair}, min(before))
        return shared
