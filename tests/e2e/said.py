# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What the summary says of what is not in the results: why there are no samples, how much CPU time they stand for, code
and devices that kymo cannot see. said.py KYMO"""
import os
import re
import shutil
import subprocess
import sys

from harness import Kymo, Result, Scratch, Skipped, Tap, clean_environment, cpu_seconds, expect, run, wait_until


class Said:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch, self.number = kymo, scratch, 0
        self.busy = self._build("busy", """
            #include <stdlib.h>
            #include <string.h>
            #include <time.h>
            #include <dlfcn.h>
            int main(int argc, char **argv)
            {
                double end = argc > 1 ? atof(argv[1]) : 1;
                void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
                int (*work)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
                if (argc > 3)
                    memset(argv[0] + strlen("nginx: worker"), ' ', 8);
                while (clock() < end * CLOCKS_PER_SEC)
                    if (work)
                        work(100000);
                return 0;
            }
            """)

    def _build(self, name, source, *options):
        path = self.scratch.path(name)
        with open(path + ".c", "w", encoding="ascii") as stream:
            stream.write(source)
        built = run(["cc", "-O1", "-o", path, path + ".c", *options, "-ldl"])
        expect(built.status == 0, built.stderr)
        return path

    def _directory(self):
        self.number += 1
        return self.scratch.path(f"result-{self.number}")

    def _sample(self, command, *options, **how):
        directory = self._directory()
        ended = self.kymo.sample(command, directory, *options, quiet=False, **how)
        return ended, Result(directory)

    def _attach(self, command, *options, environment=None):
        process = subprocess.Popen(command, env=clean_environment() | (environment or {}))
        try:
            directory = self._directory()
            ended = run([self.kymo.path, "attach", "-p", str(process.pid), "--duration", "0.7", "-o", directory,
                         "--time-output=off", *options])
        finally:
            process.kill()
            process.wait()
        expect(ended.status == 0, f"{ended}")
        return ended.stderr, Result(directory)

    @staticmethod
    def _first_line(text, command):
        """The line below the title."""
        lines = text.splitlines()
        title = next(i for i, line in enumerate(lines) if line.startswith("kymo: " + command))
        return lines[title + 1].strip()

    # ---- nothing there ----

    def idle_program(self):
        ended, _ = self._sample(["sleep", "0.2"], "--freq=20")
        line = self._first_line(ended.stderr, "sleep")
        expect(line.startswith("no samples: the program used "), ended.stderr)

    def idle_process_that_is_attached_to(self):
        text, _ = self._attach(["sleep", "60"])
        line = self._first_line(text, "sleep")
        expect(line.startswith("no samples: the program used ") and "collection" not in text, text)

    def busy_process_that_is_attached_to(self):
        text, _ = self._attach([self.busy, "60"])
        expect("no samples" not in text and "collection was off" not in text, text)

    def collection_never_on(self):
        ended, _ = self._sample([self.busy, "0.3"], "--init-enabled=off")
        line = self._first_line(ended.stderr, self.busy)
        expect(line.startswith("no samples: collection was never on"), ended.stderr)

    def samples_have_no_such_line(self):
        ended, _ = self._sample([self.busy, "0.3"])
        expect("no samples" not in ended.stderr, ended.stderr)

    # ---- CPU time ----

    def no_share_above_the_whole(self):
        """A child that nobody waits for is in the samples, and not in what the kernel counted."""
        ended, result = self._sample(["sh", "-c", f"{self.busy} 0.4 & exec sleep 4"])
        shares = [float(share) for share in re.findall(r"([0-9.]+) % of the .* that the kernel counted", ended.stderr)]
        expect(not shares and "without processes that nobody" in " ".join(ended.stderr.split()), ended.stderr)
        expect(result.profile().total("cpu") / 1e9 > 0.35, "the child is missing")

    def share_where_all_are_waited_for(self):
        ended, _ = self._sample(["sh", "-c", f"{self.busy} 0.5; true"])
        shares = [float(share) for share in re.findall(r"([0-9.]+) % of the .* that the kernel counted", ended.stderr)]
        expect(shares and 85 < shares[0] < 106, ended.stderr)

    # ---- names ----

    def code_of_a_compiler_at_run_time(self):
        node = shutil.which("node")
        if not node:
            raise Skipped("node is not installed")
        script = "let s = 0; for (let i = 1; i < 2e8; i++) s += Math.sqrt(i); if (s < 0) console.log(s)"
        ended, _ = self._sample([node, "-e", script])
        if "in [jit]" not in ended.stderr:
            raise Skipped("this node compiles nothing")
        expect("node --perf-basic-prof" in ended.stderr, ended.stderr)
        ended, _ = self._sample([node, "--perf-basic-prof", "-e", script], cwd=self.scratch.directory)
        expect("in [jit]: start" not in ended.stderr, ended.stderr)

    def padded_title(self):
        process = subprocess.Popen(["nginx: worker process  ", "60", "libdl.so.2", "x"], executable=self.busy,
                                   env=clean_environment())
        wait_until(lambda: cpu_seconds(process.pid) > 0.1, "it does not run")
        try:
            ended = run([self.kymo.path, "attach", "-p", str(process.pid), "--duration", "0.5", "-o",
                         self._directory(), "--time-output=off"])
        finally:
            process.kill()
            process.wait()
        title = next(line for line in ended.stderr.splitlines() if line.startswith("kymo: 'nginx")
                     or line.startswith("kymo: nginx"))
        expect(not re.search(" +'?( ''|)*$", title) or not title.endswith((" ", " '")), repr(title))

    # ---- many threads ----

    def threads_beyond_the_busiest(self):
        """4,000 short threads: 1,000 are listed, the others are added up by name, and no time is missing."""
        program = self._build("many", """
            #define _GNU_SOURCE
            #include <pthread.h>
            #include <stdio.h>
            static void *body(void *number)
            {
                char name[16];
                snprintf(name, sizeof(name), "worker-%ld", (long)number);
                pthread_setname_np(pthread_self(), name);
                for (volatile int i = 0; i < 20000; i++)
                    ;
                return 0;
            }
            int main(void)
            {
                for (long i = 0; i < 4000; i++) {
                    pthread_t thread;
                    if (pthread_create(&thread, 0, body, (void *)i) || pthread_join(thread, 0))
                        return 1;
                }
                return 0;
            }
            """, "-pthread")
        ended, result = self._sample([program], "--format=json,text")
        expect(ended.status == 0, f"{ended}")
        profile = result.json("profile.json")
        listed, sums = profile["threads"], profile["threads_added_up"]
        own = [thread for thread in listed if thread["name"].startswith("kymo")]
        expect(1000 <= len(listed) <= 1000 + len(own), f"{len(listed)} threads are listed")
        expect(len(listed) - len(own) + sum(entry["threads"] for entry in sums) == 4001, f"{sums}")
        expect({entry["name"] for entry in sums} == {"worker-*"}, f"{sums}")
        least = min(thread["total_cpu_ns"] for thread in listed if thread not in own)
        rest = sum(entry["total_cpu_ns"] for entry in sums)
        expect(0 < rest <= least * sum(entry["threads"] for entry in sums), f"{rest} ns in {sums}, least {least}")
        expect("added up by name" in profile["threads_note"], profile["threads_note"])
        with open(result.path("profile.txt"), encoding="utf-8") as stream:
            text = stream.read()
        expect("added up by name" in text and "worker-* (" in text, text[-3000:])
        expect(os.path.getsize(result.path("profile.json")) < 2_000_000, "profile.json grows with the threads")

    # ---- devices ----

    def _device_library(self):
        directory = self.scratch.path("lib")
        os.makedirs(directory, exist_ok=True)
        return self._build("lib/libcuda.so.1", "int cuInit(unsigned n) { volatile int sum = 0; while (n--) sum += n; return sum; }", "-shared", "-fPIC")

    def devices_of_a_process_that_is_attached_to(self):
        text, _ = self._attach([self.busy, "60", self._device_library()])
        flat = " ".join(text.split())
        expect(flat.count("kernels and copies on devices were not recorded: kymo attach comes too late") == 1, text)

    def devices_with_gpu_off(self):
        ended, _ = self._sample([self.busy, "0.3", self._device_library()], "--gpu=off")
        flat = " ".join(ended.stderr.split())
        expect(flat.count("kernels and copies on devices were not recorded: USE_GPU is off") == 1, ended.stderr)

    def devices_of_programs_without_any(self):
        text, _ = self._attach([self.busy, "60"])
        expect("devices" not in text, text)

    def other_tools_for_devices(self):
        """ncu and its children do not have kymo's library injected, however they are started; others do."""
        source = """
            #include <stdio.h>
            #include <stdlib.h>
            #include <unistd.h>
            int main(int argc, char **argv)
            {
                const char *it = getenv("CUDA_INJECTION64_PATH");
                printf("%s %s\\n", argv[0], it ? it : "none");
                fflush(stdout);
                if (argc > 1)
                    execvp(argv[1], argv + 1);
                return 0;
            }
            """
        os.makedirs(self.scratch.path("tools"), exist_ok=True)
        show = self._build("tools/show", source)
        for tool in ("ncu", "nsys"):
            built = self._build(f"tools/{tool}", source)
            ended, _ = self._sample([built, show])
            expect(ended.stdout.decode().splitlines() == [f"{built} none", f"{show} none"], f"{ended}")
            expect(f"{tool} observes devices itself" in ended.stderr, ended.stderr)
            ended, _ = self._sample([show, "sh", "-c", f"exec {built} {show}"])
            lines = ended.stdout.decode().splitlines()
            expect("libkymo" in lines[0] and lines[1:] == [f"{built} none", f"{show} none"], f"{ended}")
            theirs, _ = self._sample([built], environment={"CUDA_INJECTION64_PATH": "/opt/their.so"})
            expect(theirs.stdout.decode() == f"{built} /opt/their.so\n", f"{theirs}")


def main():
    tap = Tap()
    with Scratch() as scratch:
        said = Said(Kymo(sys.argv[1]), scratch)
        for name in sorted(name for name in vars(Said) if not name.startswith("_")):
            if name != "busy":
                tap.point(name.replace("_", " "), getattr(said, name))
    tap.finish()


main()
