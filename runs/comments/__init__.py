"""What people write about runs, cases and releases."""

from runs.comments.comments import comments_on, create_comment, withdraw_comment

__all__ = ["comments_on", "create_comment", "withdraw_comment"]
