#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Makes one C file of a page: embed.py NAME.c HEADER.h PAGE.html STYLE.css SCRIPT.js...

The page becomes two strings, NAME_head and NAME_tail, before and after the data; HEADER.h declares them. Style and script are named by their hash
in the page's Content-Security-Policy, so that nothing else can run, whatever a name contains.
"""
import base64
import hashlib
import os
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def policy_hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def c_array(name, text):
    data = text.encode()
    rows = [", ".join(str(byte) for byte in data[i:i + 24]) for i in range(0, len(data), 24)]
    body = ",\n\t".join(rows)
    return (f"const unsigned char {name}[] = {{\n\t{body}}};\n"
            f"const size_t {name}_size = sizeof({name});\n")


def main(out, header, page, style, *scripts):
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
        name = os.path.splitext(os.path.basename(out))[0]
        file.write(f'#include "{header}"\n\n')
        file.write(c_array(name + "_head", head) + "\n" + c_array(name + "_tail", tail))


if __name__ == "__main__":
    main(*sys.argv[1:])
