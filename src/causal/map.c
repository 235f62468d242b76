/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See map.h. A file is asked for once, however often it is mapped or opened anew. What handlers
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
#include "causal/coz.h"
#include "causal/map_file.h"
#include "causal/map_request.h"
#include "causal/points_named.h"
#include "causal/spins.h"
#include "common/syscalls.h"
#include "core/maps.h"
#include "core/module_file.h"
#include "core/text.h"

#define FILES_MAX       4096u
#define POINTS_MAX      64u
#define ANSWER_WAIT_NS  1000000ull
#define DIRECTORY_SIZE  4096
#define GENERATION_NONE UINT64_MAX

enum file_state { FILE_NEW, FILE_ASKED, FILE_ANSWERED };

struct map_file {
	uint64_t device, inode;
	enum file_state state;
	const struct causal_map_header *map; /* NULL: nothing of it is a target */
	bool has_points;
};

struct map_point {
	uint32_t file;
	enum causal_point_kind kind;
	bool instrumented;
	uint64_t offset;
	char name[CAUSAL_NAME_SIZE];
};

struct map_module {
	uint64_t start, end, bias; /* address - bias is the offset in the file */
	const struct causal_map_header *map;
};

struct map_view {
	uint64_t size; /* of the memory */
	uint32_t count;
	struct map_module modules[];
};

static struct map_view *_Atomic map_view;

/* Background thread only. */
static struct {
	char directory[DIRECTORY_SIZE];
	_Atomic uint32_t started;
	int socket;          /* -1: not connected */
	bool given_up;       /* nobody answers */
	bool changed;        /* files or mappings, since the view was made */
	uint64_t generation; /* of the modules that were looked at */
	struct map_view *retired;
	char *text; /* buffer for /proc/self/maps */
	uint64_t text_size;
	struct map_file files[FILES_MAX];
	uint32_t file_count, asked; /* asked: index + 1 */
	struct map_point points[POINTS_MAX];
	uint32_t point_count;
	struct causal_request request;
	struct causal_answer answer;
} maps = {.socket = -1, .generation = GENERATION_NONE};

/* ---- looking up ---- */

const uint32_t *causal_map_find(uint64_t address)
{
	const struct map_view *view = atomic_load_explicit(&map_view, memory_order_seq_cst);
	uint32_t low = 0, high = view ? view->count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (view->modules[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!view || low == view->count || address < view->modules[low].start)
		return causal_map_file_none;
	return causal_map_file_find(view->modules[low].map, address - view->modules[low].bias);
}

/* ---- the view ---- */

static bool quiescent(const struct runtime *runtime)
{
	for (const struct thread *thread = runtime->background.live; thread;
	     thread = thread->live_next) {
		if (atomic_load_explicit(&thread->in_handler, memory_order_seq_cst))
			return false;
	}
	return true;
}

static struct map_file *file_of(const struct maps_line *line)
{
	for (uint32_t i = 0; i < maps.file_count; i++) {
		if (maps.files[i].inode == line->inode && maps.files[i].device == line->device)
			return &maps.files[i];
	}
	return NULL;
}

static bool is_file(const struct maps_line *line)
{
	return line->executable && line->inode && line->path[0] == '/';
}

/* Text of /proc/self/maps; NULL: it cannot be read. */
static char *read_mappings(void)
{
	return maps_read("/proc/self/maps", &maps.text, &maps.text_size) > 0 ? maps.text : NULL;
}

static void place_point(struct runtime *runtime, const struct map_point *point, uint64_t address)
{
	if (point->kind == CAUSAL_POINT_SPIN)
		spins_add(address);
	else
		points_named_at(
			runtime, point->instrumented ? POINTS_NAMED_CALLS : POINTS_NAMED_CODE,
			address, causal_point(point->name, point->kind, CAUSAL_ORIGIN_NAMED));
}

static void place_points(struct runtime *runtime, const struct maps_line *line,
			 const struct map_file *file)
{
	for (uint32_t i = 0; i < maps.point_count; i++) {
		const struct map_point *point = &maps.points[i];

		if (&maps.files[point->file] == file && point->offset >= line->offset &&
		    point->offset - line->offset < line->end - line->start)
			place_point(runtime, point, line->start + (point->offset - line->offset));
	}
}

/* Counts at first, then fills; `view` may be NULL. */
static uint32_t fill_view(struct runtime *runtime, struct map_view *view, uint32_t maximum)
{
	char *text = read_mappings();
	struct maps_line line;
	uint32_t count = 0;

	while (text && maps_next(&text, &line)) {
		const struct map_file *file = is_file(&line) ? file_of(&line) : NULL;

		if (view && file && file->has_points)
			place_points(runtime, &line, file);
		if (!file || !file->map || (view && count == maximum))
			continue;
		if (view)
			view->modules[count] = (struct map_module){
				line.start, line.end, line.start - line.offset, file->map};
		count++;
	}
	return count;
}

static void make_view(struct runtime *runtime)
{
	uint32_t maximum = fill_view(runtime, NULL, 0);
	uint64_t size = sizeof(struct map_view) + (maximum + 1) * sizeof(struct map_module);
	struct map_view *view =
		sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_failed(view))
		return;
	view->size = size;
	points_named_begin();
	view->count = fill_view(runtime, view, maximum);
	causal_coz_watch(runtime);
	points_named_end(runtime);
	maps.retired = atomic_exchange_explicit(&map_view, view, memory_order_seq_cst);
	maps.changed = false;
}

static void follow_view(struct runtime *runtime)
{
	if (maps.retired && quiescent(runtime)) {
		sys_munmap(maps.retired, maps.retired->size);
		maps.retired = NULL;
	}
	if (maps.changed && !maps.retired)
		make_view(runtime);
}

/* ---- asking ---- */

static void find_files(void)
{
	char *text = read_mappings();
	struct maps_line line;

	while (text && maps_next(&text, &line) && maps.file_count < FILES_MAX) {
		if (is_file(&line) && !file_of(&line))
			maps.files[maps.file_count++] =
				(struct map_file){.device = line.device, .inode = line.inode};
	}
}

/* /proc/PID/maps and stat(2) name devices differently on some file systems; kymo has what stat(2)
 * says, and the build-id. */
static void describe_file(const struct runtime *runtime, const struct maps_line *line)
{
	const struct module_file *file = module_file_get(line, runtime->options.cache_directory);
	struct text path = text_on(maps.request.path, sizeof(maps.request.path));
	struct stat status;

	text_string(&path, line->path);
	maps.request.device = line->device;
	maps.request.inode = line->inode;
	if (!sys_call4(SYS_newfstatat, SYS_AT_WORKING_DIRECTORY, (long)line->path, (long)&status,
		       0) &&
	    status.st_ino == line->inode)
		maps.request.device = status.st_dev;
	maps.request.build_id_size = file ? file->build_id_size : 0;
	if (file)
		memcpy(maps.request.build_id, file->build_id, sizeof(maps.request.build_id));
}

/* The next file that nobody was asked about, and where it is now. */
static bool next_request(const struct runtime *runtime)
{
	char *text = read_mappings();
	struct maps_line line;

	while (text && maps_next(&text, &line)) {
		struct map_file *file = is_file(&line) ? file_of(&line) : NULL;

		if (!file || file->state != FILE_NEW)
			continue;
		maps.request.kind = CAUSAL_REQUEST_MAP;
		maps.request.pid = (uint32_t)sys_getpid();
		describe_file(runtime, &line);
		maps.asked = (uint32_t)(file - maps.files) + 1;
		return true;
	}
	return false;
}

static void give_up(void)
{
	if (maps.socket >= 0)
		sys_close(maps.socket);
	maps.socket = -1;
	maps.given_up = true;
	maps.asked = 0;
}

/* False: not now, or never again. */
static bool ask(void)
{
	int error;

	if (maps.socket < 0) {
		maps.socket = map_request_begin(maps.directory);
		if (maps.socket < 0) {
			maps.given_up = maps.socket != -EAGAIN;
			maps.socket = -1;
			return false;
		}
	}
	error = map_request_send(maps.socket, &maps.request);
	if (error && error != -EAGAIN && error != -EINTR)
		give_up();
	return !error;
}

static void take_points(uint32_t file)
{
	for (uint32_t i = 0; i < maps.answer.point_count && maps.point_count < POINTS_MAX; i++) {
		struct map_point *point = &maps.points[maps.point_count++];

		point->file = file;
		point->kind = (enum causal_point_kind)maps.answer.points[i].kind;
		point->instrumented = maps.answer.points[i].instrumented;
		point->offset = maps.answer.points[i].address;
		memcpy(point->name, maps.answer.points[i].name, sizeof(point->name));
		maps.files[file].has_points = maps.changed = true;
	}
}

static void count_pending(struct causal_control *control, uint32_t count)
{
	atomic_fetch_add_explicit(&control->maps_pending, count, memory_order_relaxed);
}

static void take_answer(struct causal_control *control)
{
	struct map_file *file = &maps.files[maps.asked - 1];
	size_t size;

	if (!maps.answer.status && maps.answer.map[0])
		file->map = causal_map_file_open(maps.answer.map, &size);
	if (file->map) {
		atomic_fetch_add_explicit(&control->maps, 1, memory_order_relaxed);
		maps.changed = true;
	}
	take_points(maps.asked - 1);
	file->state = FILE_ANSWERED;
	maps.asked = 0;
	count_pending(control, UINT32_MAX);
}

static void ask_all(const struct runtime *runtime, struct causal_control *control)
{
	int error = 0;

	while (!maps.given_up && !error) {
		if (!maps.asked) {
			if (!next_request(runtime))
				return;
			if (!ask()) {
				maps.asked = 0;
				return;
			}
			maps.files[maps.asked - 1].state = FILE_ASKED;
			count_pending(control, 1);
		}
		error = map_request_receive(maps.socket, &maps.answer, ANSWER_WAIT_NS);
		if (!error)
			take_answer(control);
	}
	if (error && error != -EAGAIN) {
		count_pending(control, UINT32_MAX);
		give_up();
	}
}

static bool anything_new(void)
{
	for (uint32_t i = 0; i < maps.file_count; i++) {
		if (maps.files[i].state != FILE_ANSWERED)
			return true;
	}
	return false;
}

void causal_map_round(struct runtime *runtime)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);

	if (!control || !atomic_load_explicit(&maps.started, memory_order_acquire))
		return;
	if (maps.generation != runtime->modules.generation) {
		maps.generation = runtime->modules.generation;
		maps.changed = true;
		find_files();
	}
	if (causal_coz_changed())
		maps.changed = true;
	if (anything_new())
		ask_all(runtime, control);
	follow_view(runtime);
	points_named_follow(runtime);
}

/* ---- life ---- */

void causal_map_start(struct runtime *runtime, const char *directory)
{
	struct text text = text_on(maps.directory, sizeof(maps.directory));

	text_string(&text, directory);
	atomic_store_explicit(&maps.started, 1, memory_order_release);
	background_wake(&runtime->background);
}

/* The parent's background thread may have been in the midst of anything but publishing: what was
 * answered and published holds, what was under way begins anew. */
void causal_map_forked(void)
{
	for (uint32_t i = 0; i < maps.file_count; i++) {
		if (maps.files[i].state == FILE_ASKED)
			maps.files[i].state = FILE_NEW;
	}
	maps.socket = -1;
	maps.asked = 0;
	maps.text = NULL;
	maps.text_size = 0;
	maps.retired = NULL;
	maps.generation = GENERATION_NONE;
	causal_coz_forked();
	points_named_forked();
}
