/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Whole requests: the same answers from every form of debug information, none where the file is
 * another one, and the cache.
 */
#include "analysis/symbols/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "binary/symbols/symbols.h"

#define NO_DEBUG_PATH "/nonexistent"

static const char *sample_path(const char *name)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", getenv("SAMPLES"), name);
	return path;
}

/* Link-time address of a label, from the unstripped program. */
static uint64_t address_of(const char *program, const char *name)
{
	struct elf_file *file;
	struct symbol_table *symbols;
	uint64_t address = 0;
	assert_int_equal(elf_open(sample_path(program), &file, NULL), 0);
	assert_int_equal(symbols_create(&symbols), 0);
	assert_int_equal(symbols_add_file(symbols, file), 0);
	assert_int_equal(symbols_sort_and_flatten(symbols), 0);
	for (size_t i = 0; i < symbols_get_count(symbols); i++) {
		if (strcmp(symbols_get_nth(symbols, i)->name, name) == 0)
			address = symbols_get_nth(symbols, i)->address;
	}
	symbols_destroy(symbols);
	elf_close(file);
	if (!address)
		fail_msg("%s has no %s", program, name);
	return address;
}

/* Looks up one label of `labels_of` in `program`. */
static void look_up(const char *program, const char *labels_of, const char *label, bool inlines,
		    const char *debug_path, struct symbolizer_request_result *ret)
{
	uint64_t address = address_of(labels_of, label), offset;
	struct elf_file *file;
	assert_int_equal(elf_open(sample_path(program), &file, NULL), 0);
	assert_true(elf_vaddr_to_offset(file, address, &offset));
	struct symbolizer_request request = {.path = file->path,
					     .build_id = file->build_id,
					     .build_id_size = file->build_id_size,
					     .offsets = &offset,
					     .count = 1,
					     .with_inlines = inlines,
					     .debug_search_path = debug_path,
					     .symbol_cache_directory = ""};
	struct problem problem = {""};
	if (symbolize_module(&request, ret, &problem))
		fail_msg("%s", problem.text);
	assert_int_equal(ret->chain_count, 1);
	assert_int_equal(ret->chains[0].vaddr, address);
	elf_close(file);
}

static void assert_frame(const struct symbolizer_request_result *result, uint32_t index,
			 const char *function, uint32_t line, bool inlined)
{
	assert_true(index < result->chains[0].count);
	const struct symbolizer_frame *frame = &result->frames[result->chains[0].first + index];
	assert_string_equal(frame->function, function);
	assert_int_equal(frame->line, line);
	assert_int_equal(frame->inlined, inlined);
	if (line)
		assert_string_equal(strrchr(frame->file, '/'), "/sample.c");
	assert_true(frame->function_id < result->function_count);
}

static void assert_full(const char *program, const char *labels_of, const char *debug_path)
{
	struct symbolizer_request_result result;
	look_up(program, labels_of, "mark_innermost", true, debug_path, &result);
	assert_int_equal(result.status, SYMBOLIZER_LINES_AND_NAMES);
	assert_int_equal(result.chains[0].count, 3);
	assert_frame(&result, 0, "innermost", 14, true);
	assert_frame(&result, 1, "middle", 20, true);
	assert_frame(&result, 2, "outermost", 28, false);
	assert_int_equal(result.frames[result.chains[0].first].function_line, 12);
	assert_null(result.advice);
	symbolizer_result_deinit(&result);
	look_up(program, labels_of, "mark_middle", true, debug_path, &result);
	assert_int_equal(result.chains[0].count, 2);
	assert_frame(&result, 0, "middle", 21, true);
	assert_frame(&result, 1, "outermost", 28, false);
	symbolizer_result_deinit(&result);
	look_up(program, labels_of, "mark_local", true, debug_path, &result);
	assert_int_equal(result.chains[0].count, 1);
	assert_frame(&result, 0, "local_function", 33, false);
	symbolizer_result_deinit(&result);
	look_up(program, labels_of, "mark_nested", true, debug_path, &result);
	assert_int_equal(result.chains[0].count, 1);
	assert_int_equal(result.frames[result.chains[0].first].line, 44);
	symbolizer_result_deinit(&result);
}

static void every_form_of_debug_information(void **state)
{
	(void)state;
	assert_full("sample", "sample", NO_DEBUG_PATH);
	assert_full("dwarf4", "dwarf4", NO_DEBUG_PATH);
	assert_full("gabi", "gabi", NO_DEBUG_PATH);
	assert_full("zdebug", "zdebug", NO_DEBUG_PATH);
	assert_full("split", "split", NO_DEBUG_PATH);
}

static void separate_debug_files(void **state)
{
	(void)state;
	char path[PATH_MAX + 32];
	assert_full("beside/program", "sample", NO_DEBUG_PATH);
	snprintf(path, sizeof(path), "/nonexistent::%s", sample_path("by-id"));
	assert_full("alone/program", "sample", path);
	setenv("DEBUGINFOD_CACHE_PATH", sample_path("fetched"), 1);
	assert_full("alone/program", "sample", NO_DEBUG_PATH);
	unsetenv("DEBUGINFOD_CACHE_PATH");
	assert_full("crc-good/program", "no-id", NO_DEBUG_PATH);
}

static void stripped_without_debug_file(void **state)
{
	(void)state;
	struct symbolizer_request_result result;
	look_up("alone/program", "sample", "mark_local", true, NO_DEBUG_PATH, &result);
	assert_int_equal(result.status, SYMBOLIZER_NO_SYMBOLS);
	assert_int_equal(result.unresolved_chain_count, 1);
	assert_non_null(strstr(result.advice, "debuginfod-find debuginfo "));
	symbolizer_result_deinit(&result);
	look_up("crc-bad/program", "no-id", "mark_local", true, NO_DEBUG_PATH, &result);
	assert_int_equal(result.unresolved_chain_count, 1);
	symbolizer_result_deinit(&result);
}

static void names_only(void **state)
{
	(void)state;
	struct symbolizer_request_result result;
	look_up("sample", "sample", "mark_innermost", false, NO_DEBUG_PATH, &result);
	assert_int_equal(result.status, SYMBOLIZER_NAMES_ONLY);
	assert_int_equal(result.chains[0].count, 1);
	assert_frame(&result, 0, "outermost", 0, false);
	symbolizer_result_deinit(&result);
	if (access(sample_path("mini"), R_OK) != 0)
		return;
	look_up("mini", "sample", "mark_local", true, NO_DEBUG_PATH, &result);
	if (result.status == SYMBOLIZER_NAMES_ONLY) /* else built without liblzma */
		assert_frame(&result, 0, "local_function", 0, false);
	symbolizer_result_deinit(&result);
}

static void another_file_than_ran(void **state)
{
	(void)state;
	static const uint8_t other[20] = {1, 2, 3};
	uint64_t offset = 0x1000;
	struct symbolizer_request request = {.build_id = other,
					     .build_id_size = sizeof(other),
					     .offsets = &offset,
					     .count = 1,
					     .with_inlines = true,
					     .symbol_cache_directory = ""};
	struct symbolizer_request_result result;
	request.path = sample_path("sample");
	assert_int_equal(symbolize_module(&request, &result, NULL), 0);
	assert_int_equal(result.status, SYMBOLIZER_FILE_REPLACED);
	assert_int_equal(result.unresolved_chain_count, 1);
	assert_int_equal(result.chains[0].vaddr, offset);
	assert_non_null(strstr(result.advice, "replaced"));
	symbolizer_result_deinit(&result);
	request.path = "/nonexistent";
	assert_int_equal(symbolize_module(&request, &result, NULL), 0);
	assert_int_equal(result.status, SYMBOLIZER_NO_FILE);
	symbolizer_result_deinit(&result);
	request.path = "/dev/null";
	assert_int_equal(symbolize_module(&request, &result, NULL), 0);
	assert_int_equal(result.status, SYMBOLIZER_BAD_FILE);
	symbolizer_result_deinit(&result);
}

static void unordered_request_is_refused(void **state)
{
	(void)state;
	uint64_t offsets[] = {2, 2};
	struct symbolizer_request request = {.path = "x", .offsets = offsets, .count = 2};
	struct symbolizer_request_result result;
	struct problem problem;
	assert_int_equal(symbolize_module(&request, &result, &problem), -EINVAL);
}

static void vdso_of_this_process(void **state)
{
	(void)state;
	const char *base = (const char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	void *vdso = base ? dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
	void *function = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
	if (!function)
		skip();
	uint64_t offset = (uint64_t)((const char *)function - base);
	struct symbolizer_request request = {
		.path = "[vdso]", .offsets = &offset, .count = 1, .symbol_cache_directory = ""};
	struct symbolizer_request_result result;
	assert_int_equal(symbolize_module(&request, &result, NULL), 0);
	assert_int_equal(result.unresolved_chain_count, 0);
	assert_non_null(strstr(result.frames[0].function, "clock_gettime"));
	symbolizer_result_deinit(&result);
}

/* Asks for two labels of `path` with the cache; the caller frees. */
static void ask_cached(const char *path, const char *cache, const struct elf_file *file,
		       struct symbolizer_request_result *ret)
{
	uint64_t offsets[2];
	assert_true(elf_vaddr_to_offset(file, address_of("sample", "mark_innermost"), &offsets[0]));
	assert_true(elf_vaddr_to_offset(file, address_of("sample", "mark_local"), &offsets[1]));
	if (offsets[0] > offsets[1]) {
		uint64_t first = offsets[1];
		offsets[1] = offsets[0];
		offsets[0] = first;
	}
	struct symbolizer_request request = {.path = path,
					     .build_id = file->build_id,
					     .build_id_size = file->build_id_size,
					     .offsets = offsets,
					     .count = 2,
					     .with_inlines = true,
					     .debug_search_path = NO_DEBUG_PATH,
					     .symbol_cache_directory = cache};
	assert_int_equal(symbolize_module(&request, ret, NULL), 0);
	assert_int_equal(ret->chain_count, 2);
}

static void assert_same(const struct symbolizer_request_result *a,
			const struct symbolizer_request_result *b)
{
	assert_int_equal(a->status, b->status);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(a->chains[i].vaddr, b->chains[i].vaddr);
		assert_int_equal(a->chains[i].count, b->chains[i].count);
		for (uint32_t j = 0; j < a->chains[i].count; j++) {
			const struct symbolizer_frame *x = &a->frames[a->chains[i].first + j];
			const struct symbolizer_frame *y = &b->frames[b->chains[i].first + j];
			assert_string_equal(x->function, y->function);
			assert_string_equal(x->file, y->file);
			assert_int_equal(x->line, y->line);
			assert_int_equal(x->inlined, y->inlined);
		}
	}
}

static void cache_file_path(const struct elf_file *file, const char *cache, char path[PATH_MAX])
{
	int at = snprintf(path, PATH_MAX, "%s/", cache);
	for (uint32_t i = 0; i < file->build_id_size; i++)
		at += snprintf(path + at, PATH_MAX - (size_t)at, "%02x", file->build_id[i]);
	snprintf(path + at, PATH_MAX - (size_t)at, ".sym");
}

static void damage(const char *path, off_t at)
{
	uint8_t byte;
	int descriptor = open(path, O_RDWR | O_CLOEXEC);
	assert_true(descriptor >= 0);
	assert_int_equal(pread(descriptor, &byte, 1, at), 1);
	byte ^= 0x55;
	assert_int_equal(pwrite(descriptor, &byte, 1, at), 1);
	close(descriptor);
}

static void cache_answers_and_doubts_itself(void **state)
{
	(void)state;
	char directory[] = "symbolize-test-XXXXXX", cache[PATH_MAX], path[PATH_MAX];
	struct elf_file *file;
	struct symbolizer_request_result first, second;
	struct stat status;
	assert_non_null(mkdtemp(directory));
	snprintf(cache, sizeof(cache), "%s/not/yet", directory);
	assert_int_equal(elf_open(sample_path("sample"), &file, NULL), 0);
	cache_file_path(file, cache, path);
	ask_cached(file->path, cache, file, &first);
	assert_false(first.from_cache);
	assert_int_equal(stat(path, &status), 0);
	ask_cached(file->path, cache, file, &second);
	assert_true(second.from_cache);
	assert_same(&first, &second);
	symbolizer_result_deinit(&second);
	/* The program is gone: the cache still knows it. */
	ask_cached("/nonexistent", cache, file, &second);
	assert_true(second.from_cache);
	assert_same(&first, &second);
	symbolizer_result_deinit(&second);
	for (off_t at = 0; at < status.st_size; at += 37) {
		damage(path, at);
		ask_cached(file->path, cache, file, &second);
		assert_false(second.from_cache);
		assert_same(&first, &second);
		symbolizer_result_deinit(&second);
	}
	symbolizer_result_deinit(&first);
	unlink(path);
	rmdir(cache);
	snprintf(cache, sizeof(cache), "%s/not", directory);
	rmdir(cache);
	rmdir(directory);
	elf_close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_debug_information),
		cmocka_unit_test(separate_debug_files),
		cmocka_unit_test(stripped_without_debug_file),
		cmocka_unit_test(names_only),
		cmocka_unit_test(another_file_than_ran),
		cmocka_unit_test(unordered_request_is_refused),
		cmocka_unit_test(vdso_of_this_process),
		cmocka_unit_test(cache_answers_and_doubts_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
