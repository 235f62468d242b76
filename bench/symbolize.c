/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Symbolizing 100,000 distinct addresses: by symbol tables alone, by debug information with inlined
 * calls, and by the tools of binutils and LLVM on fewer. Each case runs in a process of its own;
 * CPU time and peak memory are that process's.
 *
 * Inputs: node and libLLVM where they are installed; a C++ program that symbolize_input.sh makes on
 * the first run (20 s) beside this one.
 */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/symbols/symbols.h"
#include "binary/elf.h"
#include "binary/symbols/symbols.h"
#include "common/array.h"

#define ADDRESS_COUNT 100000u

struct addresses {
	struct elf_file *file;
	uint64_t *virtual, *offsets;
	size_t count;
};

static double cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

static struct symbol_table *load_symbols(const struct elf_file *file)
{
	struct symbol_table *symbols;
	if (symbols_create(&symbols) || symbols_add_file(symbols, file) ||
	    symbols_sort_and_flatten(symbols))
		exit(1);
	return symbols;
}

/* Addresses spread evenly over the code that has names, as in a program that does many things. */
static int choose(const char *path, size_t count, struct addresses *ret)
{
	struct addresses chosen = {.virtual = malloc(count * sizeof(uint64_t)),
				   .offsets = malloc(count * sizeof(uint64_t))};
	if (!chosen.virtual || !chosen.offsets || elf_open(path, &chosen.file, NULL))
		return -1;
	struct symbol_table *symbols = load_symbols(chosen.file);
	double total = 0, covered = 0;
	for (size_t i = 0; i < symbols_get_count(symbols); i++)
		total += (double)symbols_get_nth(symbols, i)->size;
	for (size_t i = 0; i < symbols_get_count(symbols) && chosen.count < count; i++) {
		const struct symbol *symbol = symbols_get_nth(symbols, i);
		covered += (double)symbol->size;
		while (symbol->size && (double)chosen.count < covered * (double)count / total &&
		       chosen.count < count)
			chosen.virtual[chosen.count++] = symbol->address +
							 (uint64_t)random() % symbol->size;
	}
	symbols_destroy(symbols);
	qsort(chosen.virtual, chosen.count, sizeof(uint64_t), compare);
	size_t unique = 0;
	for (size_t i = 0; i < chosen.count; i++) {
		uint64_t offset;
		if ((unique && chosen.virtual[unique - 1] == chosen.virtual[i]) ||
		    !elf_vaddr_to_offset(chosen.file, chosen.virtual[i], &offset))
			continue;
		chosen.virtual[unique] = chosen.virtual[i];
		chosen.offsets[unique++] = offset;
	}
	chosen.count = unique;
	*ret = chosen;
	return 0;
}

static void print_row(const char *what, const char *path, size_t count, double ms, long kilobytes,
		      const char *note)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	printf("%-26s %-18s %7zu addresses %9.1f ms %8.2f us each %6ld MB  %s\n", what, name, count,
	       ms, ms * 1e3 / (double)(count ? count : 1), kilobytes >> 10, note);
	fflush(stdout);
}

static void case_table(const struct addresses *addresses)
{
	double start = cpu_ms();
	struct symbol_table *symbols = load_symbols(addresses->file);
	double loaded = cpu_ms();
	size_t found = 0;
	for (size_t i = 0; i < addresses->count; i++)
		found += symbols_find_at_address(symbols, addresses->virtual[i]) != NULL;
	double end = cpu_ms();
	char note[128];
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	snprintf(note, sizeof(note), "%zu symbols in %.1f ms, %zu found",
		 symbols_get_count(symbols), loaded - start, found);
	print_row("symbol table", addresses->file->path, addresses->count, end - start,
		  usage.ru_maxrss, note);
	symbols_destroy(symbols);
}

static void case_module(const struct addresses *addresses, bool inlines, const char *cache,
			const char *what)
{
	struct symbolizer_request request = {.path = addresses->file->path,
					     .build_id = addresses->file->build_id,
					     .build_id_size = addresses->file->build_id_size,
					     .offsets = addresses->offsets,
					     .count = addresses->count,
					     .with_inlines = inlines,
					     .symbol_cache_directory = cache};
	struct symbolizer_request_result result;
	struct problem problem;
	double start = cpu_ms();
	if (symbolize_module(&request, &result, &problem)) {
		puts(problem.text);
		return;
	}
	double end = cpu_ms();
	char note[128];
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	size_t frames = 0;
	for (size_t i = 0; i < result.chain_count; i++)
		frames += result.chains[i].count;
	snprintf(note, sizeof(note), "%zu frames, %u functions, %zu unresolved", frames,
		 result.function_count, result.unresolved_chain_count);
	print_row(what, addresses->file->path, addresses->count, end - start, usage.ru_maxrss,
		  note);
	symbolizer_result_deinit(&result);
}

/* Another tool, given addresses on its standard input. */
static void case_tool(const struct addresses *addresses, const char *command, const char *what)
{
	char line[2 * PATH_MAX];
	struct rusage before, after;
	getrusage(RUSAGE_CHILDREN, &before);
	snprintf(line, sizeof(line), command, addresses->file->path);
	FILE *tool = popen(line, "w");
	for (size_t i = 0; tool && i < addresses->count; i++)
		fprintf(tool, "0x%llx\n", (unsigned long long)addresses->virtual[i]);
	if (!tool || pclose(tool) != 0)
		return;
	getrusage(RUSAGE_CHILDREN, &after);
	double ms = (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec) * 1e3 +
		    (double)(after.ru_utime.tv_usec + after.ru_stime.tv_usec) / 1e3;
	print_row(what, addresses->file->path, addresses->count, ms, after.ru_maxrss, "");
}

enum bench_case {
	CASE_TABLE,
	CASE_NAMES,
	CASE_INLINES,
	CASE_CACHE_COLD,
	CASE_CACHE_WARM,
	CASE_ADDR2LINE,
	CASE_LLVM
};

static void run_case(enum bench_case which, const struct addresses *addresses, const char *cache)
{
	switch (which) {
	case CASE_TABLE:
		case_table(addresses);
		break;
	case CASE_NAMES:
		case_module(addresses, false, "", "kymo, demangled names");
		break;
	case CASE_INLINES:
		case_module(addresses, true, "", "kymo, lines and inlines");
		break;
	case CASE_CACHE_COLD:
		case_module(addresses, true, cache, "kymo, cache being written");
		break;
	case CASE_CACHE_WARM:
		case_module(addresses, true, cache, "kymo, from its cache");
		break;
	case CASE_ADDR2LINE:
		case_tool(addresses, "addr2line -f -C -i -e '%s' >/dev/null 2>&1", "addr2line");
		break;
	case CASE_LLVM:
		case_tool(addresses, "llvm-symbolizer --inlines -C -e '%s' >/dev/null 2>&1",
			  "llvm-symbolizer");
		break;
	}
}

static void in_child(enum bench_case which, const char *path, size_t count, const char *cache)
{
	pid_t child = fork();
	if (child == 0) {
		struct addresses addresses;
		if (choose(path, count, &addresses) == 0)
			run_case(which, &addresses, cache);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

static bool make_input(const char *directory, char path[PATH_MAX])
{
	char command[3 * PATH_MAX];
	snprintf(path, PATH_MAX, "%s/symbolize-input", directory);
	if (access(path, R_OK) == 0)
		return true;
	snprintf(command, sizeof(command), "'%s/symbolize_input.sh' '%s' '%s'", BENCH_SOURCE,
		 BENCH_SOURCE, path);
	return system(command) == 0;
}

static void bench_input(const char *directory)
{
	char path[PATH_MAX], cache[] = "/tmp/symbolize-cache-XXXXXX", command[64];
	if (!make_input(directory, path) || !mkdtemp(cache)) {
		puts("no C++ program could be made to look at");
		return;
	}
	in_child(CASE_TABLE, path, ADDRESS_COUNT, cache);
	in_child(CASE_INLINES, path, ADDRESS_COUNT, cache);
	in_child(CASE_INLINES, path, ADDRESS_COUNT / 100, cache);
	in_child(CASE_CACHE_COLD, path, ADDRESS_COUNT, cache);
	in_child(CASE_CACHE_WARM, path, ADDRESS_COUNT, cache);
	in_child(CASE_ADDR2LINE, path, ADDRESS_COUNT / 100, cache);
	in_child(CASE_LLVM, path, ADDRESS_COUNT / 10, cache);
	snprintf(command, sizeof(command), "rm -rf '%s'", cache);
	if (system(command) != 0)
		puts("the cache could not be removed");
}

int main(int argc, char **argv)
{
	static const char *const programs[] = {"/usr/bin/node",
					       "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"};
	(void)argc;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		if (access(programs[i], R_OK) != 0)
			continue;
		in_child(CASE_TABLE, programs[i], ADDRESS_COUNT, "");
		in_child(CASE_NAMES, programs[i], ADDRESS_COUNT, "");
	}
	bench_input(dirname(argv[0]));
	return 0;
}
