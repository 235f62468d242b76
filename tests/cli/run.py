#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Command-line tests with golden outputs.

    run.py KYMO [--update] [--without-runs] [CASE ...]

A case is cases/NAME.sh, a shell script run in an empty directory with kymo in PATH. Its exit status, standard output and
standard error must be those in cases/NAME.golden; --update writes them anew (look at the difference before committing it).
Cases named run-* profile programs and are left out by --without-runs, for builds whose library cannot be preloaded.
What changes from run to run (directories, dates, process ids, versions) is replaced by words in capitals.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def normalize(text, scratch, kymo):
    text = text.replace(scratch, "SCRATCH").replace(str(kymo.parent), "BINDIR").replace(str(HERE.parent.parent), "SOURCE")
    text = re.sub(r"\d{4}-\d\d-\d\d_\d\d\.\d\d\.\d\d(-\d+)?", "DATE", text)
    return text


def run_case(script, kymo):
    with tempfile.TemporaryDirectory(prefix="kymo-cli-") as scratch:
        work = pathlib.Path(scratch, "work")
        tools = pathlib.Path(scratch, "bin")
        work.mkdir()
        tools.mkdir()
        for name in ("kymo", "kymo-sample", "kymo-instrument", "kymo-causal", "kymo-report", "kymo-ctl", "kymo-avail"):
            (tools / name).symlink_to(kymo)
        environment = {
            "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin", "HOME": scratch, "XDG_CONFIG_HOME": f"{scratch}/config",
            "XDG_CACHE_HOME": f"{scratch}/cache", "TZ": "UTC", "LC_ALL": "C.UTF-8", "SOURCE": str(HERE.parent.parent),
        }
        done = subprocess.run(["sh", str(script)], cwd=work, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
        parts = [f"status {done.returncode}", "---- stdout", done.stdout.decode(errors="replace").rstrip("\n"),
                 "---- stderr", done.stderr.decode(errors="replace").rstrip("\n")]
        return normalize("\n".join(parts) + "\n", scratch, kymo)


def show_difference(expected, got):
    import difflib
    for line in difflib.unified_diff(expected.splitlines(), got.splitlines(), "golden", "got", lineterm=""):
        print("# " + line)


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    without_runs = "--without-runs" in arguments
    words = [a for a in arguments if not a.startswith("--")]
    if not words:
        sys.exit(__doc__)
    kymo = pathlib.Path(words[0]).resolve()
    scripts = sorted((HERE / "cases").glob("*.sh"))
    scripts = [s for s in scripts if not words[1:] or s.stem in words[1:]]
    failed = 0
    print(f"1..{len(scripts)}")
    for number, script in enumerate(scripts, 1):
        golden = script.with_suffix(".golden")
        if without_runs and script.stem.startswith("run-"):
            print(f"ok {number} - {script.stem} # SKIP the library cannot be preloaded in this build")
            continue
        got = run_case(script, kymo)
        if update:
            golden.write_text(got)
        expected = golden.read_text() if golden.exists() else ""
        if got == expected:
            print(f"ok {number} - {script.stem}")
            continue
        failed += 1
        print(f"not ok {number} - {script.stem}")
        show_difference(expected, got)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
