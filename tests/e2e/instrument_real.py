#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Real programs with all their functions instrumented do what they do bare: python3 passes the tests
of its own that it passes bare, sqlite3 runs a long script, xz, openssl and gcc make the same files,
node collects garbage below all that generated code calls.

usage: instrument_real.py KYMO short|long [POINT...]     (TAP)
       instrument_real.py --list
"""
import os
import re
import shutil
import sys

from harness import Kymo, Scratch, Skipped, Tap, expect, require_tool, run

PYTHON = "/usr/bin/python3"
# Runs the named modules and writes how each test ended, in an order that is the same each time.
RUNNER = """
import os, sys, unittest
silence = os.open(os.devnull, os.O_WRONLY)
os.dup2(silence, 1)
os.dup2(silence, 2)
class Outcomes(unittest.TestResult):
    lines = []
    def note(self, test, outcome): self.lines.append(f"{test.id()}: {outcome}")
    def addSuccess(self, test): self.note(test, "passed")
    def addError(self, test, error): self.note(test, error[0].__name__)
    def addFailure(self, test, error): self.note(test, "failed")
    def addSkip(self, test, reason): self.note(test, "skipped")
    def addExpectedFailure(self, test, error): self.note(test, "failed as expected")
    def addUnexpectedSuccess(self, test): self.note(test, "passed against expectation")
    def addSubTest(self, test, subtest, error):
        if error: self.note(subtest, "failed")
outcomes = Outcomes()
for name in sys.argv[2:]:
    unittest.defaultTestLoader.loadTestsFromName("test." + name).run(outcomes)
with open(sys.argv[1], "w") as file:
    file.write("\\n".join(sorted(outcomes.lines)) + "\\n")
"""
MODULES = {
    "short": ["test_generators", "test_contextlib"],
    "long": ["test_dict", "test_generators", "test_exceptions", "test_json", "test_re",
             "test_decimal", "test_threading", "test_contextlib", "test_coroutines", "test_descr",
             "test_functools", "test_collections", "test_struct", "test_zlib", "test_random",
             "test_types", "test_gc"],
}
ROWS = {"short": 300, "long": 20000}
BYTES = {"short": 1 << 18, "long": 1 << 23}
FUNCTIONS = {"short": 3, "long": 1500}
TURNS = {"short": 200, "long": 40000}
# Everything is recorded where that is little; else calls are counted: a minute of python3's would
# be 30 GB.
OPTIONS = {"short": [], "long": ["--count", "."]}
SECONDS = {"short": 200, "long": 1200}
SCRIPT = """
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
insert into t select i, hex(i * 7919 % 10007), i / 7.0 from n;
create index by_b on t(b);
create view v as select b, count(*) as many, sum(c) as total from t group by b;
select count(*), max(many), round(sum(total), 3) from v;
begin; delete from t where a % 3 = 0; savepoint s; update t set c = -c; rollback to s; commit;
select count(*), round(sum(c), 3), min(b), max(b) from t;
create trigger g after insert on t begin update t set c = 0 where a = new.a; end;
insert into t select a + 1000000, b, c from t where b like 'A%' or b glob '1*';
select x.b, count(*) from t x join t y on x.b = y.b and x.a < y.a group by 1 order by 2 desc, 1 limit 9;
select b, row_number() over (partition by substr(b, 1, 1) order by a) from t order by 1, 2 limit 20;
select json_extract('{{"k": [1, 2, {{"m": "' || b || '"}}]}}', '$.k[2].m') from t order by a limit 5;
select nothing from t;
pragma integrity_check;
"""
# Errors have the stack in them, gc() walks it, and so does the collector, from callbacks, runtime functions and
# regular expressions; long ones are interrupted.
NODE = """
const fs = require('fs'), crypto = require('crypto'), { Worker, isMainThread, parentPort, workerData } =
  require('worker_threads');
function work(turns) {
  const hash = crypto.createHash('sha256');
  let stacks = 0, kept = [];
  for (let i = 0; i < turns; i++) {
    try { fs.statSync(i % 3 ? '.' : '/nonexistent'); } catch (error) { stacks += error.stack.length > 0; }
    hash.update('x' + i);
    kept = kept.length > 500 ? [] : kept.concat({ a: i, b: [i, String(i)] });
    if (i % 100) continue;
    gc();
    stacks += [3, 1, 2, i].sort((a, b) => { fs.existsSync('/'); gc(); return a - b; }).length;
    stacks += ('a'.repeat(300) + i).replace(/a+?(?=a*\\d)/g, m => m.length).length;
    /(a+)+b/.test('aaaaaaaaaaaaaaaaac');
    try { (function deeper() { deeper(); })(); } catch (error) { stacks++; }
  }
  return [stacks, hash.digest('hex')];
}
if (isMainThread) {
  new Worker(__filename, { workerData: 1 }).on('message', told => console.log(told, work(TURNS)));
} else {
  parentPort.postMessage(work(TURNS));
}
"""
TEXT = b"some text that a compressor finds repetitive, %d\n"


class Bare:
    """How the program ends without kymo, and the files that it makes."""

    def __init__(self, line, stdin, cwd, seconds):
        self.ended = run(line, stdin, cwd=cwd, timeout=seconds)
        self.files = files_in(cwd)


def files_in(directory):
    """{name: bytes}, without results of kymo."""
    found = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[name] = file.read()
    return found


class Real:
    """Each program bare, instrumented at run time, and rewritten: with and without being recorded."""

    def __init__(self, kymo, size, scratch):
        self._kymo, self._size, self._scratch = kymo, size, scratch

    def _fresh(self, name, inputs):
        """An empty directory with the inputs in it, of one path each time: programs say where."""
        directory = self._scratch.path(f"{name}-work")
        shutil.rmtree(directory, ignore_errors=True)
        os.mkdir(directory)
        for file, data in inputs.items():
            with open(os.path.join(directory, file), "wb") as stream:
                stream.write(data)
        return directory

    def _rewrite(self, program, name):
        out = self._scratch.path(name)
        ended = run([self._kymo.path, "instrument", "-o", out, "--", program], timeout=300,
                    cwd=self._scratch.directory)
        expect(ended.status == 0, f"{ended}")
        return out

    def _compare(self, how, bare, line, stdin, cwd, environment=None):
        ended = run(line, stdin, cwd=cwd, environment=environment, timeout=SECONDS[self._size])
        expect((ended.status, ended.stdout, ended.stderr) ==
               (bare.ended.status, bare.ended.stdout, bare.ended.stderr),
               f"{how}: {ended}\nbare: {bare.ended}")
        files = files_in(cwd)
        for name in sorted(set(files) | set(bare.files)):
            expect(files.get(name) == bare.files.get(name), f"{how}: {name} differs\n"
                   f"{difference(bare.files.get(name), files.get(name))}")

    def _same(self, name, program, arguments, inputs=None, stdin=b"", rewritten=True, options=()):
        inputs = inputs or {}
        seconds = SECONDS[self._size]
        bare = Bare([program, *arguments], stdin, self._fresh(name, inputs), seconds)
        results = self._scratch.path(f"{name}-results")
        line = [self._kymo.path, "instrument", "-q", "--output", results, "--time-output=off",
                "--format", "text", *OPTIONS[self._size], *options, "--"]
        self._compare("at run time", bare, [*line, program, *arguments], stdin,
                      self._fresh(name, inputs))
        expect(self._calls(results) > 100, "hardly a call is recorded")
        if rewritten:
            new = self._rewrite(program, os.path.basename(program))
            self._compare("rewritten", bare, [new, *arguments], stdin, self._fresh(name, inputs))
            own = self._scratch.path(f"{name}-own")
            self._compare("rewritten and recorded", bare, [new, *arguments], stdin,
                          self._fresh(name, inputs),
                          {"KYMO_ENABLED": "on", "KYMO_OUTPUT_PATH": own} |
                          ({"KYMO_INSTRUMENT_COUNT": "."} if self._size == "long" else {}))
            os.unlink(new)
        shutil.rmtree(results, ignore_errors=True)

    def _calls(self, results):
        ended = run([self._kymo.path, "report", results], timeout=300)
        found = re.findall(r"([0-9,]+) calls (?:recorded of|of [0-9,]+ functions were only counted)",
                           ended.stderr + ended.stdout.decode())
        expect(found, f"{ended}")
        return sum(int(count.replace(",", "")) for count in found)

    def python3(self):
        """Its own tests end as they do bare."""
        modules = MODULES[self._size]
        if run([PYTHON, "-c", "import test." + ", test.".join(modules)]).status:
            raise Skipped("python3's own tests are not installed")
        self._same("python3", os.path.realpath(PYTHON), ["runner.py", "outcomes", *modules],
                   {"runner.py": RUNNER.encode()})

    def sqlite3(self):
        require_tool("sqlite3")
        self._same("sqlite3", os.path.realpath(shutil.which("sqlite3")), ["base"],
                   stdin=SCRIPT.format(rows=ROWS[self._size]).encode())

    def xz(self):
        require_tool("xz")
        text = b"".join(TEXT % (i * i) for i in range(BYTES[self._size] // len(TEXT)))
        self._same("xz", os.path.realpath(shutil.which("xz")), ["-k", "-6", "text"],
                   {"text": text})

    def openssl(self):
        require_tool("openssl")
        self._same("openssl", os.path.realpath(shutil.which("openssl")),
                   ["enc", "-aes-256-cbc", "-pbkdf2", "-iter", "1000", "-S", "0011223344556677",
                    "-pass", "pass:word", "-in", "text", "-out", "secret"],
                   {"text": TEXT * (BYTES[self._size] // len(TEXT))})

    def gcc(self):
        """The compiler proper, which is most of it."""
        require_tool("gcc")
        compiler = run(["gcc", "-print-prog-name=cc1"]).stdout.decode().strip()
        source = "".join(f"int f{i}(int n) {{ int s = {i}; for (int i = 0; i < n; i++) s += i * s; "
                         f"return s {'+' if i else '-'} {'f%d(n / 2)' % (i - 1) if i else 'n'}; }}\n"
                         for i in range(FUNCTIONS[self._size]))
        self._same("gcc", os.path.realpath(compiler), ["-quiet", "-O2", "made.c", "-o", "made.s"],
                   {"made.c": source.encode()}, rewritten=self._size == "long", options=["--count", "."])

    def node(self):
        require_tool("node")
        script = NODE.replace("TURNS", str(TURNS[self._size]))
        self._same("node", os.path.realpath(shutil.which("node")),
                   ["--expose-gc", "--stress-compaction", "--interrupt-budget=2000", "script.js"],
                   {"script.js": script.encode()}, rewritten=self._size == "long")


def difference(old, new):
    """What of two texts' lines differs."""
    if old is None or new is None:
        return "there is one only"
    olds, news = set(old.splitlines()), set(new.splitlines())
    return "\n".join([f"-{line!r}" for line in sorted(olds - news)[:20]] +
                     [f"+{line!r}" for line in sorted(news - olds)[:20]])


POINTS = [name for name in vars(Real) if not name.startswith("_")]


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(POINTS))
        return
    kymo, tap = Kymo(sys.argv[1]), Tap()
    for name in sys.argv[3:] or POINTS:
        with Scratch() as scratch:
            tap.point(name, getattr(Real(kymo, sys.argv[2], scratch), name))
    tap.finish()


main()
