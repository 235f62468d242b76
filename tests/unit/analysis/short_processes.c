/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The file that short processes share: whole, damaged, and its processes' images.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/session_private.h"
#include "analysis/short_processes.h"

#define SECOND UINT64_C(1000000000)

static char path[] = "/tmp/kymo-short-XXXXXX";

static void begin_file(void)
{
	int fd;

	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, SPOOL_SHORT_MAGIC, sizeof(SPOOL_SHORT_MAGIC)),
			 sizeof(SPOOL_SHORT_MAGIC));
	close(fd);
}

static void put(const void *bytes, size_t size)
{
	FILE *file = fopen(path, "ae");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* An entry with one empty string as its records; its first `size` bytes. `head`: of the header. */
static void put_entry_of_version(uint32_t pid, uint64_t start, enum spool_state state, size_t size,
				 size_t head, uint64_t own_work_ns)
{
	static const uint8_t record[] = {SPOOL_RECORD_STRING, 2, 1, 0};
	struct spool_file_header header = {.magic = SPOOL_MAGIC,
					   .version_major = SPOOL_VERSION_MAJOR,
					   .header_size = (uint32_t)head,
					   .own_work_ns = own_work_ns,
					   .pid = pid,
					   .start_ticks = start,
					   .start_boottime_ns = start,
					   .state = state,
					   .end_ticks = start + SECOND};
	struct spool_chunk_header chunk = {.magic = SPOOL_CHUNK_MAGIC,
					   .size = sizeof(chunk) + sizeof(record),
					   .committed = sizeof(record),
					   .sequence = start};
	uint8_t entry[SPOOL_SHORT_HEADER + 8 + sizeof(chunk) + sizeof(record)];

	header.file_size = head + sizeof(chunk) + sizeof(record);
	memcpy(entry, &header, head);
	memcpy(entry + head, &chunk, sizeof(chunk));
	memcpy(entry + head + sizeof(chunk), record, sizeof(record));
	put(entry, size < header.file_size ? size : header.file_size);
}

static void put_entry(uint32_t pid, uint64_t start, enum spool_state state, size_t size)
{
	put_entry_of_version(pid, start, state, size, SPOOL_SHORT_HEADER, 0);
}

static struct short_processes read_all(void)
{
	struct short_processes processes;
	struct problem problem;

	assert_int_equal(short_processes_read(path, &processes, &problem), 0);
	unlink(path);
	return processes;
}

static void test_none(void **state)
{
	struct short_processes processes;
	struct problem problem;

	(void)state;
	assert_int_equal(short_processes_read("/nowhere/short", &processes, &problem), 0);
	assert_int_equal(processes.count, 0);
}

/* Of version 1.5, and of one that is yet to come; the last entry counts. */
static void test_versions(void **state)
{
	struct short_processes processes;

	(void)state;
	begin_file();
	put_entry_of_version(7, SECOND, SPOOL_STATE_OPEN, SIZE_MAX, SPOOL_SHORT_HEADER_FIRST, 5);
	put_entry_of_version(8, SECOND, SPOOL_STATE_OPEN, SIZE_MAX, SPOOL_SHORT_HEADER, 6);
	put_entry_of_version(8, SECOND, SPOOL_STATE_EXITED, SIZE_MAX, SPOOL_SHORT_HEADER + 8, 9);
	processes = read_all();
	assert_int_equal(processes.count, 2);
	assert_int_equal(processes.torn_bytes, 0);
	assert_int_equal(processes.files[0].header.own_work_ns, 0);
	assert_int_equal(processes.files[1].header.own_work_ns, 9);
	assert_int_equal(processes.files[1].chunk_count, 2);
	short_processes_free(&processes);
}

static void test_whole(void **state)
{
	struct short_processes processes;

	(void)state;
	begin_file();
	put_entry(7, SECOND, SPOOL_STATE_OPEN, SIZE_MAX);
	put_entry(8, SECOND, SPOOL_STATE_OPEN, SIZE_MAX);
	put_entry(7, SECOND, SPOOL_STATE_EXITED, SIZE_MAX);
	put_entry(8, SECOND, SPOOL_STATE_MOVED, SIZE_MAX);
	put_entry(7, 2 * SECOND, SPOOL_STATE_OPEN, SIZE_MAX); /* the number again */
	processes = read_all();
	assert_int_equal(processes.count, 2);
	assert_int_equal(processes.torn_bytes, 0);
	assert_int_equal(processes.files[0].header.state, SPOOL_STATE_EXITED);
	assert_int_equal(processes.files[0].chunk_count, 2);
	assert_int_equal(processes.files[1].header.state, SPOOL_STATE_OPEN);
	assert_int_equal(processes.files[1].chunk_count, 1);
	assert_true(spool_file_is_short_process(&processes.files[0]));
	short_processes_free(&processes);
}

/* A full disk cuts one; what comes later is found, and the rest is counted. */
static void test_cut(void **state)
{
	struct short_processes processes;

	(void)state;
	begin_file();
	put_entry(7, SECOND, SPOOL_STATE_EXITED, 300);
	put_entry(8, SECOND, SPOOL_STATE_EXITED, SIZE_MAX);
	put("rubbish", 7);
	put_entry(9, SECOND, SPOOL_STATE_EXITED, SIZE_MAX);
	put_entry(10, SECOND, SPOOL_STATE_EXITED, 600);
	processes = read_all();
	assert_int_equal(processes.count, 2);
	assert_int_equal(processes.files[0].header.pid, 8);
	assert_int_equal(processes.files[1].header.pid, 9);
	assert_int_equal(processes.torn_bytes, 300 + 7 + 600);
	short_processes_free(&processes);
}

static struct process_private image(uint32_t pid, uint64_t start, enum spool_state state,
				    uint64_t made)
{
	struct process_private process = {.file = {.descriptor = -1}};

	process.file.header.pid = pid;
	process.file.header.start_boottime_ns = start;
	process.file.header.state = state;
	process.file.header.process_start = made;
	return process;
}

static void test_images(void **state)
{
	struct process_private list[] = {
		image(7, SECOND, SPOOL_STATE_EXEC, 0),
		image(9, SECOND, SPOOL_STATE_EXITED, 0),
		image(7, 2 * SECOND, SPOOL_STATE_EXEC, 0),
		image(7, 3 * SECOND, SPOOL_STATE_EXITED, 99), /* has its own file */
		image(7, 9 * SECOND, SPOOL_STATE_EXITED, 0),  /* the number again */
	};

	(void)state;
	assert_int_equal(assign_image_numbers_of_all_processes(list, 5), 0);
	assert_int_equal(list[0].file.header.process_start, 99);
	assert_int_equal(list[2].file.header.process_start, 99);
	assert_int_equal(list[3].file.header.process_start, 99);
	assert_int_equal(list[1].file.header.process_start, 100);
	assert_int_equal(list[4].file.header.process_start, 900);
	assert_int_equal(list[0].file.header.image, 0);
	assert_int_equal(list[2].file.header.image, 1);
	assert_int_equal(list[3].file.header.image, 2);
	assert_int_equal(list[4].file.header.image, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),   cmocka_unit_test(test_versions),
		cmocka_unit_test(test_whole),  cmocka_unit_test(test_cut),
		cmocka_unit_test(test_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
