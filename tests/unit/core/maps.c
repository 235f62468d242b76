/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lines of /proc/PID/maps: all that proc(5) allows, and what it does not.
 */
#include "unit/core/core_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/process/maps.h"

static char text[4096];

static char *copy(const char *string)
{
	assert_true(strlen(string) < sizeof(text));
	return strcpy(text, string);
}

static void a_file_line_gives_all_fields(void **state)
{
	char *at = copy("55d0c8a00000-55d0c8a22000 r-xp 0001e000 fd:01 1835017   /usr/bin/cat\n");
	struct maps_line line;

	(void)state;
	assert_true(maps_parse_next_line(&at, &line));
	assert_int_equal(line.start, 0x55d0c8a00000);
	assert_int_equal(line.end, 0x55d0c8a22000);
	assert_int_equal(line.offset, 0x1e000);
	assert_int_equal(line.device, 0xfdull << 20 | 1);
	assert_int_equal(line.inode, 1835017);
	assert_true(line.readable && !line.writable && line.executable && !line.shared);
	assert_string_equal(line.path, "/usr/bin/cat");
	assert_false(maps_parse_next_line(&at, &line));
}

static void paths_are_kept_as_they_are(void **state)
{
	static const char *const paths[] = {
		"/a path/with  two blanks and (brackets).so",
		"/usr/lib/libold.so (deleted)",
		"[vdso]",
		"[anon:name with blanks]",
		"/memfd:jit code (deleted)",
		"/trailing blank ",
		"//anon",
		"/a-b r-xp 00 00:00 0 /x",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(paths); i++) {
		char buffer[256], *at = buffer;
		struct maps_line line;

		snprintf(buffer, sizeof(buffer), "1000-2000 rwxs 00000000 00:1f 3 \t%s\n",
			 paths[i]);
		*strchr(buffer, '\t') = ' ';
		assert_true(maps_parse_next_line(&at, &line));
		assert_string_equal(line.path, paths[i]);
		assert_true(line.readable && line.writable && line.executable && line.shared);
	}
}

static void anonymous_memory_has_an_empty_path(void **state)
{
	char *at = copy("1000-2000 ---p 00000000 00:00 0 \n2000-3000 r--p 00000000 00:00 0\n");
	struct maps_line line;

	(void)state;
	assert_true(maps_parse_next_line(&at, &line));
	assert_string_equal(line.path, "");
	assert_false(line.readable || line.writable || line.executable || line.shared);
	assert_true(maps_parse_next_line(&at, &line));
	assert_string_equal(line.path, "");
	assert_int_equal(line.start, 0x2000);
}

static void the_highest_addresses_fit(void **state)
{
	char *at = copy("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n");
	struct maps_line line;

	(void)state;
	assert_true(maps_parse_next_line(&at, &line));
	assert_int_equal(line.start, 0xffffffffff600000);
	assert_int_equal(line.end, 0xffffffffff601000);
}

static void malformed_lines_are_skipped(void **state)
{
	char *at = copy("\n"
			"nonsense\n"
			"1000 2000 r-xp 00000000 00:00 0\n"
			"1000-2000\n"
			"1000-2000 r-\n"
			"1000-2000 r-xp 00000000 0000 0\n"
			"-2000 r-xp 00000000 00:00 0\n"
			"5000-6000 r-xp 00000000 00:00 7 /good\n"
			"7000-8000 r-xp");
	struct maps_line line;

	(void)state;
	assert_true(maps_parse_next_line(&at, &line));
	assert_int_equal(line.start, 0x5000);
	assert_string_equal(line.path, "/good");
	assert_false(maps_parse_next_line(&at, &line));
}

/* Cut anywhere, a line gives a prefix of itself or nothing, and nothing is read behind the end. */
static void a_truncated_line_is_read_to_its_end_only(void **state)
{
	static const char whole[] = "1000-2000 r-xp 00000300 fd:01 1835017 /usr/bin/cat";

	(void)state;
	for (size_t length = 0; length < sizeof(whole); length++) {
		char buffer[sizeof(whole)], *at = buffer;
		struct maps_line line;

		memcpy(buffer, whole, length);
		buffer[length] = 0;
		memset(buffer + length + 1, 'f', sizeof(buffer) - length - 1);
		if (maps_parse_next_line(&at, &line))
			assert_int_equal(line.start, 0x1000);
		assert_true(at <= buffer + length);
	}
}

static void the_own_maps_have_the_executable(void **state)
{
	char *buffer = NULL, *at, executable[4096];
	uint64_t size = 0, function = (uint64_t)(uintptr_t)the_own_maps_have_the_executable;
	ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable) - 1);
	struct maps_line line;
	struct stat status;
	bool found = false;

	(void)state;
	assert_true(length > 0);
	executable[length] = 0;
	assert_int_equal(stat(executable, &status), 0);
	assert_true(maps_read_whole_file("/proc/self/maps", &buffer, &size) > 0);
	at = buffer;
	while (maps_parse_next_line(&at, &line)) {
		if (function < line.start || function >= line.end)
			continue;
		found = true;
		assert_true(line.executable);
		assert_string_equal(line.path, executable);
		assert_int_equal(line.inode, status.st_ino);
	}
	assert_true(found);
	munmap(buffer, size);
}

/* More mappings than the first buffer holds. */
static void reading_grows_the_buffer_as_needed(void **state)
{
	enum { PAGES = 3000 };
	char *buffer = NULL, *at;
	uint64_t size = 0, again;
	char *pages = mmap(NULL, PAGES * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct maps_line line;
	unsigned inside = 0;

	(void)state;
	assert_true(pages != MAP_FAILED);
	for (size_t i = 0; i < PAGES; i += 2) /* neighbours differ, so each is a line */
		assert_int_equal(mprotect(pages + i * 4096, 4096, PROT_READ), 0);
	assert_true(maps_read_whole_file("/proc/self/maps", &buffer, &size) > 64 << 10);
	again = size;
	at = buffer;
	while (maps_parse_next_line(&at, &line)) {
		if (line.start >= (uintptr_t)pages && line.end <= (uintptr_t)pages + PAGES * 4096)
			inside++;
	}
	assert_in_range(inside, PAGES - 2, PAGES);
	munmap(pages, PAGES * 4096);
	assert_true(maps_read_whole_file("/proc/self/maps", &buffer, &size) >
		    0); /* the buffer is used again */
	assert_int_equal(size, again);
	munmap(buffer, size);
}

static void a_file_that_is_not_there_is_an_error(void **state)
{
	char *buffer = NULL;
	uint64_t size = 0;

	(void)state;
	assert_int_equal(maps_read_whole_file("/proc/self/no-such-file", &buffer, &size), -ENOENT);
	munmap(buffer, size);
}

/* The pointer lies in the memory itself: a store to it afterwards would be a fault. */
static void memory_is_forgotten_before_it_is_given_back(void **state)
{
	char **memory =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *nothing = NULL;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	*memory = (char *)memory;
	maps_free_buffer(memory, 4096);
	assert_int_equal(msync(memory, 4096, MS_ASYNC), -1);
	assert_int_equal(errno, ENOMEM);
	maps_free_buffer(&nothing, 4096);
}

/* What the kernel says of one address is what the list says of it. */
static void check_query(int (*query)(int fd, uint64_t address, char *path, uint32_t size,
				     struct maps_line *ret))
{
	char *buffer = NULL, *at, path[256];
	uint64_t size = 0;
	struct maps_line listed, asked;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), seen = 0;

	assert_true(fd >= 0);
	assert_true(maps_read_whole_file("/proc/self/maps", &buffer, &size) > 0);
	for (at = buffer; maps_parse_next_line(&at, &listed);) {
		if (listed.path[0] != '/')
			continue;
		seen++;
		assert_int_equal(query(fd, listed.start, path, sizeof(path), &asked), 0);
		assert_int_equal(asked.start, listed.start);
		assert_int_equal(asked.end, listed.end);
		assert_int_equal(asked.offset, listed.offset);
		assert_int_equal(asked.inode, listed.inode);
		assert_int_equal(asked.device, listed.device);
		assert_int_equal(asked.readable, listed.readable);
		assert_int_equal(asked.writable, listed.writable);
		assert_int_equal(asked.executable, listed.executable);
		assert_int_equal(asked.shared, listed.shared);
		assert_string_equal(asked.path, listed.path);
	}
	assert_true(seen > 2);
	assert_int_equal(query(fd, 4096, NULL, 0, &asked), 0);
	assert_true(asked.start > 4096);
	assert_int_equal(query(fd, UINT64_MAX - 4096, path, sizeof(path), &asked), -ENOENT);
	maps_free_buffer(&buffer, size);
	close(fd);
}

static void a_query_says_what_the_line_says(void **state)
{
	(void)state;
	check_query(maps_query_address);
}

/* As before Linux 6.11. */
static void reading_up_to_an_address_says_the_same(void **state)
{
	(void)state;
	check_query(maps_read_up_to_address);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_query_says_what_the_line_says),
		cmocka_unit_test(reading_up_to_an_address_says_the_same),
		cmocka_unit_test(a_file_line_gives_all_fields),
		cmocka_unit_test(paths_are_kept_as_they_are),
		cmocka_unit_test(anonymous_memory_has_an_empty_path),
		cmocka_unit_test(the_highest_addresses_fit),
		cmocka_unit_test(malformed_lines_are_skipped),
		cmocka_unit_test(a_truncated_line_is_read_to_its_end_only),
		cmocka_unit_test(the_own_maps_have_the_executable),
		cmocka_unit_test(reading_grows_the_buffer_as_needed),
		cmocka_unit_test(a_file_that_is_not_there_is_an_error),
		cmocka_unit_test(memory_is_forgotten_before_it_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
