/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See map.h. A file is asked for once, however often it is mapped or opened again. What handlers
 * look up is an immutable view of the mappings whose files have a map; the one before is freed when
 * no handler can have seen it (core/modules.h).
 *
 * A round asks for one file after the other as long as answers come at once, which they do where
 * nothing is in scope: so the first round is through with a program's libraries, and a map that
 * takes long to make is taken by a later one.
 */
#include "causal/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "causal/causal.h"
#include "causal/map_file.h"
#include "causal/map_request.h"
#include "causal/points_named.h"
#include "causal/spins.h"
#include "common/syscalls.h"
#include "core/base/text.h"
#include "core/module_file.h"
#include "core/process/maps.h"

#define MAPPED_FILES_MAX       4096u
#define POINTS_OF_ALL_MAPS_MAX 64u
#define MAP_ANSWER_WAIT_MAX_NS 1000000ull
#define DIRECTORY_PATH_SIZE    4096
#define MODULE_GENERATION_NONE UINT64_MAX

enum map_file_request_state { MAP_FILE_NOT_REQUESTED, MAP_FILE_REQUESTED, MAP_FILE_ANSWERED };

struct causal_mapped_file_entry {
	uint64_t device, inode;
	enum map_file_request_state state;
	const struct causal_map_header *map; /* NULL: nothing of it is a target */
	bool has_points;
};

struct mapped_progress_point {
	uint32_t file_index;
	enum causal_point_kind kind;
	bool is_instrumented;
	uint64_t offset;
	char name[CAUSAL_NAME_SIZE];
};

struct causal_map_view_entry {
	uint64_t start, end, file_offset_bias; /* address - bias is the offset in the file */
	const struct causal_map_header *map;
};

struct map_view {
	uint64_t size; /* of the memory */
	uint32_t count;
	struct causal_map_view_entry mapped_ranges[];
};

static struct map_view *_Atomic map_view;
/* Threads that look up outside of handlers: a view is not unmapped under them. */
static _Atomic uint32_t view_user_count;

/* Background thread only. */
static struct {
	char directory[DIRECTORY_PATH_SIZE];
	_Atomic uint32_t started;
	int socket_fd;              /* -1: not connected */
	bool given_up;              /* nobody answers */
	bool is_view_outdated;      /* files or mappings, since the view was made */
	uint64_t module_generation; /* of the modules that were looked at */
	struct map_view *retired_view;
	char *maps_text; /* buffer for /proc/self/maps */
	uint64_t maps_text_buffer_size;
	struct causal_mapped_file_entry files[MAPPED_FILES_MAX];
	uint32_t file_count, requested_file_number; /* asked: index + 1 */
	struct mapped_progress_point points[POINTS_OF_ALL_MAPS_MAX];
	uint32_t point_count;
	struct causal_request request;
	struct causal_answer answer;
} maps; /* without initial values: the tables are no part of the file */

/* ---- looking up ---- */

const uint32_t *causal_map_find_targets_of_address(uint64_t address)
{
	const struct map_view *view = atomic_load_explicit(&map_view, memory_order_seq_cst);
	uint32_t low = 0, high = view ? view->count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (view->mapped_ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!view || low == view->count || address < view->mapped_ranges[low].start)
		return causal_map_file_empty_target_list;
	return causal_map_file_find_targets(view->mapped_ranges[low].map,
					    address - view->mapped_ranges[low].file_offset_bias);
}

/* ---- the view ---- */

void causal_map_begin_use(void)
{
	atomic_fetch_add(&view_user_count, 1); /* seq_cst, as the load of the view */
}

void causal_map_end_use(void)
{
	atomic_fetch_sub(&view_user_count, 1);
}

static bool nobody_uses_old_map_view(const struct runtime *runtime)
{
	if (atomic_load(&view_user_count))
		return false;
	for (const struct thread *thread = runtime->background.live; thread;
	     thread = thread->live_next) {
		if (atomic_load_explicit(&thread->is_in_signal_handler, memory_order_seq_cst))
			return false;
	}
	return true;
}

static struct causal_mapped_file_entry *find_file_of_maps_line(const struct maps_line *line)
{
	for (uint32_t i = 0; i < maps.file_count; i++) {
		if (maps.files[i].inode == line->inode && maps.files[i].device == line->device)
			return &maps.files[i];
	}
	return NULL;
}

static bool maps_line_is_file_code(const struct maps_line *line)
{
	return line->executable && line->inode && line->path[0] == '/';
}

/* Text of /proc/self/maps; NULL: it cannot be read. */
static char *read_own_maps_text(void)
{
	return maps_read_whole_file("/proc/self/maps", &maps.maps_text,
				    &maps.maps_text_buffer_size) > 0
		       ? maps.maps_text
		       : NULL;
}

static void watch_named_point(struct runtime *runtime, const struct mapped_progress_point *point,
			      uint64_t address)
{
	if (point->kind == CAUSAL_POINT_SPIN)
		spins_add_function(address);
	else
		points_named_add_address(
			runtime,
			point->is_instrumented ? POINTS_NAMED_ADDRESS_OF_TRACED_FUNCTION
					       : POINTS_NAMED_ADDRESS_OF_CODE,
			address,
			causal_find_or_add_point(point->name, point->kind, CAUSAL_ORIGIN_NAMED));
}

static void watch_points_of_file(struct runtime *runtime, const struct maps_line *line,
				 const struct causal_mapped_file_entry *file)
{
	for (uint32_t i = 0; i < maps.point_count; i++) {
		const struct mapped_progress_point *point = &maps.points[i];

		if (&maps.files[point->file_index] == file && point->offset >= line->offset &&
		    point->offset - line->offset < line->end - line->start)
			watch_named_point(runtime, point,
					  line->start + (point->offset - line->offset));
	}
}

/* Counts at first, then fills; `view` may be NULL. */
static uint32_t count_or_fill_map_view(struct runtime *runtime, struct map_view *view,
				       uint32_t maximum)
{
	char *text = read_own_maps_text();
	struct maps_line line;
	uint32_t count = 0;

	while (text && maps_parse_next_line(&text, &line)) {
		const struct causal_mapped_file_entry *file =
			maps_line_is_file_code(&line) ? find_file_of_maps_line(&line) : NULL;

		if (view && file && file->has_points)
			watch_points_of_file(runtime, &line, file);
		if (!file || !file->map || (view && count == maximum))
			continue;
		if (view)
			view->mapped_ranges[count] = (struct causal_map_view_entry){
				line.start, line.end, line.start - line.offset, file->map};
		count++;
	}
	return count;
}

static void replace_map_view(struct runtime *runtime)
{
	uint32_t maximum = count_or_fill_map_view(runtime, NULL, 0);
	uint64_t size =
		sizeof(struct map_view) + (maximum + 1) * sizeof(struct causal_map_view_entry);
	struct map_view *view =
		sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_mmap_failed(view))
		return;
	view->size = size;
	points_named_begin_update();
	view->count = count_or_fill_map_view(runtime, view, maximum);
	points_named_end_update(runtime);
	maps.retired_view = atomic_exchange_explicit(&map_view, view, memory_order_seq_cst);
	maps.is_view_outdated = false;
}

static void publish_map_view_if_changed(struct runtime *runtime)
{
	if (maps.retired_view && nobody_uses_old_map_view(runtime)) {
		sys_munmap(maps.retired_view, maps.retired_view->size);
		maps.retired_view = NULL;
	}
	if (maps.is_view_outdated && !maps.retired_view)
		replace_map_view(runtime);
}

/* ---- asking ---- */

static void add_new_mapped_files(void)
{
	char *text = read_own_maps_text();
	struct maps_line line;

	while (text && maps_parse_next_line(&text, &line) && maps.file_count < MAPPED_FILES_MAX) {
		if (maps_line_is_file_code(&line) && !find_file_of_maps_line(&line))
			maps.files[maps.file_count++] = (struct causal_mapped_file_entry){
				.device = line.device, .inode = line.inode};
	}
}

/* /proc/PID/maps and stat(2) name devices differently on some file systems; kymo has what stat(2)
 * says, and the build-id. */
static void fill_request_for_file(const struct runtime *runtime, const struct maps_line *line)
{
	const struct module_file *file =
		module_file_find_or_add(line, runtime->options.cache_directory);
	struct text_buffer path = text_buffer_init(maps.request.path, sizeof(maps.request.path));
	struct stat status;

	text_append_string(&path, line->path);
	maps.request.device = line->device;
	maps.request.inode = line->inode;
	if (!sys_call4(SYS_newfstatat, SYS_WORKING_DIRECTORY_FD, (long)line->path, (long)&status,
		       0) &&
	    status.st_ino == line->inode)
		maps.request.device = status.st_dev;
	maps.request.build_id_size = file ? file->build_id_size : 0;
	if (file)
		memcpy(maps.request.build_id, file->build_id, sizeof(maps.request.build_id));
}

/* The next file that nobody was asked about, and where it is now. */
static bool prepare_next_request(const struct runtime *runtime)
{
	char *text = read_own_maps_text();
	struct maps_line line;

	while (text && maps_parse_next_line(&text, &line)) {
		struct causal_mapped_file_entry *file =
			maps_line_is_file_code(&line) ? find_file_of_maps_line(&line) : NULL;

		if (!file || file->state != MAP_FILE_NOT_REQUESTED)
			continue;
		maps.request.kind = CAUSAL_REQUEST_MAP;
		maps.request.pid = (uint32_t)sys_getpid();
		fill_request_for_file(runtime, &line);
		maps.requested_file_number = (uint32_t)(file - maps.files) + 1;
		return true;
	}
	return false;
}

static void give_up_all_map_requests(void)
{
	if (maps.socket_fd >= 0)
		sys_close(maps.socket_fd);
	maps.socket_fd = -1;
	maps.given_up = true;
	maps.requested_file_number = 0;
}

/* False: not now, or never again. */
static bool send_map_request_to_kymo(void)
{
	int error;

	if (maps.socket_fd < 0) {
		maps.socket_fd = map_request_connect(maps.directory);
		if (maps.socket_fd < 0) {
			maps.given_up = maps.socket_fd != -EAGAIN;
			maps.socket_fd = -1;
			return false;
		}
	}
	error = map_request_send(maps.socket_fd, &maps.request);
	if (error && error != -EAGAIN && error != -EINTR)
		give_up_all_map_requests();
	return !error;
}

static void add_answered_points(uint32_t file)
{
	for (uint32_t i = 0;
	     i < maps.answer.point_count && maps.point_count < POINTS_OF_ALL_MAPS_MAX; i++) {
		struct mapped_progress_point *point = &maps.points[maps.point_count++];

		point->file_index = file;
		point->kind = (enum causal_point_kind)maps.answer.points[i].kind;
		point->is_instrumented = maps.answer.points[i].instrumented;
		point->offset = maps.answer.points[i].address;
		memcpy(point->name, maps.answer.points[i].name, sizeof(point->name));
		maps.files[file].has_points = maps.is_view_outdated = true;
	}
}

static void add_to_pending_map_count(struct causal_control *control, uint32_t count)
{
	atomic_fetch_add_explicit(&control->maps_pending, count, memory_order_relaxed);
}

static void apply_map_answer(struct causal_control *control)
{
	struct causal_mapped_file_entry *file = &maps.files[maps.requested_file_number - 1];
	size_t size;

	if (!maps.answer.status && maps.answer.map[0])
		file->map = causal_map_file_load(maps.answer.map, &size);
	if (file->map) {
		atomic_fetch_add_explicit(&control->maps, 1, memory_order_relaxed);
		maps.is_view_outdated = true;
	}
	add_answered_points(maps.requested_file_number - 1);
	file->state = MAP_FILE_ANSWERED;
	maps.requested_file_number = 0;
	add_to_pending_map_count(control, UINT32_MAX);
}

static void request_maps_of_all_files(const struct runtime *runtime, struct causal_control *control)
{
	int error = 0;

	while (!maps.given_up && !error) {
		if (!maps.requested_file_number) {
			if (!prepare_next_request(runtime))
				return;
			if (!send_map_request_to_kymo()) {
				maps.requested_file_number = 0;
				return;
			}
			maps.files[maps.requested_file_number - 1].state = MAP_FILE_REQUESTED;
			add_to_pending_map_count(control, 1);
		}
		error = map_request_receive_answer(maps.socket_fd, &maps.answer,
						   MAP_ANSWER_WAIT_MAX_NS);
		if (!error)
			apply_map_answer(control);
	}
	if (error && error != -EAGAIN) {
		add_to_pending_map_count(control, UINT32_MAX);
		give_up_all_map_requests();
	}
}

static bool has_unanswered_files(void)
{
	for (uint32_t i = 0; i < maps.file_count; i++) {
		if (maps.files[i].state != MAP_FILE_ANSWERED)
			return true;
	}
	return false;
}

void causal_map_request_and_publish(struct runtime *runtime)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);

	if (!control || !atomic_load_explicit(&maps.started, memory_order_acquire))
		return;
	if (maps.module_generation != runtime->modules.generation) {
		maps.module_generation = runtime->modules.generation;
		maps.is_view_outdated = true;
		add_new_mapped_files();
	}
	if (has_unanswered_files())
		request_maps_of_all_files(runtime, control);
	publish_map_view_if_changed(runtime);
	points_named_run_background_round(runtime);
}

/* ---- life ---- */

void causal_map_start_requests(struct runtime *runtime, const char *directory)
{
	struct text_buffer text = text_buffer_init(maps.directory, sizeof(maps.directory));

	text_append_string(&text, directory);
	if (!atomic_load_explicit(&maps.started, memory_order_relaxed)) {
		maps.socket_fd = -1;
		maps.module_generation = MODULE_GENERATION_NONE;
	}
	atomic_store_explicit(&maps.started, 1, memory_order_release);
	background_wake(&runtime->background);
}

/* The parent's background thread may have been in the midst of anything but publishing: what was
 * answered and published holds, what was under way begins again. */
void causal_map_reset_after_fork(void)
{
	atomic_store(&view_user_count, 0);
	for (uint32_t i = 0; i < maps.file_count; i++) {
		if (maps.files[i].state == MAP_FILE_REQUESTED)
			maps.files[i].state = MAP_FILE_NOT_REQUESTED;
	}
	maps.socket_fd = -1;
	maps.requested_file_number = 0;
	maps.maps_text = NULL;
	maps.maps_text_buffer_size = 0;
	maps.retired_view = NULL;
	maps.module_generation = MODULE_GENERATION_NONE;
	points_named_reset_after_fork();
}
