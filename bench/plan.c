/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What planning costs (CPU time, and wall time where threads share the work) and how many functions
 * can be instrumented: for each file the functions, how many of them are patchable, the reasons for
 * the rest, times and bytes. Shares are of functions that are neither linker's code, nor start-up
 * code, nor parts of others.
 *
 * usage: plan [-v] FILE...      -v: the functions that are left alone, one a line
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "binary/plan/plan.h"

static double clock_ms(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static double now_ms(void)
{
	return clock_ms(CLOCK_PROCESS_CPUTIME_ID);
}

static bool counts(const struct plan_function *function)
{
	return function->reason != PLAN_LINKER_CODE && function->reason != PLAN_FRAGMENT &&
	       function->reason != PLAN_NO_RETURN_ADDRESS;
}

static void print_counts(const struct plan *plan)
{
	size_t count = plan->header->functions.count, all = 0;
	size_t reasons[PLAN_REASON_COUNT] = {0}, hows[PLAN_HOW_ISLAND + 1] = {0};

	for (size_t i = 0; i < count; i++) {
		const struct plan_function *function = &plan_get_functions(plan)[i];
		all += counts(function);
		reasons[function->reason]++;
		hows[function->how]++;
	}
	printf("  functions %zu, patchable %zu of %zu: %.2f %%", count, reasons[PLAN_PATCHABLE],
	       all, all ? 100.0 * (double)reasons[PLAN_PATCHABLE] / (double)all : 0);
	printf(" (jump %zu, nops %zu, pun %zu, island %zu)\n ", hows[PLAN_HOW_JUMP],
	       hows[PLAN_HOW_NOPS], hows[PLAN_HOW_PUN], hows[PLAN_HOW_ISLAND]);
	for (unsigned i = PLAN_PATCHABLE + 1; i < PLAN_REASON_COUNT; i++) {
		if (reasons[i])
			printf(" %s %zu", plan_reason_to_word(i), reasons[i]);
	}
	printf("\n");
}

static void print_left(const struct plan *plan, const struct symbol_table *symbols)
{
	for (size_t i = 0; i < plan->header->functions.count; i++) {
		const struct plan_function *function = &plan_get_functions(plan)[i];
		const struct symbol *symbol = symbols_find_at_address(symbols, function->vaddr);
		if (function->reason)
			printf("    %jx +%u %s %s\n", (uintmax_t)function->vaddr, function->size,
			       plan_reason_to_word(function->reason), symbol ? symbol->name : "");
	}
}

static void print_left_of(const struct elf_file *file, const struct plan *plan)
{
	struct symbol_table *symbols;

	if (symbols_create(&symbols))
		return;
	if (symbols_add_file(symbols, file) == 0 && symbols_sort_and_flatten(symbols) == 0)
		print_left(plan, symbols);
	symbols_destroy(symbols);
}

static int bench(const char *path, const char *directory, bool verbose)
{
	const struct plan_options options = {0};
	double times[5], walls[5];
	struct functions *functions;
	struct problem problem;
	struct elf_file *file;
	struct plan plan;
	struct rusage usage;

	times[0] = now_ms();
	walls[0] = clock_ms(CLOCK_MONOTONIC);
	if (elf_open(path, &file, &problem)) {
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	if (functions_find_in_file(file, NULL, &functions, &problem)) {
		fprintf(stderr, "%s\n", problem.text);
		elf_close(file);
		return 1;
	}
	times[1] = now_ms();
	walls[1] = clock_ms(CLOCK_MONOTONIC);
	if (plan_build(file, functions, &options, &plan, &problem)) {
		fprintf(stderr, "%s\n", problem.text);
		functions_destroy(functions);
		elf_close(file);
		return 1;
	}
	times[2] = now_ms();
	walls[2] = clock_ms(CLOCK_MONOTONIC);
	functions_destroy(functions);
	printf("%s\n", path);
	print_counts(&plan);
	if (verbose)
		print_left_of(file, &plan);
	printf("  find %.1f ms (wall %.1f), build %.1f ms (%.1f), plan %.0f kB, stubs %.0f kB\n",
	       times[1] - times[0], walls[1] - walls[0], times[2] - times[1], walls[2] - walls[1],
	       (double)plan.size / 1e3, (double)plan.header->stubs.count / 1e3);
	plan_close(&plan);
	for (int round = 0; round < 2; round++) {
		times[3] = now_ms();
		walls[3] = clock_ms(CLOCK_MONOTONIC);
		if (plan_load_or_build(file, directory, &options, &plan, &problem)) {
			fprintf(stderr, "%s\n", problem.text);
			break;
		}
		times[4] = now_ms();
		walls[4] = clock_ms(CLOCK_MONOTONIC);
		printf("  %s %.1f ms (%.1f)\n", plan.was_cached ? "from cache" : "made and stored",
		       times[4] - times[3], walls[4] - walls[3]);
		unlink(round ? plan.path : "");
		plan_close(&plan);
	}
	elf_close(file);
	getrusage(RUSAGE_SELF, &usage);
	printf("  peak memory %.1f MB\n", (double)usage.ru_maxrss / 1e3);
	return 0;
}

int main(int count, char **arguments)
{
	char directory[] = "/tmp/kymo-plan-XXXXXX";
	bool verbose = count > 1 && !strcmp(arguments[1], "-v");
	int failed = 0;

	if (!mkdtemp(directory))
		return 1;
	for (int i = 1 + verbose; i < count; i++)
		failed |= bench(arguments[i], directory, verbose);
	rmdir(directory);
	return failed;
}
