#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Compares compiled unwind rules with readelf's reading of the same .eh_frame.

usage: unwind_rows.py UNWIND_DUMP SONAME...   (found through ldconfig, or a path)

For every row of a sample of FDEs, the rule at its first and at its last byte must say what readelf
says; between functions there must be none.
"""
import re
import subprocess
import sys

SAMPLES = 1500  # FDEs a library

REGISTERS = 'rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15'.split()


def run(*command, **options):
    # readelf ends with 1 when a separate debug file that it would like to read is not installed.
    return subprocess.run(command, capture_output=True, text=True, errors='replace', **options).stdout


def find(name):
    if '/' in name:
        return name
    for line in run('/sbin/ldconfig', '-p').splitlines():
        match = re.match(r'\s*(\S+) \(.*x86-64.*\) => (\S+)', line)
        if match and match[1] == name:
            return match[2]
    return None


def segments(path):
    found = re.findall(r'LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R.E', run('readelf', '-lW', path))
    return [tuple(int(value, 16) for value in one) for one in found]


def to_offset(loads, address):
    for offset, virtual, size in loads:
        if virtual <= address < virtual + size:
            return address - virtual + offset
    return None


def parse(text):
    """Yields (start, end, rows); a row is (address, {column: value})."""
    cie_rows, fde, columns = {}, None, None
    for line in text.splitlines():
        head = re.match(r'([0-9a-f]{8,}) \w+ \w+ (CIE|FDE)(?: cie=(\w+) pc=(\w+)\.\.(\w+))?', line)
        if head:
            if fde:
                yield fde
            fde, columns, rows = None, None, []
            if head[2] == 'CIE':
                cie_rows[head[1]] = rows
            else:
                start, end = int(head[4], 16), int(head[5], 16)
                initial = [(start, row) for _, row in cie_rows[head[3]][:1]]
                fde = (start, end, rows, initial)
        elif line.strip().startswith('LOC'):
            columns = line.split()[1:]
        elif columns and re.match(r'[0-9a-f]{16} ', line):
            values = re.sub(r'r\d+ \((\w+)\)', r'\1', line).split()
            rows.append((int(values[0], 16), dict(zip(columns, values[1:]))))
    if fde:
        yield fde


def expected(row):
    cfa = row['CFA']
    if cfa == 'exp':
        cfa = 'vexp'
    result = [cfa, row.get('ra', 'u'), row.get('rbp', 'u'), row.get('rbx', 'u')]
    if result[1] == 'u':  # the outermost frame: nothing else is kept
        return ['u'] * 4
    return [re.sub('^s$', 'u', re.sub(r'^(%s)$' % '|'.join(REGISTERS), r'\1+0', value))
            for value in result]


def check(dump, path):
    loads = segments(path)
    text = run('readelf', '--debug-dump=frames-interp', path)
    functions = sorted((fde for fde in parse(text) if fde[1] > fde[0]), key=lambda fde: fde[0])
    step = max(1, len(functions) // SAMPLES)
    questions = []
    for index, (start, end, rows, initial) in enumerate(functions):
        if index % step:
            continue
        rows = rows or initial
        for number, (address, row) in enumerate(rows):
            until = rows[number + 1][0] if number + 1 < len(rows) else end
            if until <= address:
                continue
            questions += [(address, expected(row)), (until - 1, expected(row))]
        following = functions[index + 1][0] if index + 1 < len(functions) else None
        if following and following > end:
            questions.append((end, ['none']))
    questions = [(to_offset(loads, address), answer) for address, answer in questions]
    questions = [one for one in questions if one[0] is not None]
    text = run(dump, path, input=''.join('%x\n' % offset for offset, _ in questions))
    wrong, contexts = 0, 0
    for (offset, answer), line in zip(questions, text.splitlines()):
        got = line.split()[1:]
        if got[0] == 'context' and answer[0] == 'vexp':
            contexts += 1
        elif got != answer:
            wrong += 1
            if wrong < 10:
                print('%s: %x: %s, readelf %s' % (path, offset, got, answer))
    print('%s: %d rules compared, %d differ, %d signal frames' % (path, len(questions), wrong, contexts))
    return wrong == 0 and len(questions) > 20


def main():
    paths = [path for path in map(find, sys.argv[2:]) if path]
    if not paths:
        return 77
    return 0 if all([check(sys.argv[1], path) for path in paths]) else 1


if __name__ == '__main__':
    sys.exit(main())
