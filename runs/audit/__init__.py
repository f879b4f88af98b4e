"""The audit trail: who changed what, when and from where."""

from runs.audit.trail import AUDIT_ORDERS, AuditFilter, audit_lines, check_trail, cut_trail, export_lines, seal_trail

__all__ = ["AUDIT_ORDERS", "AuditFilter", "audit_lines", "check_trail", "cut_trail", "export_lines", "seal_trail"]
