"""Builds the book, and checks the links of its pages and the plots of its tables: `check.py MDBOOK`."""

import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import plots

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "target/book"


class Page(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids, self.links = set(), set()
        self.feed(file.read_text())

    def handle_starttag(self, _tag: str, attributes: list) -> None:
        for name, value in attributes:
            if name in ("id", "name"):
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def build(mdbook: str) -> None:
    """Builds the book; a warning is a failure."""
    command = subprocess.run([mdbook, "build", "docs"], check=False, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    lines = [line for line in command.stderr.splitlines() if not line.startswith(" INFO ")]
    if command.returncode or lines:
        sys.exit("\n".join(lines))


def broken_links(pages: dict) -> Iterator[str]:
    """The links that lead to no file of the book, or to no place in it."""
    for file, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.exists():
                yield f"{file.relative_to(BOOK)}: there is no {link}"
            elif target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].ids:
                yield f"{file.relative_to(BOOK)}: there is no place {link}"


def main() -> None:
    build(*sys.argv[1:])
    # All chapters in one page, which repeats their links; and the page for absent ones.
    left_out = {BOOK / "print.html", BOOK / "404.html", BOOK / "toc.html"}
    pages = {file: Page(file) for file in sorted(BOOK.rglob("*.html")) if file not in left_out}
    problems = [*broken_links(pages), *plots.outdated()]
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(pages)} pages and their links")


if __name__ == "__main__":
    main()
