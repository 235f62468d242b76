# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Real programs with work that is the same on every run. Each function prepares its input in a
directory and returns the command; the bench uses them too."""
import os
import random

from harness import require_tool

PYTHON_PROGRAM = """
import re, json
def words(n):
    return ['w%d' % (i * 7919 % 1000) for i in range(n)]
def count(ws):
    table = {}
    for w in ws:
        table[w] = table.get(w, 0) + 1
    return table
total = 0
for round in range(ROUNDS):
    total += sum(count(words(20000)).values())
    total += len(re.findall(r'w\\d*7', ' '.join(words(20000))))
    total += len(json.dumps(count(words(20000))))
print(total)
"""

NODE_PROGRAM = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function sieve(n) {
  const composite = new Uint8Array(n); let count = 0;
  for (let i = 2; i < n; i++) {
    if (composite[i]) continue;
    count++;
    for (let j = i * 2; j < n; j += i) composite[j] = 1;
  }
  return count;
}
function text(n) {
  const map = new Map();
  for (let i = 0; i < n; i++) { const k = 'k' + (i % 1000); map.set(k, (map.get(k) || 0) + 1); }
  return JSON.stringify([...map]).length;
}
let total = 0;
for (let round = 0; round < ROUNDS; round++) total += fib(27) + sieve(600000) + text(100000);
console.log(total);
"""

SQL = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ROWS)
SELECT count(*), sum(length(hex(i * 7919 % 10007))), max(i * 31 % 1009) FROM n;
CREATE TABLE t(a INTEGER, b TEXT);
INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ROWS / 4)
SELECT i * 7919 % 10007, printf('text %d', i) FROM n;
CREATE INDEX by_a ON t(a);
SELECT count(*), min(b), max(b) FROM (SELECT a, b FROM t ORDER BY b, a);
"""


def text_file(directory, megabytes):
    """Repetitive text that still costs a compressor something."""
    path = os.path.join(directory, f"text-{megabytes}")
    if not os.path.exists(path):
        draw = random.Random(7)
        vocabulary = ["".join(draw.choices("etaoinshrdlu", k=draw.randrange(2, 11)))
                      for _ in range(3000)]
        with open(path, "w", encoding="ascii") as stream:
            for _ in range(megabytes):
                stream.write(" ".join(draw.choices(vocabulary, k=150000))[:1 << 20])
    return path


def xz(directory, size=1.0):
    require_tool("xz")
    return ["xz", "-T2", "-k", "-9", "-f", "--block-size=1MiB",
            text_file(directory, max(1, round(6 * size)))]


def sqlite3(_directory, size=1.0):
    require_tool("sqlite3")
    return ["sqlite3", ":memory:", SQL.replace("ROWS", str(int(2000000 * size)))]


def python3(_directory, size=1.0):
    require_tool("/usr/bin/python3")
    return ["/usr/bin/python3", "-c", PYTHON_PROGRAM.replace("ROUNDS", str(int(120 * size)))]


def gcc(directory, size=1.0):
    require_tool("gcc")
    path = os.path.join(directory, "unit.c")
    with open(path, "w", encoding="ascii") as stream:
        stream.write("#include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n")
        for number in range(int(250 * size)):
            stream.write(f"int f{number}(int *a, int n)\n{{\n\tint s = {number};\n"
                         "\tfor (int i = 0; i < n; i++)\n\t\tfor (int j = i; j < n; j++)\n"
                         "\t\t\ts += a[i] * a[j] ^ (s >> 3);\n\treturn s;\n}\n")
        stream.write("int main(void)\n{\n\treturn 0;\n}\n")
    return ["gcc", "-O2", "-g", "-o", os.path.join(directory, "unit"), path]


def openssl(_directory, _size=1.0):
    require_tool("openssl")
    return ["sh", "-c", "for a in '-evp sha256' '-evp sha512' '-evp aes-256-gcm' "
            "'-evp chacha20-poly1305' 'rsa2048' 'ecdsap256'; do "
            "openssl speed -seconds 1 -bytes 8192 $a 2>/dev/null >/dev/null || exit 1; done; echo done"]


def node(directory, size=1.0):
    require_tool("node")
    path = os.path.join(directory, "program.js")
    with open(path, "w", encoding="ascii") as stream:
        stream.write(NODE_PROGRAM.replace("ROUNDS", str(int(150 * size))))
    return ["node", "--perf-basic-prof", path]


def pipeline(directory, size=1.0):
    require_tool("tar", "gzip")
    path = text_file(directory, max(1, round(24 * size)))
    return ["sh", "-c", f"tar cf - -C {os.path.dirname(path)} {os.path.basename(path)} | gzip -9 | "
            "gunzip | tar tf - ; echo done"]
