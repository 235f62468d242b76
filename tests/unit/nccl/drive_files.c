/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See drive.h: children, and what they leave.
 */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/array.h"
#include "drive.h"

#define LAST_WRITE_WAITS_MAX 2000 /* of a millisecond */

static char directory[4096], error_output[65536];
static pid_t owner;

static void remove_directory(void)
{
	char command[5000];

	/* Children end through exit as well. */
	if (!*directory || getpid() != owner)
		return;
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	if (system(command))
		fprintf(stderr, "%s stays\n", directory);
}

void drive_directory(void)
{
	static const char *const clear[] = {"KYMO_NCCL_EVENTS",
					    "KYMO_NCCL_STALL",
					    "KYMO_NCCL_PROMETHEUS",
					    "KYMO_NCCL_SIZE",
					    "KYMO_NCCL_FULL",
					    "KYMO_SPOOL_DIRECTORY",
					    "KYMO_ENABLED",
					    "WORLD_SIZE",
					    "RANK",
					    "KYMO_NCCL_CALL_TRACE",
					    "KYMO_NCCL_PROMETHEUS_PERIOD",
					    "KYMO_NCCL_GPU_CLOCK_HZ",
					    "KYMO_NCCL_GRAPHS"};
	const char *temporary = getenv("TMPDIR");

	owner = getpid();
	if (!*directory)
		atexit(remove_directory);
	else
		remove_directory();
	snprintf(directory, sizeof(directory), "%s/kymo-nccl-XXXXXX",
		 temporary ? temporary : "/tmp");
	assert_non_null(mkdtemp(directory));
	for (size_t i = 0; i < ARRAY_SIZE(clear); i++)
		unsetenv(clear[i]);
	setenv("KYMO_OUTPUT_PATH", directory, 1);
	setenv("KYMO_TIME_OUTPUT", "off", 1);
}

const char *drive_path(void)
{
	return directory;
}

void drive_setenv(const char *name, const char *value)
{
	setenv(name, value, 1);
}

/* A task that outlives a killed process writes its last records, and has a lock of the file until
 * then (nccl/keeper.h), as every reader has to know. A grandchild may live on. */
static void wait_for_last_writes(void)
{
	char pattern[4200];
	unsigned waits = 0;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/spool/nccl-*.nccl", directory);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
		int descriptor = open(found.gl_pathv[i], O_RDONLY);

		for (; !fcntl(descriptor, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK &&
		       waits < LAST_WRITE_WAITS_MAX;
		     waits++) {
			lock = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET};
			usleep(1000);
		}
		close(descriptor);
	}
	globfree(&found);
}

int drive_child(void (*body)(void))
{
	char path[4200];
	int status = -1, descriptor;
	ssize_t size;
	pid_t child;

	snprintf(path, sizeof(path), "%s/stderr", directory);
	fflush(NULL);
	child = fork();
	if (!child) {
		descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(descriptor, STDERR_FILENO);
		close(descriptor);
		body();
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	wait_for_last_writes();
	descriptor = open(path, O_RDONLY);
	size = descriptor < 0 ? 0 : read(descriptor, error_output, sizeof(error_output) - 1);
	error_output[size > 0 ? size : 0] = 0;
	if (descriptor >= 0)
		close(descriptor);
	if (status)
		fprintf(stderr, "child: status %#x: %s\n", (unsigned)status, error_output);
	return status;
}

const char *drive_error_output(void)
{
	return error_output;
}

/* ---- files ---- */

static void take(struct recording *recording, unsigned kind, const uint8_t *record)
{
	switch (kind) {
	case NCCL_CHUNK_COMMUNICATORS:
		if (recording->communicators < 4096)
			recording->communicator[recording->communicators++] =
				(const struct nccl_communicator_record *)(const void *)record;
		break;
	case NCCL_CHUNK_OPERATIONS:
		if (recording->operations < 65536)
			recording->operation[recording->operations++] =
				(const struct nccl_operation *)(const void *)record;
		break;
	case NCCL_CHUNK_EVENTS:
		if (recording->events < 131072)
			recording->event[recording->events++] =
				(const struct nccl_event *)(const void *)record;
		break;
	default:
		if (recording->totals < 1024)
			recording->total[recording->totals++] =
				(const struct nccl_total *)(const void *)record;
		break;
	}
}

static void take_chunks(struct recording *recording)
{
	static const uint32_t sizes[NCCL_CHUNK_KINDS] = {0, 512, 256, 64, 256};

	/* Behind it the file may be growing just now. */
	uint64_t end = __atomic_load_n(&recording->header->file_size, __ATOMIC_ACQUIRE);

	assert_true(end <= recording->size);
	for (uint64_t at = NCCL_CHUNKS_OFFSET; at + NCCL_CHUNK_SIZE <= end; at += NCCL_CHUNK_SIZE) {
		const struct nccl_chunk_header *chunk =
			(const struct nccl_chunk_header *)(const void *)(recording->data + at);

		assert_int_equal(chunk->magic, NCCL_CHUNK_MAGIC);
		assert_true(chunk->kind < NCCL_CHUNK_KINDS);
		if (chunk->kind == NCCL_CHUNK_FREE)
			continue;
		assert_int_equal(chunk->record_size, sizes[chunk->kind]);
		for (uint64_t record = NCCL_CHUNK_HEADER_SIZE;
		     record + sizes[chunk->kind] <= NCCL_CHUNK_SIZE; record += sizes[chunk->kind]) {
			const uint64_t *id =
				(const uint64_t *)(const void *)(recording->data + at + record);

			if (!*id)
				continue;
			assert_int_equal(*id >> 60, NCCL_ID_MAGIC);
			assert_int_equal(NCCL_ID_OFFSET(*id), at + record);
			take(recording, chunk->kind, recording->data + at + record);
		}
	}
}

const struct recording *drive_read(void)
{
	static struct recording recording;
	char pattern[4200];
	struct stat status;
	glob_t found;
	int descriptor;

	if (recording.data)
		munmap((void *)recording.data, recording.size);
	memset(&recording, 0, sizeof(recording));
	snprintf(pattern, sizeof(pattern), "%s/spool/nccl-*.nccl", directory);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	recording.files = (unsigned)found.gl_pathc;
	descriptor = open(found.gl_pathv[0], O_RDONLY);
	assert_true(descriptor >= 0);
	assert_int_equal(fstat(descriptor, &status), 0);
	recording.size = (uint64_t)status.st_size;
	recording.data = mmap(NULL, recording.size, PROT_READ, MAP_SHARED, descriptor, 0);
	assert_true(recording.data != MAP_FAILED);
	close(descriptor);
	globfree(&found);
	recording.header = (const struct nccl_file_header *)(const void *)recording.data;
	assert_string_equal(recording.header->magic, NCCL_FILE_MAGIC);
	assert_int_equal(recording.header->version_major, NCCL_FILE_VERSION_MAJOR);
	take_chunks(&recording);
	return &recording;
}

const char *drive_name(const struct recording *recording, uint8_t name)
{
	return (const char *)recording->data + NCCL_HEADER_SIZE + name * NCCL_NAME_SIZE;
}

const struct nccl_operation *drive_find(const struct recording *recording, const char *function,
					uint64_t sequence)
{
	for (size_t i = 0; i < recording->operations; i++) {
		const struct nccl_operation *operation = recording->operation[i];

		if (operation->sequence == sequence &&
		    !strcmp(drive_name(recording, operation->function), function))
			return operation;
	}
	fail_msg("no %s number %lu", function, (unsigned long)sequence);
	return NULL;
}

size_t drive_count(const struct recording *recording, unsigned kind)
{
	size_t count = 0;

	for (size_t i = 0; i < recording->events; i++)
		count += recording->event[i]->kind == kind;
	return count;
}

/* ---- waiting ---- */

bool drive_wait(bool (*is_so)(const struct recording *recording), unsigned seconds)
{
	for (unsigned i = 0; i < seconds * 50; i++) {
		if (is_so(drive_read()))
			return true;
		usleep(20000);
	}
	return false;
}

static uint64_t wanted;

static bool are_finished(const struct recording *recording)
{
	uint64_t finished = recording->header->losses[NCCL_LOSS_OPERATIONS];

	for (size_t i = 0; i < recording->communicators; i++)
		finished += recording->communicator[i]->finished;
	return finished >= wanted;
}

void drive_wait_finished(uint64_t operations)
{
	wanted = operations;
	require(drive_wait(are_finished, 60));
}
