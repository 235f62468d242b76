/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "unit/regions/engine_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/regions/regions.h"
#include "core/runtime.h"
#include "unit/analysis/test_directory.h"

#define LINES_MAX      4096
#define WRITER_WAIT_MS 10000

extern char **environ;

static void start(const char *directory, const char *const *settings)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/spool", directory);
	mkdir(path, 0700);
	setenv("KYMO_SPOOL_DIRECTORY", path, 1);
	setenv("KYMO_UNWIND_CACHE", "none", 1);
	setenv("KYMO_USE_SAMPLING", "off", 1);
	for (; settings && *settings; settings++)
		putenv((char *)(uintptr_t)*settings);
	kymo_runtime.hooks = &regions_hook_table;
	runtime_start(environ);
}

static bool file_has_writer(int directory, const char *name)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
	bool has = file >= 0 && !fcntl(file, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;

	if (file >= 0)
		close(file);
	return has;
}

/* The helper of a killed process locks the spool file until it has written what is in memory. */
static void wait_for_writers(const char *directory)
{
	const struct timespec pause = {0, 1000000};
	char path[4096];

	snprintf(path, sizeof(path), "%s/spool", directory);
	for (unsigned ms = 0; ms < WRITER_WAIT_MS; ms++) {
		DIR *list = opendir(path);
		bool writers = false;

		assert_non_null(list);
		for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
			if (entry->d_name[0] != '.')
				writers |= file_has_writer(dirfd(list), entry->d_name);
		}
		closedir(list);
		if (!writers)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("a spool file in %s is still written", path);
}

struct session *engine_run(const char *directory, const char *const *settings, void (*body)(void),
			   enum engine_finish finish)
{
	int child = fork(), status = 0;

	if (!child) {
		start(directory, settings);
		if (!runtime_is_active())
			_exit(3);
		body();
		if (finish == ENGINE_KILL)
			kill(getpid(), SIGKILL);
		runtime_finish();
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (finish == ENGINE_KILL)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	else
		assert_int_equal(status, 0);
	wait_for_writers(directory);
	return test_session(directory, NULL);
}

static void path_of(const struct session *session, uint32_t node, char *text, size_t size)
{
	const struct model_regions *regions = session_get_regions(session);
	const struct model_region_node *it = &regions->nodes[node];
	size_t length;

	text[0] = 0;
	if (it->parent != MODEL_ENTRY_INDEX_NONE) {
		path_of(session, it->parent, text, size);
		strncat(text, ";", size - strlen(text) - 1);
	}
	length = strlen(text);
	snprintf(text + length, size - length, "%s", regions->regions[it->region].name);
}

uint32_t engine_node(const struct session *session, const char *path)
{
	char text[4096];

	for (uint32_t i = 0; i < session_get_regions(session)->node_count; i++) {
		path_of(session, i, text, sizeof(text));
		if (!strcmp(text, path))
			return i;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Of equal paths (several threads) one line, with their sum. */
static unsigned collect(const struct session *session, char **lines)
{
	const struct model_regions *regions = session_get_regions(session);
	uint64_t counts[LINES_MAX], open[LINES_MAX];
	unsigned count = 0, same;
	char text[4096];

	for (uint32_t i = 0; i < regions->node_count; i++) {
		path_of(session, i, text, sizeof(text));
		for (same = 0; same < count && strcmp(lines[same], text); same++)
			;
		if (same == count) {
			assert_true(count < LINES_MAX);
			lines[count] = strdup(text);
			counts[count] = open[count] = 0;
			count++;
		}
		counts[same] += regions->nodes[i].count;
		open[same] += regions->nodes[i].open;
	}
	for (unsigned i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%s %llu+%llu\n", lines[i],
			 (unsigned long long)counts[i], (unsigned long long)open[i]);
		free(lines[i]);
		lines[i] = strdup(text);
	}
	return count;
}

const char *engine_profile(const struct session *session)
{
	static char text[65536];
	char *lines[LINES_MAX];
	unsigned count = collect(session, lines);

	text[0] = 0;
	qsort(lines, count, sizeof(*lines), compare);
	for (unsigned i = 0; i < count; i++) {
		strncat(text, lines[i], sizeof(text) - strlen(text) - 1);
		free(lines[i]);
	}
	return text;
}

uint64_t engine_loss(const struct session *session, enum spool_loss loss)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < session->process_count; i++)
		sum += session->processes[i].losses[loss];
	return sum;
}
