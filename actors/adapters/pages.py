"""What an error says that is a page or a redirect: gateways, proxies and captive portals answer with these."""

import re
from collections.abc import Mapping
from html import unescape

MAX_TITLE = 120
"""Characters of a page's title that are kept."""
_PAGE = re.compile(r"\s*(?:<!doctype|<html|<\?xml|<head|<body|<center|<h1)", re.IGNORECASE)
_TITLES = tuple(
    re.compile(rf"<{tag}\b[^>]{{0,200}}>([^<]{{1,1000}})<", re.IGNORECASE)
    for tag in ("title", "h1", "h2", "message", "p")
)
_REDIRECTS = (301, 302, 303, 307, 308)


def page_title(text: str, status: int | None) -> str | None:
    """Return in one short line what a page says, with its status; None if the text is no page."""
    if not _PAGE.match(text):
        return None
    answer = f"HTTP {status}" if status else "The answer"
    titles = (found[1] for pattern in _TITLES if (found := pattern.search(text)))
    lines = (" ".join(unescape(title).split()) for title in titles)
    title = next((line for line in lines if line), "")
    title = title.removeprefix(str(status)).strip(" :-") or title
    return f"{answer}: {title[:MAX_TITLE]}" if title else f"{answer}: a page without a title"


def redirect(status: int, headers: Mapping[str, str]) -> str | None:
    """Return where a redirect leads, without its query, which may hold a key; None if it is none."""
    target = headers.get("location", "").strip().partition("?")[0].partition("#")[0]
    if status not in _REDIRECTS or not target:
        return None
    return f"HTTP {status}: it redirects to {target}, and redirects are not followed; set base_url to where the API is"
