"""Tags of the shell's own templates."""

from django import template

from frontend.shell import static_files

register = template.Library()
register.simple_tag(static_files.plotly_style_ids)
