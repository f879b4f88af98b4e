import gc

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let what is kept of runs follow them: their figures, experiments, and the verdicts that rest on them.

        All is imported then, so garbage is collected again, which evalboard/settings.py stopped.
        """
        from runs.lab import advance_after
        from runs.release import verdicts
        from runs.run import keep_figures
        from runs.store import changes

        changes.follow(keep_figures)
        changes.follow(verdicts.decide_resting_on)
        changes.follow(advance_after)
        gc.freeze()
        gc.enable()
