/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code in no file: names from the perf map and the jitdump that its compiler wrote.
 *
 * A copy in the session directory is preferred, because the files in /tmp are the next process's
 * with the same pid sooner or later; for the same reason, and because anyone can write there, a map
 * in /tmp counts only if it belongs to us or to root (as perf has it), and if it was not left by an
 * earlier process with that pid.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/symbolize_internal.h"
#include "binary/jitmap.h"

/* The kernel keeps to 10 ms when a process was made, and the times of files to a tick. */
#define MADE_ERROR_NS UINT64_C(50000000)

static bool owner_trusted(const char *path)
{
	struct stat status;
	return geteuid() == 0 ||
	       (stat(path, &status) == 0 && (status.st_uid == geteuid() || status.st_uid == 0));
}

/* 0: added; -ENOENT: nothing there that can be used; -ENOMEM. */
static int add_in(struct jitmap *map, const char *directory, const char *format, uint32_t pid,
		  int (*add)(struct jitmap *, const char *))
{
	char name[64], path[PATH_MAX];
	snprintf(name, sizeof(name), format, pid);
	int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (length < 0 || (size_t)length >= sizeof(path) || !owner_trusted(path))
		return -ENOENT;
	int error = add(map, path);
	return !error || error == -ENOMEM ? error : -ENOENT;
}

bool symbolize_jit_is_earlier(const struct stat *map, uint64_t made_ns)
{
	uint64_t written_ns =
		(uint64_t)map->st_mtim.tv_sec * 1000000000 + (uint64_t)map->st_mtim.tv_nsec;

	return written_ns + MADE_ERROR_NS < made_ns;
}

static bool left_by_another(const struct symbolize_jit_request *request)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", request->pid);
	return !stat(path, &status) && symbolize_jit_is_earlier(&status, request->made_ns);
}

static int load(const struct symbolize_jit_request *request, struct jitmap *map)
{
	const char *session = request->session_directory;
	int error = -ENOENT;
	if (session)
		error = add_in(map, session, "perf-%u.map", request->pid, jitmap_add_perf_map);
	if (error == -ENOENT && !left_by_another(request))
		error = add_in(map, "/tmp", "perf-%u.map", request->pid, jitmap_add_perf_map);
	if (error == -ENOMEM)
		return error;
	error = -ENOENT;
	if (session)
		error = add_in(map, session, "jit-%u.dump", request->pid, jitmap_add_jitdump);
	if (error == -ENOENT && request->jitdump_path)
		error = jitmap_add_jitdump(map, request->jitdump_path);
	return error == -ENOMEM ? error : jitmap_finish(map);
}

static int add_frame(struct symbolize_builder *builder, const struct jitmap_code *code, uint64_t pc)
{
	struct symbolize_frame frame = {0};
	const char *file;
	int error = symbolize_builder_name(builder, code->name, &frame);
	if (!error)
		error = symbolize_builder_function(builder, frame.function, 0, 0,
						   &frame.function_id);
	if (error)
		return error;
	jitmap_line(code, pc, &file, &frame.line);
	if (file) {
		frame.file = string_pool_intern(builder->storage->pool, file);
		if (!frame.file)
			return -ENOMEM;
	}
	return symbolize_builder_frame(builder, &frame);
}

static int look_up(const struct symbolize_jit_request *request, const struct jitmap *map,
		   struct symbolize_builder *builder)
{
	for (size_t i = 0; i < request->count; i++) {
		uint64_t pc = request->pcs[i];
		uint64_t time = request->times_ns ? request->times_ns[i] : 0;
		const struct jitmap_code *code = jitmap_find(map, pc, time);
		struct symbolize_chain *chain = &builder->result.chains[i];
		*chain = (struct symbolize_chain){.vaddr = pc};
		if (!code)
			continue;
		chain->first = (uint32_t)builder->result.frame_count;
		chain->count = 1;
		int error = add_frame(builder, code, pc);
		if (error)
			return error;
	}
	return 0;
}

int symbolize_jit(const struct symbolize_jit_request *request, struct symbolize_result *ret,
		  struct problem *problem)
{
	struct symbolize_builder builder;
	struct jitmap *map = NULL;
	int error = symbolize_builder_init(&builder, request->count);
	if (error)
		return problem_set(problem, error, "no memory for the names of JIT code");
	error = jitmap_create(&map);
	if (!error)
		error = load(request, map);
	if (!error)
		error = look_up(request, map, &builder);
	bool named = map && jitmap_count(map) > 0;
	jitmap_destroy(map);
	if (error) {
		symbolize_builder_deinit(&builder);
		return problem_set(problem, error, "no memory for the names of JIT code");
	}
	builder.result.status = named ? SYMBOLIZE_NAMES : SYMBOLIZE_NO_SYMBOLS;
	struct symbolize_result result;
	symbolize_builder_finish(&builder, &result);
	if (!named)
		result.advice = "let the run-time compiler write down its names: node "
				"--perf-basic-prof, java -XX:+DumpPerfMapAtExit, python3 -X perf";
	*ret = result;
	return 0;
}
