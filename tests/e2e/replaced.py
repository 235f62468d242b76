# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The file of a program or library is deleted or replaced while it runs (a package is upgraded): right names or none,
never those of the new file. replaced.py KYMO"""
import os
import subprocess
import sys

from harness import Kymo, Result, Scratch, Tap, clean_environment, cpu_seconds, expect, run, wait_until

PROGRAM = """
    #include <stdlib.h>
    #include <time.h>
    __attribute__((noinline)) void %s(int n) { for (volatile int i = 0; i < n; i++); }
    int main(int argc, char **argv)
    {
        double end = atof(argv[1]);
        while (clock() < end * CLOCKS_PER_SEC)
            %s(%d);
        return 0;
    }
    """
LIBRARY = """
    #include <time.h>
    static __attribute__((noinline)) void %s(int n) { for (volatile int i = 0; i < n; i++); }
    void work(double end) { while (clock() < end * CLOCKS_PER_SEC) %s(%d); }
    """
USER = """
    #include <stdlib.h>
    void work(double end);
    int main(int argc, char **argv) { work(atof(argv[1])); return 0; }
    """


class Replaced:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch, self.number = kymo, scratch, 0

    def _build(self, name, source, *options):
        path = self.scratch.path(name)
        with open(path + ".c", "w", encoding="ascii") as stream:
            stream.write(source)
        built = run(["cc", "-O1", "-o", path, path + ".c", *options])
        expect(built.status == 0, built.stderr)
        return path

    def _programs(self, *options):
        """The program, which `right` keeps busy, and another one, whose `wrong` lies at the same place."""
        self.number += 1
        return (self._build(f"program-{self.number}", PROGRAM % ("right", "right", 100000 + self.number), *options),
                self._build(f"other-{self.number}", PROGRAM % ("wrong", "wrong", 300007 + self.number), *options))

    def _libraries(self):
        self.number += 1
        library = self._build(f"libwork-{self.number}.so", LIBRARY % ("right", "right", 100000 + self.number), "-shared", "-fPIC")
        other = self._build(f"libother-{self.number}.so", LIBRARY % ("wrong", "wrong", 300007 + self.number), "-shared", "-fPIC")
        return self._build(f"user-{self.number}", USER, library), library, other

    def _result(self):
        self.number += 1
        return self.scratch.path(f"result-{self.number}")

    def _sample(self, command, path, change):
        directory = self._result()
        process = subprocess.Popen([self.kymo.path, "sample", "-o", directory, "--time-output=off", "--", *command],
                                   env=clean_environment(), stderr=subprocess.PIPE)
        spool = os.path.join(directory, "spool")
        wait_until(lambda: os.path.isdir(spool) and os.listdir(spool), "no spool file")
        child = int(os.listdir(spool)[0].split("-")[0])
        wait_until(lambda: cpu_seconds(child) > 0.3, "it does not run")
        change(path)
        text = process.communicate(timeout=100)[1].decode()
        expect(process.returncode == 0, text)
        return Result(directory).inclusive_shares(), text

    def _attach(self, command, before=None, during=None):
        process = subprocess.Popen(command, env=clean_environment())
        directory = self._result()
        try:
            wait_until(lambda: cpu_seconds(process.pid) > 0.1, "it does not run")
            if before:
                before()
            attached = subprocess.Popen([self.kymo.path, "attach", "-p", str(process.pid), "-d", "1", "-o", directory,
                                         "--time-output=off"], env=clean_environment(), stderr=subprocess.PIPE)
            if during:
                spool = os.path.join(directory, "spool")
                wait_until(lambda: os.path.isdir(spool) and os.listdir(spool), "no spool file")
                used = cpu_seconds(process.pid)
                wait_until(lambda: cpu_seconds(process.pid) > used + 0.2, "it does not run")
                during()
            text = attached.communicate(timeout=100)[1].decode()
        finally:
            process.kill()
            process.wait()
        expect(attached.returncode == 0, text)
        return Result(directory).inclusive_shares(), text

    @staticmethod
    def _expect_right(shares, text):
        expect("wrong" not in shares and shares.get("right", 0) > 0.8 and shares.get("main", 0) > 0.9,
               f"{shares}\n{text}")

    # ---- the program, which kymo holds from its start on, or which lives still ----

    def program_deleted_while_it_is_sampled(self):
        path, _ = self._programs()
        self._expect_right(*self._sample([path, "1"], path, os.unlink))

    def program_replaced_while_it_is_sampled(self):
        path, other = self._programs()
        self._expect_right(*self._sample([path, "1"], path, lambda path: os.rename(other, path)))

    def program_deleted_before_attach(self):
        path, _ = self._programs()
        self._expect_right(*self._attach([path, "60"], before=lambda: os.unlink(path)))

    def program_replaced_before_attach(self):
        path, other = self._programs()
        self._expect_right(*self._attach([path, "60"], before=lambda: os.rename(other, path)))

    def program_replaced_during_attach(self):
        path, other = self._programs()
        self._expect_right(*self._attach([path, "60"], during=lambda: os.rename(other, path)))

    # ---- libraries ----

    def library_replaced_before_attach(self):
        program, library, other = self._libraries()
        shares, text = self._attach([program, "60"], before=lambda: os.rename(other, library))
        if os.geteuid():  # the right to open what others have mapped is root's
            expect("wrong" not in shares, f"{shares}\n{text}")
        else:
            self._expect_right(shares, text)

    def library_replaced_while_it_is_sampled(self):
        program, library, other = self._libraries()
        shares, text = self._sample([program, "1"], library, lambda path: os.rename(other, path))
        expect("wrong" not in shares and shares.get(f"[replaced: {library}]", 0) > 0.8, f"{shares}\n{text}")
        expect("the file was replaced since it ran" in text, text)

    def names_of_a_replaced_library_in_the_cache(self):
        """They are by build-id, so they stay right."""
        program, library, other = self._libraries()
        self._expect_right(*self._sample([program, "1"], library, lambda path: None))
        self._expect_right(*self._sample([program, "1"], library, lambda path: os.rename(other, path)))

    # ---- without a build-id ----

    def program_without_build_id(self):
        path, other = self._programs("-Wl,--build-id=none")
        self._expect_right(*self._sample([path, "1"], path, lambda path: os.rename(other, path)))

    def program_without_build_id_that_stays(self):
        path, _ = self._programs("-Wl,--build-id=none")
        self._expect_right(*self._sample([path, "0.6"], path, lambda path: None))


def main():
    tap = Tap()
    with Scratch() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch.path("cache")  # the same libraries are built in every run
        replaced = Replaced(Kymo(sys.argv[1]), scratch)
        for name in sorted(name for name in vars(Replaced) if not name.startswith("_")):
            tap.point(name.replace("_", " "), getattr(replaced, name))
    tap.finish()


main()
