/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What one ELF file contributes, and files that are none.
 */
#include "unit/core/core_test.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/module_file.h"
#include "unit/analysis/test_directory.h"

/* A line as the kernel would write it for an executable mapping of this file. */
static struct maps_line line_for(const char *path)
{
	static char copy[4096];
	struct stat status = {0};

	stat(path, &status);
	snprintf(copy, sizeof(copy), "%s", path);
	return (struct maps_line){.start = 0x1000,
				  .end = 0x2000,
				  .device = (uint64_t)major(status.st_dev) << 20 |
					    minor(status.st_dev),
				  .inode = status.st_ino,
				  .executable = true,
				  .path = copy};
}

static const struct module_file *get(const char *path)
{
	struct maps_line line = line_for(path);

	return module_file_find_or_add(&line, "");
}

/* Any mapped file for whose path `accept` says so. */
static bool find_mapping(const char *part, struct maps_line *ret, char **buffer, uint64_t *size)
{
	char *at;

	assert_true(maps_read_whole_file("/proc/self/maps", buffer, size) > 0);
	at = *buffer;
	while (maps_parse_next_line(&at, ret)) {
		if (ret->executable && strstr(ret->path, part))
			return true;
	}
	return false;
}

static void the_libc_has_a_build_id_and_a_table(void **state)
{
	char *buffer = NULL;
	uint64_t size = 0;
	struct maps_line line;
	const struct module_file *file;

	(void)state;
	assert_true(find_mapping("/libc.so", &line, &buffer, &size) ||
		    find_mapping("/libc-", &line, &buffer, &size));
	file = module_file_find_or_add(&line, "");
	assert_non_null(file);
	assert_int_equal(file->inode, line.inode);
	assert_in_range(file->build_id_size, 8, MODULE_BUILD_ID_MAX);
	assert_non_null(file->table);
	assert_true(file->unwind_table_bytes > 1000);
	munmap(buffer, size);
}

static void the_vdso_is_read_from_memory(void **state)
{
	char *buffer = NULL;
	uint64_t size = 0;
	struct maps_line line;
	const struct module_file *file;

	(void)state;
	if (!find_mapping("[vdso]", &line, &buffer, &size))
		skip();
	file = module_file_find_or_add(&line, "");
	assert_non_null(file);
	assert_true(file->build_id_size > 0);
	assert_non_null(file->table);
	assert_ptr_equal(module_file_find_or_add(&line, ""), file);
	munmap(buffer, size);
}

static void a_file_is_read_once(void **state)
{
	const struct module_file *file = get("/proc/self/exe"), *again;

	(void)state;
	assert_non_null(file);
	again = get("/proc/self/exe");
	assert_ptr_equal(again, file);
}

static const char *write_file(const char *directory, const void *bytes, size_t size)
{
	static char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/file", directory);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
	return path;
}

static void what_is_no_elf_file_is_no_module(void **state)
{
	static const Elf32_Ehdr small = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32}};
	static const Elf64_Ehdr odd = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64}, .e_phentsize = 1, .e_phnum = 3};

	assert_null(get(write_file(*state, "", 0)));
	assert_null(get(write_file(*state, "#!/bin/sh\n", 10)));
	assert_null(get(write_file(*state, &small, sizeof(small))));
	assert_null(get(write_file(*state, &odd, sizeof(odd))));
	assert_null(get(*state)); /* a directory */
	assert_null(get("/dev/null"));
	assert_null(get("/no/such/file"));
}

static void memory_without_a_file_is_no_module(void **state)
{
	static const char *const paths[] = {"",       "[stack]",  "[heap]",
					    "//anon", "[anon:x]", "/gone.so (deleted)"};

	(void)state;
	for (size_t i = 0; i < LENGTH(paths); i++) {
		struct maps_line line = line_for(paths[i]);
		line.inode = i == LENGTH(paths) - 1 ? 5 : 0;
		assert_null(module_file_find_or_add(&line, ""));
	}
}

/* The program replaced a library on disk that it still runs from memory. */
static void another_file_at_the_path_is_not_taken(void **state)
{
	struct maps_line line = line_for("/proc/self/exe");

	(void)state;
	line.inode++;
	assert_null(module_file_find_or_add(&line, ""));
}

/* One PT_NOTE segment with a note before the build-id. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr program;
	Elf64_Nhdr first;
	char first_name[4], first_text[8];
	Elf64_Nhdr second;
	char second_name[4];
	uint8_t id[20];
};

static struct image image_with_note(void)
{
	struct image image = {
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = offsetof(struct image, program),
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1},
		.program = {.p_type = PT_NOTE,
			    .p_offset = offsetof(struct image, first),
			    .p_filesz = sizeof(struct image) - offsetof(struct image, first)},
		.first = {4, 5, 77},
		.first_name = "abc",
		.second = {4, 20, NT_GNU_BUILD_ID},
		.second_name = "GNU"};

	for (size_t i = 0; i < sizeof(image.id); i++)
		image.id[i] = (uint8_t)(i + 1);
	return image;
}

static void the_build_id_is_found_among_other_notes(void **state)
{
	struct image image = image_with_note();
	const struct module_file *file = get(write_file(*state, &image, sizeof(image)));

	assert_non_null(file);
	assert_int_equal(file->build_id_size, 20);
	assert_memory_equal(file->build_id, image.id, 20);
}

static void notes_that_lie_about_their_size_are_left_alone(void **state)
{
	static const uint32_t sizes[] = {33, 4096, 0x7ffffff0, UINT32_MAX};

	for (size_t i = 0; i < LENGTH(sizes); i++) {
		struct image image = image_with_note();
		const struct module_file *file;

		image.second.n_descsz = sizes[i];
		file = get(write_file(*state, &image, sizeof(image)));
		assert_true(!file || file->build_id_size == 0);
		image = image_with_note();
		image.first.n_namesz = sizes[i];
		file = get(write_file(*state, &image, sizeof(image)));
		assert_true(!file || file->build_id_size == 0);
		image = image_with_note();
		image.program.p_filesz = (uint64_t)sizes[i] << 32 | sizes[i];
		get(write_file(*state, &image, sizeof(image)));
		image.program.p_offset = (uint64_t)sizes[i] << 32;
		get(write_file(*state, &image, sizeof(image)));
		image.header.e_phoff = UINT64_MAX - sizes[i];
		assert_null(get(write_file(*state, &image, sizeof(image))));
	}
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(the_libc_has_a_build_id_and_a_table),
		TEST(the_vdso_is_read_from_memory),
		TEST(a_file_is_read_once),
		TEST(what_is_no_elf_file_is_no_module),
		TEST(memory_without_a_file_is_no_module),
		TEST(another_file_at_the_path_is_not_taken),
		TEST(the_build_id_is_found_among_other_notes),
		TEST(notes_that_lie_about_their_size_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
