/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See launch_paths.h. Work is added up by path, name and thread first: there are few of these, and
 * many records.
 */
#include "analysis/gpu/launch_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "analysis/interpreted/interpreted.h"
#include "analysis/launched.h"

#define LAUNCH_PATH_FRAMES_MAX 4096u

static const char *const gap_texts[GPU_PATH_GAP_COUNT] = {
	[GPU_PATH_GAP_LAUNCH_UNSEEN] = "its launch was not seen",
	[GPU_PATH_GAP_NO_COLLECTOR] = "the process was not sampled",
	[GPU_PATH_GAP_UNKNOWN_THREAD] = "it was launched by a thread that kymo does not know",
	[GPU_PATH_GAP_NESTED] = "it was launched by a signal handler",
	[GPU_PATH_GAP_TOO_MANY] = "there were too many call paths",
	[GPU_PATH_GAP_NOT_WRITTEN] = "the call path could not be written",
	[GPU_PATH_GAP_RECORD_MISSING] = "the record of the call path is missing"};

const char *gpu_path_gap_get_text(enum gpu_path_gap gap)
{
	return gap_texts[gap];
}

/* ---- records of paths ---- */

int launch_path_list_read_record(struct launch_path_list *list, struct session *session,
				 struct spool_record_payload_cursor *payload)
{
	struct launch_path path = {.number = spool_read_unsigned(payload)};
	uint64_t ticks = spool_read_fixed_u64(payload), end = spool_read_unsigned(payload);
	uint64_t count = spool_read_unsigned(payload);
	uint64_t frame = 0;

	if (payload->bad || count > LAUNCH_PATH_FRAMES_MAX ||
	    count > (uint64_t)(payload->end - payload->at) || end >= SPOOL_STACK_END_COUNT)
		return -EBADMSG;
	path.time_ns = ticks;
	path.end = (enum spool_stack_end)end;
	path.count = (uint32_t)count;
	path.frames = arena_allocate(&session_get_private(session)->arena,
				     (size_t)(count + 1) * sizeof(*path.frames));
	if (!path.frames || array_reserve_one_more((void **)&list->paths, &list->capacity,
						   list->count, sizeof(*list->paths)) < 0)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		frame += (uint64_t)spool_read_signed(payload);
		path.frames[i] = frame;
	}
	if (!payload->bad && payload->at < payload->end)
		path.waiting_count = (uint32_t)spool_read_unsigned(payload);
	if (payload->bad || path.waiting_count > count)
		return -EBADMSG;
	list->paths[list->count++] = path;
	return 0;
}

void launch_path_list_deinit(struct launch_path_list *list)
{
	free(list->paths);
}

/* ---- stacks in the tree ---- */

static bool frame_is_of_module(struct session *session, uint32_t process, uint64_t frame,
			       uint64_t time_ns, const char *name_prefix)
{
	struct module_map *map = &session_get_private(session)->processes[process].module_map;
	uint32_t module;

	if (spool_frame_is_interpreted(frame))
		return false;
	module = module_map_find_module(map, frame - 1, time_ns);
	return module != MODULE_MAP_NO_MODULE &&
	       strncmp(session->modules[module].name, name_prefix, strlen(name_prefix)) == 0;
}

/* The way from the launching function to kymo is none of the program's. */
static bool frame_is_of_recorder(struct session *session, uint32_t process, uint64_t frame,
				 uint64_t time_ns)
{
	return frame_is_of_module(session, process, frame, time_ns, "libkymo") ||
	       frame_is_of_module(session, process, frame, time_ns, "libcupti.so");
}

/* Libraries whose functions of Python wait while threads of theirs launch: where those wait, by
 * file, and the module that such a thread runs through, whatever else launches meanwhile. */
static const struct launching_library {
	const char *waiting_file, *thread_module;
} launching_libraries[] = {
	{"/torch/autograd/", "libtorch_python"}, /* PythonEngine::thread_init() */
};

/* Are the frames of a thread that waits those of whom the launching thread works for? */
static bool waiting_frames_are_of_caller(struct session *session, uint32_t process,
					 const struct launch_path *path)
{
	uint32_t own_count = path->count - path->waiting_count;
	const struct interpreted_code *code = interpreted_code_find(
		session, process, interpreted_frame_get_code_id(path->frames[own_count]));

	if (code == NULL || code->file == NULL)
		return false;
	for (size_t i = 0; i < sizeof(launching_libraries) / sizeof(*launching_libraries); i++) {
		const struct launching_library *library = &launching_libraries[i];

		if (strstr(code->file, library->waiting_file) == NULL)
			continue;
		for (uint32_t at = own_count; at-- > 0;) {
			if (frame_is_of_module(session, process, path->frames[at], path->time_ns,
					       library->thread_module))
				return true;
		}
	}
	return false;
}

/* The node of a path; CALLTREE_NO_NODE: out of memory. */
static uint32_t find_or_add_node_of_path(struct session *session, uint32_t process,
					 struct launch_path *path)
{
	struct launch_stack stack = {path->frames, path->count, path->end, path->time_ns};

	if (path->is_in_tree)
		return path->node;
	if (path->waiting_count != 0 && !waiting_frames_are_of_caller(session, process, path))
		stack.count -= path->waiting_count;
	while (stack.count != 0 &&
	       frame_is_of_recorder(session, process, stack.frames[0], stack.time_ns)) {
		stack.frames++;
		stack.count--;
	}
	path->node = launched_find_or_add_stack(session, process, &stack);
	path->is_in_tree = path->node != CALLTREE_NO_NODE;
	return path->node;
}

/* ---- work ---- */

struct work_row {
	uint32_t launch_path, tid;
	const char *name;
	struct gpu_work_sums sums;
};

struct process_work {
	struct session *session;
	const struct gpu_records_of_process *records;
	const char **kernel_names; /* by shape; interned */
	struct work_row *rows;
	size_t count, capacity;
	struct id_map row_by_key;
};

static const char *get_kernel_name(struct process_work *work, uint32_t shape)
{
	uint32_t id = shape <= work->records->shape_count ? shape : 0;

	if (work->kernel_names[id] == NULL) {
		const char *name = gpu_get_kernel_name_of_shape(work->records, id);
		char *demangled = gpu_demangle_name(name);

		work->kernel_names[id] =
			arena_intern_string(&session_get_private(work->session)->arena,
					    demangled != NULL ? demangled : name);
		free(demangled);
	}
	return work->kernel_names[id];
}

static int add_work(struct process_work *work, const struct work_row *added)
{
	uint64_t key = id_map_hash_key((uint64_t)added->launch_path << 32 | added->tid) ^
		       id_map_hash_key((uint64_t)(uintptr_t)added->name);
	struct work_row *row;
	uint32_t index;

	while ((index = id_map_get(&work->row_by_key, key)) != ID_MAP_NONE) {
		row = &work->rows[index];
		if (row->launch_path == added->launch_path && row->tid == added->tid &&
		    row->name == added->name)
			break;
		key++;
	}
	if (index == ID_MAP_NONE) {
		index = (uint32_t)work->count;
		if (array_reserve_one_more((void **)&work->rows, &work->capacity, work->count,
					   sizeof(*work->rows)) < 0 ||
		    id_map_set(&work->row_by_key, key, index) < 0)
			return -ENOMEM;
		work->rows[work->count++] = *added;
		return 0;
	}
	gpu_work_sums_add(&work->rows[index].sums, &added->sums);
	return 0;
}

static int add_work_of_record(const struct gpu_record_head *head, void *context)
{
	struct process_work *work = context;
	const struct gpu_kernel *kernel = (const void *)head;
	const struct gpu_copy *copy = (const void *)head;
	struct work_row row = {0};

	if (head->kind == GPU_RECORD_KERNEL && kernel->start != 0) {
		row = (struct work_row){kernel->launch_path,
					kernel->tid,
					get_kernel_name(work, head->id),
					{.kernels = 1, .ns = kernel->duration}};
	} else if (head->kind == GPU_RECORD_COPY && copy->start != 0) {
		row = (struct work_row){copy->launch_path,
					copy->tid,
					gpu_get_copy_work_name(head->id),
					{.copies = 1, .ns = copy->duration}};
	} else {
		return 0;
	}
	return row.name != NULL ? add_work(work, &row) : -ENOMEM;
}

static enum gpu_path_gap gap_of_launch_path(uint32_t launch_path)
{
	switch (launch_path) {
	case GPU_LAUNCH_PATH_NONE:
		return GPU_PATH_GAP_LAUNCH_UNSEEN;
	case GPU_LAUNCH_PATH_NO_COLLECTOR:
		return GPU_PATH_GAP_NO_COLLECTOR;
	case GPU_LAUNCH_PATH_UNKNOWN_THREAD:
		return GPU_PATH_GAP_UNKNOWN_THREAD;
	case GPU_LAUNCH_PATH_NESTED:
		return GPU_PATH_GAP_NESTED;
	case GPU_LAUNCH_PATH_TOO_MANY:
		return GPU_PATH_GAP_TOO_MANY;
	case GPU_LAUNCH_PATH_NOT_WRITTEN:
		return GPU_PATH_GAP_NOT_WRITTEN;
	default:
		return GPU_PATH_GAP_RECORD_MISSING;
	}
}

static uint32_t find_thread(const struct session *session, uint32_t process, uint32_t tid)
{
	const struct model_process *model = &session->processes[process];

	for (uint32_t i = 0; tid != 0 && i < model->thread_count; i++) {
		if (session->threads[model->first_thread + i].tid == tid)
			return model->first_thread + i;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

static uint32_t find_or_add_gap_node(struct session *session, uint32_t process,
				     enum gpu_path_gap gap)
{
	char name[128];

	snprintf(name, sizeof(name), "[no call path: %s]", gap_texts[gap]);
	return launched_find_or_add_reason(session, process, name);
}

static int add_row_to_tree(struct session *session, uint32_t process, const struct work_row *row,
			   struct launch_path_list *list, struct gpu_launch_path_sums *sums)
{
	struct launch_path *path = row->launch_path <= GPU_LAUNCH_PATH_LAST
					   ? launch_path_list_find(list, row->launch_path)
					   : NULL;
	enum gpu_path_gap gap = gap_of_launch_path(row->launch_path);
	struct launched_work work = {.thread = find_thread(session, process, row->tid),
				     .name = row->name,
				     .count = row->sums.kernels + row->sums.copies,
				     .ns = row->sums.ns};

	gpu_work_sums_add(&sums->all, &row->sums);
	gpu_work_sums_add(path == NULL                        ? &sums->gaps[gap]
			  : path->end == SPOOL_STACK_COMPLETE ? &sums->complete
							      : &sums->cut[path->end],
			  &row->sums);
	work.node = path != NULL ? find_or_add_node_of_path(session, process, path)
				 : find_or_add_gap_node(session, process, gap);
	return work.node == CALLTREE_NO_NODE ? -ENOMEM : launched_add_work(session, &work);
}

/* Records of a process that is not in the session have no tree. */
static void add_rows_without_process(const struct process_work *work,
				     struct gpu_launch_path_sums *sums)
{
	for (size_t i = 0; i < work->count; i++) {
		enum gpu_path_gap gap = gap_of_launch_path(work->rows[i].launch_path);

		gpu_work_sums_add(&sums->all, &work->rows[i].sums);
		gpu_work_sums_add(&sums->gaps[gap], &work->rows[i].sums);
	}
}

static bool has_launch_paths(const struct process_work *work)
{
	for (size_t i = 0; i < work->count; i++) {
		if (work->rows[i].launch_path != GPU_LAUNCH_PATH_NONE)
			return true;
	}
	return false;
}

static int add_work_of_process(struct session *session, struct process_work *work,
			       struct launch_path_list *lists, struct gpu_launch_path_sums *sums)
{
	uint32_t process = gpu_find_process_in_session(session, work->records);
	uint32_t only_tid = session_get_private(session)->options.filter_thread_tid;
	int result = 0;

	work->kernel_names =
		calloc((size_t)work->records->shape_count + 1, sizeof(*work->kernel_names));
	if (work->kernel_names == NULL)
		return -ENOMEM;
	result = gpu_visit_records(work->records, add_work_of_record, work);
	if (result != 0 || !has_launch_paths(work))
		return result;
	sums->is_recorded = true;
	if (process == MODEL_ENTRY_INDEX_NONE) {
		add_rows_without_process(work, sums);
		return 0;
	}
	if (lists[process].count > 1)
		qsort(lists[process].paths, lists[process].count, sizeof(*lists[process].paths),
		      launch_path_compare_by_number);
	for (size_t i = 0; result == 0 && i < work->count; i++) {
		if (!only_tid || work->rows[i].tid == only_tid)
			result = add_row_to_tree(session, process, &work->rows[i], &lists[process],
						 sums);
	}
	return result;
}

int gpu_add_launched_work_to_tree(struct session *session, struct gpu_data *data,
				  struct launch_path_list *lists)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < data->process_count; i++) {
		struct process_work work = {.session = session, .records = &data->processes[i]};

		result = add_work_of_process(session, &work, lists, &data->launch_paths);
		free(work.kernel_names);
		free(work.rows);
		id_map_deinit(&work.row_by_key);
	}
	return result;
}
