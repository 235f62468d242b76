/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The ELF reader on good, damaged and vanishing files.
 */
#include "binary/elf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

static const char *sample_path(const char *name)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", getenv("SAMPLES"), name);
	return path;
}

static struct elf_file *open_sample(const char *program)
{
	struct elf_file *file;
	struct problem problem = {""};
	if (elf_open(sample_path(program), &file, &problem))
		fail_msg("%s", problem.text);
	return file;
}

static uint8_t *read_all(const struct elf_file *file)
{
	uint8_t *bytes = malloc((size_t)file->size);
	assert_non_null(bytes);
	assert_int_equal(elf_read_bytes(file, 0, bytes, (size_t)file->size), 0);
	return bytes;
}

static void wrong_files_are_refused(void **state)
{
	(void)state;
	struct elf_file *file;
	struct problem problem;
	assert_int_equal(elf_open("/nonexistent/file", &file, &problem), -ENOENT);
	assert_non_null(strstr(problem.text, "/nonexistent/file"));
	assert_int_equal(elf_open("/", &file, &problem), -ENOEXEC);
	assert_int_equal(elf_open("/dev/null", &file, &problem), -ENOEXEC);
	assert_int_equal(elf_open_memory("#!/bin/sh\n", 10, "script", &file, &problem), -ENOEXEC);
	uint8_t small[64] = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB};
	assert_int_equal(elf_open_memory(small, sizeof(small), "small", &file, &problem), -ENOEXEC);
}

static void every_truncation_is_survived(void **state)
{
	(void)state;
	struct elf_file *whole = open_sample("sample");
	uint8_t *bytes = read_all(whole);
	for (size_t size = 0; size < whole->size; size += 61) {
		struct elf_file *file;
		if (elf_open_memory(bytes, size, "cut", &file, NULL))
			continue;
		for (size_t i = 0; i < file->section_count; i++) {
			struct elf_section_data data;
			if (elf_section_read(file, &file->sections[i], &data) == 0)
				elf_section_data_deinit(&data);
		}
		elf_close(file);
	}
	free(bytes);
	elf_close(whole);
}

static void file_truncated_while_open(void **state)
{
	(void)state;
	struct elf_file *whole = open_sample("sample"), *file;
	uint8_t *bytes = read_all(whole);
	char path[] = "elf-test-XXXXXX";
	int descriptor = mkstemp(path);
	assert_true(descriptor >= 0);
	assert_int_equal(write(descriptor, bytes, (size_t)whole->size), whole->size);
	assert_int_equal(elf_open(path, &file, NULL), 0);
	assert_int_equal(ftruncate(descriptor, 100), 0);
	struct elf_section_data data;
	const struct elf_section *symtab = elf_section_find(file, ".symtab");
	assert_non_null(symtab);
	assert_int_equal(elf_section_read(file, symtab, &data), -EBADMSG);
	elf_close(file);
	close(descriptor);
	unlink(path);
	free(bytes);
	elf_close(whole);
}

static void addresses_and_offsets(void **state)
{
	(void)state;
	struct elf_file *file = open_sample("sample");
	const struct elf_section *text = elf_section_find(file, ".text");
	uint64_t address, offset;
	assert_non_null(text);
	assert_true(elf_offset_to_vaddr(file, text->offset + 5, &address));
	assert_int_equal(address, text->address + 5);
	assert_true(elf_vaddr_to_offset(file, address, &offset));
	assert_int_equal(offset, text->offset + 5);
	assert_false(elf_offset_to_vaddr(file, UINT64_MAX, &address));
	assert_false(elf_vaddr_to_offset(file, UINT64_MAX, &offset));
	assert_int_equal(file->build_id_size, 20);
	elf_close(file);
}

/* The same section from a plain and a compressed file, but for offsets into strings. */
static void compressed_sections(const char *program, const char *name)
{
	struct elf_file *plain = open_sample("dwarf4"), *packed = open_sample(program);
	const struct elf_section *a = elf_section_find(plain, ".debug_abbrev");
	const struct elf_section *b = elf_section_find(packed, name);
	struct elf_section_data x, y;
	assert_non_null(a);
	if (!b)
		b = elf_section_find(packed, ".debug_abbrev"); /* too small to be worth it */
	assert_int_equal(elf_section_read(plain, a, &x), 0);
	assert_int_equal(elf_section_read(packed, b, &y), 0);
	assert_int_equal(x.size, y.size);
	assert_memory_equal(x.bytes, y.bytes, x.size);
	elf_section_data_deinit(&x);
	elf_section_data_deinit(&y);
	elf_close(plain);
	elf_close(packed);
}

static void compressed_in_both_ways(void **state)
{
	(void)state;
	compressed_sections("gabi", ".debug_abbrev");
	compressed_sections("zdebug", ".zdebug_abbrev");
}

static void absurd_expansion_is_refused(void **state)
{
	(void)state;
	uint8_t bytes[sizeof(Elf64_Chdr) + 16] = {0};
	Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = (uint64_t)1 << 40};
	memcpy(bytes, &header, sizeof(header));
	struct elf_file file = {.descriptor = -1, .image = bytes, .size = sizeof(bytes)};
	struct elf_section section = {
		.name = "", .type = SHT_PROGBITS, .flags = SHF_COMPRESSED, .size = sizeof(bytes)};
	struct elf_section_data data;
	assert_int_equal(elf_section_read(&file, &section, &data), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_files_are_refused),
		cmocka_unit_test(every_truncation_is_survived),
		cmocka_unit_test(file_truncated_while_open),
		cmocka_unit_test(addresses_and_offsets),
		cmocka_unit_test(compressed_in_both_ways),
		cmocka_unit_test(absurd_expansion_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
