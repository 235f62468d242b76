/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What frames of Python cost a sample: the real handler of a running collector, called below
 * functions of Python that a library of Python runs in this process, with and without looking for
 * their frames. Warm: the same stack again and again.
 *
 * usage: python_stacks [LIBPYTHON [SAMPLES]]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "common/array.h"
#include "core/interpreters/interpreters.h"
#include "core/runtime.h"
#include "core/sampler.h"

#define ROUNDS 400 /* the best of them: on a busy machine most are disturbed */

static unsigned sample_count = 100; /* a round */

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static double take_samples(ucontext_t *context, unsigned count)
{
	int signal = kymo_runtime.signals.signal;
	siginfo_t information = {.si_signo = signal, .si_code = SI_TIMER};
	uint64_t start;

	information.si_value.sival_ptr = (void *)SAMPLER_SIGNAL_COOKIE_CPU;
	for (unsigned i = 0; i < count / 10 + 1; i++) /* warm */
		sampler_handle_signal(signal, &information, context);
	start = now_ns();
	for (unsigned i = 0; i < count; i++)
		sampler_handle_signal(signal, &information, context);
	return (double)(now_ns() - start) / count;
}

static double take_samples_without_python(ucontext_t *context, unsigned count)
{
	double ns;

	interpreters_pause();
	ns = take_samples(context, count);
	interpreters_resume_mapped();
	return ns;
}

static unsigned count_python_frames_of_last_sample(void)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < kymo_thread->previous_frame_count; i++)
		count += spool_frame_is_interpreted(kymo_thread->previous_frames[i]) != 0;
	return count;
}

/* The background thread finds the interpreter where a sample meets its code. */
static bool wait_for_interpreter(ucontext_t *context)
{
	for (unsigned tries = 0; tries < 200 && !interpreters_are_present(); tries++) {
		take_samples(context, 1);
		usleep(10000);
	}
	return interpreters_are_present();
}

static void measure_at(ucontext_t *context)
{
	uint64_t before = kymo_thread->sample_count;
	unsigned frames, native = 0;
	double with = 0, without = 0;

	if (!wait_for_interpreter(context)) {
		printf("python_stacks: the interpreter was not found: no cost is known\n");
		return;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		double ns = take_samples_without_python(context, sample_count);

		without = round && without < ns ? without : ns;
		native = kymo_thread->previous_frame_count;
		ns = take_samples(context, sample_count);
		with = round && with < ns ? with : ns;
	}
	frames = count_python_frames_of_last_sample();
	if (!frames || kymo_thread->sample_count == before)
		printf("python_stacks: no frame of Python was recorded: no cost is known\n");
	else
		printf("%4u frames of Python in %4u native ones   %7.0f ns a sample, %7.0f without "
		       "them   %6.1f ns a frame\n",
		       frames, native, with, without, (with - without) / frames);
}

/* Python calls this, some calls deep. */
static void measure_here(void)
{
	ucontext_t context;

	getcontext(&context);
	measure_at(&context);
}

static void *open_python(const char *path)
{
	static const char *const names[] = {"libpython3.14.so.1.0", "libpython3.13.so.1.0",
					    "libpython3.12.so.1.0", "libpython3.11.so.1.0",
					    "libpython3.10.so.1.0", "libpython3.9.so.1.0",
					    "libpython3.8.so.1.0"};
	void *library = NULL;
	const char *end;
	char home[4096];

	if (!path) {
		for (unsigned i = 0; i < ARRAY_SIZE(names) && !library; i++)
			library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
		return library;
	}
	/* Its modules are beside it, in the folder of an installation of its own. */
	end = strstr(path, "/lib/libpython");
	if (end) {
		snprintf(home, sizeof(home), "%.*s", (int)(end - path), path);
		setenv("PYTHONHOME", home, 0);
	}
	return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static int run_python(void *library)
{
	static const unsigned depths[] = {1, 10, 30, 100};
	void (*initialize)(int) = (void (*)(int))dlsym(library, "Py_InitializeEx");
	int (*run)(const char *) = (int (*)(const char *))dlsym(library, "PyRun_SimpleString");
	const char *(*version)(void) = (const char *(*)(void))dlsym(library, "Py_GetVersion");
	char text[512];
	int result = 0;

	initialize(0);
	printf("CPython %.*s\n", (int)strcspn(version(), " "), version());
	for (unsigned i = 0; i < ARRAY_SIZE(depths) && !result; i++) {
		snprintf(text, sizeof(text),
			 "import ctypes\n"
			 "measure = ctypes.PYFUNCTYPE(None)(%llu)\n"
			 "def down(n):\n"
			 "    return down(n - 1) if n > 1 else measure()\n"
			 "down(%u)\n",
			 (unsigned long long)(uintptr_t)measure_here, depths[i]);
		result = run(text);
	}
	return result;
}

int main(int argc, char **argv)
{
	char directory[] = "/tmp/kymo-bench-XXXXXX", variable[64], command[64];
	char *environment[] = {variable, "KYMO_SAMPLING_FREQ=0.1", "KYMO_SAMPLING_OVERHEAD_LIMIT=0",
			       NULL};
	void *library = open_python(argc > 1 ? argv[1] : NULL);
	int result;

	if (argc > 2)
		sample_count = (unsigned)atoi(argv[2]);
	if (!library || !mkdtemp(directory)) {
		printf("python_stacks: no library of Python is here\n");
		return 0;
	}
	snprintf(variable, sizeof(variable), "KYMO_SPOOL_DIRECTORY=%s", directory);
	runtime_start(environment);
	if (!runtime_is_active()) {
		printf("python_stacks: nothing is collected here\n");
		return 0;
	}
	result = run_python(library);
	runtime_finish();
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command) || result;
}
