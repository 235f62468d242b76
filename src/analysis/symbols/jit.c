/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code in no file: names from the perf map and the jitdump that its compiler wrote.
 *
 * A copy in the session directory is preferred, because the files in /tmp are the next process's
 * with the same pid sooner or later; for the same reason, and because anyone can write there, a map
 * in /tmp counts only if it is a regular file of ours, of root or of the process's user, and if it
 * was not left by an earlier process with that pid. The same holds for the jitdump that it mapped.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/symbols/private.h"
#include "binary/jit/jit.h"
#include "common/foreign_file.h"

/* The kernel keeps to 10 ms when a process was made, and the times of files to a tick. */
#define PROCESS_CREATION_TIME_INACCURACY_NS UINT64_C(50000000)

typedef int add_jit_file_function_type(struct jitmap *, const char *,
				       const struct foreign_open_policy *);

/* 0: added; -ENOENT: nothing there that can be used; -ENOMEM. */
static int add_jit_file_in_directory(struct jitmap *map, const char *directory, const char *format,
				     uint32_t pid, const struct foreign_open_policy *how,
				     add_jit_file_function_type *add)
{
	char name[64], path[PATH_MAX];
	snprintf(name, sizeof(name), format, pid);
	int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENOENT;
	int error = add(map, path, how);
	return !error || error == -ENOMEM ? error : -ENOENT;
}

bool jit_map_predates_process(const struct stat *map, uint64_t made_ns)
{
	uint64_t written_ns =
		(uint64_t)map->st_mtim.tv_sec * 1000000000 + (uint64_t)map->st_mtim.tv_nsec;

	return written_ns + PROCESS_CREATION_TIME_INACCURACY_NS < made_ns;
}

static bool perf_map_predates_process(const struct symbolizer_jit_request *request)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", request->pid);
	return !lstat(path, &status) &&
	       jit_map_predates_process(&status, request->process_start_realtime_ns);
}

static int read_jit_symbol_files_of_process(const struct symbolizer_jit_request *request,
					    struct jitmap *map)
{
	const struct foreign_open_policy own = foreign_make_policy_for_owner(request->owner);
	const char *session = request->session_directory;
	int error = -ENOENT;
	if (session)
		error = add_jit_file_in_directory(map, session, "perf-%u.map", request->pid,
						  &foreign_policy_of_result_files,
						  jitmap_add_perf_map);
	if (error == -ENOENT && !perf_map_predates_process(request))
		error = add_jit_file_in_directory(map, "/tmp", "perf-%u.map", request->pid, &own,
						  jitmap_add_perf_map);
	if (error == -ENOMEM)
		return error;
	error = -ENOENT;
	if (session)
		error = add_jit_file_in_directory(map, session, "jit-%u.dump", request->pid,
						  &foreign_policy_of_result_files,
						  jitmap_add_jitdump);
	if (error == -ENOENT && request->jitdump_path)
		error = jitmap_add_jitdump(map, request->jitdump_path, &own);
	return error == -ENOMEM ? error : jitmap_sort_entries(map);
}

static int add_jit_frame(struct symbolizer_result_builder *builder, const struct jitmap_code *code,
			 uint64_t pc)
{
	struct symbolizer_frame frame = {0};
	const char *file;
	int error = symbolizer_builder_set_frame_name(builder, code->name, &frame);
	if (!error)
		error = symbolizer_find_or_add_function_id(builder, frame.function, 0, 0,
							   &frame.function_id);
	if (error)
		return error;
	jitmap_find_line(code, pc, &file, &frame.line);
	if (file) {
		frame.file = string_pool_intern(builder->storage->string_pool, file);
		if (!frame.file)
			return -ENOMEM;
	}
	return symbolizer_builder_append_frame(builder, &frame);
}

static int look_up_jit_pcs(const struct symbolizer_jit_request *request, const struct jitmap *map,
			   struct symbolizer_result_builder *builder)
{
	for (size_t i = 0; i < request->count; i++) {
		uint64_t pc = request->pcs[i];
		uint64_t time = request->sample_times_ns ? request->sample_times_ns[i] : 0;
		const struct jitmap_code *code = jitmap_find_code(map, pc, time);
		struct symbolizer_frame_chain *chain = &builder->result.chains[i];
		*chain = (struct symbolizer_frame_chain){.vaddr = pc};
		if (!code)
			continue;
		chain->first = (uint32_t)builder->result.frame_count;
		chain->count = 1;
		int error = add_jit_frame(builder, code, pc);
		if (error)
			return error;
	}
	return 0;
}

int symbolize_jit_code(const struct symbolizer_jit_request *request,
		       struct symbolizer_request_result *ret, struct problem *problem)
{
	struct symbolizer_result_builder builder;
	struct jitmap *map = NULL;
	int error = symbolizer_builder_init(&builder, request->count);
	if (error)
		return problem_set(problem, error, "no memory for the names of JIT code");
	error = jitmap_create(&map);
	if (!error)
		error = read_jit_symbol_files_of_process(request, map);
	if (!error)
		error = look_up_jit_pcs(request, map, &builder);
	bool named = map && jitmap_get_entry_count(map) > 0;
	jitmap_destroy(map);
	if (error) {
		symbolizer_builder_deinit(&builder);
		return problem_set(problem, error, "no memory for the names of JIT code");
	}
	builder.result.status = named ? SYMBOLIZER_NAMES_ONLY : SYMBOLIZER_NO_SYMBOLS;
	struct symbolizer_request_result result;
	symbolizer_builder_finish(&builder, &result);
	if (!named)
		result.advice = "let the run-time compiler write its symbols: node "
				"--perf-basic-prof, java -XX:+DumpPerfMapAtExit, python3 -X perf";
	*ret = result;
	return 0;
}
