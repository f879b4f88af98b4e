"""Tags of the shell's own templates, and of lists on all pages."""

from django import template
from django.template import Engine
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from frontend.shell import static_files
from frontend.shell.findings import Part
from frontend.shell.lists import ListPage

register = template.Library()
register.simple_tag(static_files.plotly_style_ids)


@register.simple_tag
def sort_head(page: ListPage | str, name: str, label: str, classes: str = "") -> SafeString:
    """Render the head of a column by which a press sorts the list."""
    css = format_html(' class="{}"', classes) if classes else ""
    if not isinstance(page, ListPage):  # the same table where it is no list
        return format_html('<th scope="col"{}>{}</th>', css, label)
    head = page.head(name)
    sort = format_html(' aria-sort="{}"', head.direction) if head.direction else ""
    html = '<th scope="col"{}{}><a class="sort" href="{}">{}</a></th>'
    return format_html(html, css, sort, head.url, label)


@register.simple_tag
def sort_links(page: ListPage, *pairs: str) -> SafeString:
    """Render the orders of a list that has no heads; pairs: the name and the label of each."""
    links = (_sort_link(page, name, label) for name, label in zip(pairs[::2], pairs[1::2], strict=True))
    return format_html('<p class="sorts quiet">sort by {}</p>', mark_safe(" · ".join(links)))  # noqa: S308


@register.simple_tag(takes_context=True)
def added(context: template.Context, place: str) -> SafeString:
    """Render what wings add at a place of the page, of the `added` in its context."""
    rendered = []
    parts: tuple[Part, ...] = context.get("added") or ()
    for part in parts:
        if place in part.templates:
            with context.push(**part.shown):
                rendered.append(Engine.get_default().get_template(part.templates[place]).render(context))
    return mark_safe("".join(rendered))  # noqa: S308 (rendered by templates)


def _sort_link(page: ListPage, name: str, label: str) -> SafeString:
    head = page.head(name)
    current = mark_safe(' aria-current="true"') if head.direction else ""
    return format_html('<a class="sort {}" href="{}"{}>{}</a>', head.direction, head.url, current, label)
