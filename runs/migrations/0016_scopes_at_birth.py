"""Take from tokens the scopes that their people's roles do not have: they did nothing, and would wake by a promotion."""

from typing import Any

from django.db import migrations

ROLES = {
    "viewer": {"read"},
    "engineer": {"read", "run"},
    "release manager": {"read", "run", "sign"},
    "admin": {"read", "run", "sign", "admin"},
}


def cut(apps: Any, schema_editor: Any) -> None:
    for token in apps.get_model("runs", "Token").objects.select_related("user").prefetch_related("user__groups"):
        if token.user.is_superuser:
            continue
        names = {group.name for group in token.user.groups.all()} & ROLES.keys()
        theirs = {"read"}.union(*(ROLES[name] for name in names))
        kept = [scope for scope in token.scopes if scope in theirs]
        if kept != token.scopes:
            token.scopes = kept
            token.save(update_fields=["scopes"])


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0015_worker_identity'),
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.RunPython(cut, migrations.RunPython.noop),
    ]
