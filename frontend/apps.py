from typing import Any

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.core.validators import MaxValueValidator, MinValueValidator


class FrontendConfig(AppConfig):
    name = "frontend"

    def ready(self) -> None:
        user_logged_in.connect(_begin_session)
        from frontend.shell.forms import LIMITS  # needs the apps to be loaded

        for validator, code in ((MinValueValidator, "least"), (MaxValueValidator, "most")):
            validator.message = LIMITS.write(code)


def _begin_session(request: Any, **facts: Any) -> None:
    from frontend.shell.middleware import begin_session  # needs the apps to be loaded

    begin_session(request)
