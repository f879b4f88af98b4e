import gc
from importlib import import_module

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what follows a run's changes: its figures and verdicts, and what goes on in a wing.

        Everything is imported by then, so collect garbage again, which evalboard/settings.py turned off.
        """
        from evalboard import wings
        from runs.release import verdicts
        from runs.run import keep_figures
        from runs.store import changes

        import_module("scipy.special")  # loaded at its first use, for which no request should wait
        changes.follow(keep_figures)
        changes.follow_where_allowed(verdicts.decide_resting_on)
        for advance_after in wings.gather("runs.{}", "AFTER_RUN"):
            changes.follow_where_allowed(advance_after)
        gc.freeze()
        gc.enable()
