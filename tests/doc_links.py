#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Every relative link in the Markdown files of the tree leads to a file that is there, and every
anchor to a heading of it. Every path below docs/ that a source file, a test or a help text names
exists too. TAP on standard output.

usage: doc_links.py SOURCE_ROOT"""

import pathlib
import re
import sys

SKIPPED = {"build", ".git"}
NAMED_IN = {".c", ".h", ".S", ".py", ".sh", ".md", ".yaml", ".golden", ".build"}
# Not after a name or a slash: protos/.../docs/ of other projects is theirs.
DOCS_PATH = re.compile(r"(?<![\w/.-])(docs/[\w/-]+\.(?:md|svg|txt))")


def files(root, suffixes):
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if parts[0] in SKIPPED or parts[0].startswith("build-") or parts[0] == "fuzz":
            continue
        if path.suffix in suffixes and path.is_file():
            yield path


def prose(text):
    """The text without code: fenced and indented blocks, and spans in backticks."""
    kept, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("    ", "\t")):
            kept.append(line)
    return re.sub(r"`[^`]*`", "", "\n".join(kept))


def links(text):
    text = prose(text)
    yield from re.findall(r"\]\(([^()\s]*(?:\([^()\s]*\))?[^()\s]*)\)", text)
    yield from re.findall(r"^\[[^\]]+\]:\s*(\S+)", text, re.M)
    yield from re.findall(r"<(?:img|a)\s[^>]*(?:src|href)=\"([^\"]+)\"", text)


def anchors(path):
    """As GitHub makes them: lower case, without punctuation, blanks become dashes, -1 and so on."""
    found = set()
    for title in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", path.read_text(), re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        base = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        name, n = base, 0
        while name in found:
            n += 1
            name = f"{base}-{n}"
        found.add(name)
    return found


def broken_links(root):
    for page in files(root, {".md"}):
        for link in links(page.read_text()):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            where = page.relative_to(root)
            if not target.exists():
                yield f"{where}: {link}: no such file"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                yield f"{where}: {link}: no such heading"


def broken_names(root):
    for path in files(root, NAMED_IN):
        for name in DOCS_PATH.findall(path.read_text(errors="replace")):
            # Design documents of other projects are cited with their names in front.
            if not (root / name).exists():
                yield f"{path.relative_to(root)}: {name}: no such file"


def lonely_pages(root):
    """Pages of docs/ that no other page links to: nobody would find them."""
    linked = set()
    for page in files(root, {".md"}):
        for link in links(page.read_text()):
            name = link.partition("#")[0]
            if name and not re.match(r"[a-z]+:", link):
                target = (page.parent / name).resolve()
                linked.add(target / "README.md" if target.is_dir() else target)
    for page in files(root / "docs", {".md", ".svg"}):
        if page.resolve() not in linked:
            yield f"{page.relative_to(root)}: no page links to it"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    checks = [
        ("relative links of Markdown files lead somewhere", broken_links),
        ("paths below docs/ that are named exist", broken_names),
        ("every page and picture of docs/ is linked to", lonely_pages),
    ]
    print(f"1..{len(checks)}")
    failed = False
    for number, (name, check) in enumerate(checks, 1):
        problems = list(check(root))
        failed |= bool(problems)
        print(f"{'not ok' if problems else 'ok'} {number} - {name}")
        for problem in problems:
            print(f"# {problem}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
