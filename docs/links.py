# SPDX-License-Identifier: Apache-2.0
"""Checks that every link within the built site leads somewhere: ``python docs/links.py build/docs``."""

from __future__ import annotations

import argparse
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and where its links and pictures lead."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """What leads nowhere, with the page that it stands on; links to other hosts are not followed."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = anchor in pages[target].anchors if target in pages and anchor else target.exists()
            if not known:
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python docs/links.py", description=__doc__)
    parser.add_argument("site", type=Path)
    broken = broken_links(parser.parse_args().site)
    print("\n".join(broken) if broken else "All links within the site lead somewhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
