"""The audit trail: who changed what, from where. PostgreSQL writes it (runs/migrations/_audit.py)."""

from django.db import models
from django.db.models.functions import Now


class AuditLineRecord(models.Model):
    """One change of one row, or one security event.

    A trigger of the changed table inserts it in the transaction of the change. At the end of that transaction it gets
    its number and the digest that covers it and the line before. After that the database refuses to change it.
    """

    number = models.BigIntegerField(null=True, unique=True, help_text="its place in the chain; null until the commit")
    at = models.DateTimeField(db_default=Now(), db_index=True)
    actor = models.CharField(max_length=20, help_text="person, token, anonymous, operator or database")
    person = models.CharField(max_length=150, blank=True, help_text="name of the person or of the server's account")
    credential = models.CharField(max_length=120, blank=True, help_text="the session's digest, or the token's label")
    address = models.CharField(max_length=60, blank=True)
    via = models.CharField(max_length=120, blank=True, help_text="the method and name of the address, or the command")
    act = models.CharField(max_length=20, help_text="created, changed, deleted, signed_in, refused, link_made …")
    kind = models.CharField(max_length=30, blank=True)
    subject = models.CharField(max_length=40, blank=True, help_text="the id of the row")
    name = models.CharField(max_length=300, blank=True)
    changes = models.JSONField(default=dict, db_default={}, help_text="by field: [before, after], as text")
    request_id = models.CharField(max_length=80, blank=True)
    role = models.CharField(max_length=63, blank=True, help_text="the role that was connected to the database")
    previous = models.CharField(max_length=64, blank=True)
    digest = models.CharField(max_length=64, blank=True)

    class Meta:
        db_table = "runs_auditline"
        indexes = [
            models.Index(fields=["person", "-id"], name="audit_by_person"),
            models.Index(fields=["kind", "subject", "-id"], name="audit_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.person} {self.act} {self.kind} {self.subject}"


class AuditSeal(models.Model):
    """An HMAC on the digest of a line, which covers all lines before. The database has no key."""

    number = models.BigIntegerField(primary_key=True)
    digest = models.CharField(max_length=64)
    seal = models.CharField(max_length=64)
    seal_key = models.CharField(max_length=16)
    at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"seal of line {self.number}"
