"""The preprocessor of the book: gives the pages outside of docs/ a place in it.

mdBook takes pages from one folder, and SUMMARY.md lists others as well, such as the README of each crate, so that no
text is in two places. Their links, and the links to them, are made to fit. A link to a file that is no page of the
book leads to the repository. A link to a file that does not exist is an error, and so is a page in docs/ that
SUMMARY.md does not list.

https://rust-lang.github.io/mdBook/for_developers/preprocessors.html
"""

import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# A code block, or code within a paragraph: links in them are none.
CODE = re.compile(r"^ *```.*?^ *```|`(?:[^`\n]|\n(?!\n))+`", re.MULTILINE | re.DOTALL)
# A link or an image with its target: the text of a link may have code and an image in it.
LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\[\]]*\])*\])\(([^()\s]+)\)")


class Book:
    def __init__(self, root: Path, url: str, items: list) -> None:
        self.root = root
        self.url = url
        self.chapters = list(chapters(items))
        # The place in the book of each page, by its file from the root of the repository.
        self.places = {}
        self.problems = []
        for chapter in self.chapters:
            source = normal("docs", chapter["source_path"])
            inside = chapter["path"]
            while inside.startswith("../"):
                inside = inside.removeprefix("../")
            self.places[source] = inside

    def run(self) -> None:
        for chapter in self.chapters:
            source = normal("docs", chapter["source_path"])
            chapter["path"] = self.places[source]
            chapter["content"] = self.page(chapter["content"], source)
        for page in sorted((self.root / "docs").glob("**/*.md")):
            source = page.relative_to(self.root).as_posix()
            if source not in self.places and page.name != "SUMMARY.md":
                self.problems.append(f"{source} is not in docs/SUMMARY.md")

    def page(self, text: str, source: str) -> str:
        """The text with its links outside of code made to fit."""
        done, at = "", 0
        spans = [match.span() for match in CODE.finditer(text)]
        for link in LINK.finditer(text):
            if not any(start <= link.start() and link.end() <= end for start, end in spans):
                image, label, target = link.groups()
                # An image within the text of a link.
                label = LINK.sub(lambda inner: self.link(*inner.groups(), source), label)
                done += text[at : link.start()] + self.link(image, label, target, source)
                at = link.end()
        return done + text[at:]

    def link(self, image: str, label: str, target: str, source: str) -> str:
        file, mark, anchor = target.partition("#")
        if ":" in file or not file:
            return f"{image}{label}({target})"
        path = normal(os.path.dirname(source), file)
        # The folder of a crate stands for its README.
        if f"{path}/README.md" in self.places:
            path += "/README.md"
        if not (self.root / path).exists():
            self.problems.append(f"{source}: there is no {target}")
        elif path in self.places or (path.startswith("docs/") and not path.endswith(".md")):
            place = self.places.get(path, path.removeprefix("docs/"))
            path = os.path.relpath(place, os.path.dirname(self.places[source]) or ".")
        elif image:
            path = embedded(self.root / path)
        else:
            kind = "tree" if (self.root / path).is_dir() else "blob"
            path = f"{self.url}/{kind}/main/{path}"
        return f"{image}{label}({path}{mark}{anchor})"


def chapters(items: list) -> Iterator[dict]:
    """All chapters of the book, in its order."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def normal(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path))


def embedded(image: Path) -> str:
    """An image outside of docs/, whose files mdBook does not copy, as a data URL."""
    data = base64.b64encode(image.read_bytes()).decode()
    return f"data:image/{image.suffix.removeprefix('.')};base64,{data}"


def main() -> None:
    context, tree = json.load(sys.stdin)
    root = Path(context["root"]).parent
    book = Book(root, context["config"]["preprocessor"]["repository"]["url"], tree["items"])
    book.run()
    if book.problems:
        sys.exit("\n".join(book.problems))
    json.dump(tree, sys.stdout)


if __name__ == "__main__":
    # mdBook asks first which renderers are supported: all.
    if sys.argv[1:2] != ["supports"]:
        main()
