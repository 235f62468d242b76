#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Makes one C file of a page: embed.py NAME.c PAGE.html STYLE.css SCRIPT.js...

The page becomes a struct embedded_page, NAME: what stands before and after the data, compressed. Style and script are named by their hash
in the page's Content-Security-Policy, so that nothing else can run, whatever a name contains.
"""
import base64
import hashlib
import os
import sys
import zlib


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def policy_hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def c_source(name, head, tail):
    data = zlib.compress(head + tail, 9)
    rows = [", ".join(str(byte) for byte in data[i:i + 24]) for i in range(0, len(data), 24)]
    body = ",\n\t".join(rows)
    return (f'#include "output/embedded_page.h"\n\nstatic const unsigned char bytes[] = {{\n\t{body}}};\n'
            f"const struct embedded_page {name} = {{bytes, sizeof(bytes), {len(head)}, {len(tail)}}};\n")


def main(out, page, style, *scripts):
    styles = read(style)
    # Each file's directive is harmless in the middle of the joined script.
    script = "\n".join(read(path) for path in scripts)
    if "</script" in script.lower() or "</style" in styles.lower():
        sys.exit("embed.py: a script or style would end its own element")
    html = read(page)
    for mark, text in (("@STYLE_HASH@", policy_hash(styles)), ("@SCRIPT_HASH@", policy_hash(script)),
                       ("@STYLE@", styles), ("@SCRIPT@", script)):
        if html.count(mark) != 1:
            sys.exit(f"embed.py: {page} must hold {mark} once")
        html = html.replace(mark, text)
    head, tail = html.split("@DATA@")
    with open(out, "w", encoding="utf-8") as file:
        file.write(c_source(os.path.splitext(os.path.basename(out))[0], head.encode(), tail.encode()))


if __name__ == "__main__":
    main(*sys.argv[1:])
