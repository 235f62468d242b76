/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See apply.h. One thread at a time: the program's main thread in our constructor, a thread that
 * opens a library (the loader lets one at a time), or one of kymo's own.
 */
#include "instrument/apply.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/syscalls.h"
#include "core/base/file_copy.h"
#include "core/base/text.h"
#include "core/base/ticks.h"
#include "instrument/arena.h"
#include "instrument/request.h"
#include "instrument/rewritten.h"
#include "instrument/stack_copies.h"
#include "instrument/state.h"
#include "instrument/text_pages.h"
#include "regions/names.h"

#define MODULES_MAX            8192u
#define PATH_STRINGS_SIZE      (1u << 20)
#define ARENA_PLACEMENTS_MAX   3 /* places for arenas that the planner offers */
#define LIBKYMO_FILE_PREFIX    "libkymo"
#define ARENA_RECORD_BYTES_MAX 16384u

#define COPIED_STACKS_TEXT "calls are only counted from here on, because this file copies stacks: "
#define OWN_UNWINDER_TEXT                                                                          \
	"calls are only counted from here on, because this run time looks up return addresses: "

/* A loaded object as it was seen. */
struct seen_object {
	uint64_t bias;
	const void *program_headers; /* its program headers, as mapped */
	uint32_t last_walk_number;   /* that it was last met in */
};

static struct {
	_Atomic uint32_t lock;
	struct seen_object *seen;
	uint32_t seen_count, walk_count;
	char *strings; /* paths, for the life of the process */
	uint32_t strings_used_bytes;
	struct plan_request
		*noted_requests; /* MODULES_MAX; what apply_plans_to_queued_objects() will ask */
	uint32_t noted_request_count;
	struct plan_request request;
	struct plan_answer answer;
	uint8_t arena_record[ARENA_RECORD_BYTES_MAX];
} apply;

/* What is done with each object. */
struct instrumenting_walk {
	enum apply_patch_writing_side writing_side;
	int fd, applied_object_count;
	uint32_t objects;
	bool notes_requests; /* there is nobody to ask yet */
};

static bool allocate_seen_object_table_once(void)
{
	if (!apply.seen)
		apply.seen = region_map_memory(MODULES_MAX * sizeof(*apply.seen));
	if (!apply.strings)
		apply.strings = region_map_memory(PATH_STRINGS_SIZE);
	return apply.seen && apply.strings;
}

static const char *store_path_string(const char *string)
{
	char *kept = apply.strings + apply.strings_used_bytes;
	struct text_buffer text =
		text_buffer_init(kept, PATH_STRINGS_SIZE - apply.strings_used_bytes);

	text_append_string(&text, string);
	apply.strings_used_bytes +=
		(uint32_t)text.length +
		(apply.strings_used_bytes + text.length + 1 < PATH_STRINGS_SIZE);
	return kept;
}

static bool mark_object_met_if_seen(const struct dl_phdr_info *info)
{
	for (uint32_t i = 0; i < apply.seen_count; i++) {
		if (apply.seen[i].bias != info->dlpi_addr ||
		    apply.seen[i].program_headers != info->dlpi_phdr)
			continue;
		apply.seen[i].last_walk_number = apply.walk_count;
		return true;
	}
	return false;
}

static void add_seen_object(const struct dl_phdr_info *info)
{
	if (apply.seen_count < MODULES_MAX)
		apply.seen[apply.seen_count++] =
			(struct seen_object){info->dlpi_addr, info->dlpi_phdr, apply.walk_count};
}

/* After a walk over all objects. What was unloaded may come again, and another file may come to its
 * place. */
static void drop_unloaded_objects_and_arenas(void)
{
	uint32_t kept = 0, count = arenas_get_count();

	for (uint32_t i = 0; i < apply.seen_count; i++) {
		if (apply.seen[i].last_walk_number == apply.walk_count)
			apply.seen[kept++] = apply.seen[i];
	}
	apply.seen_count = kept;
	for (uint32_t i = 0; i < count; i++) {
		if (arenas_get_one_by_index(i)->met != apply.walk_count)
			arenas_get_one_by_index(i)->is_module_unloaded = true;
	}
}

static int visit_object_and_detect_unseen(struct dl_phdr_info *info, size_t size, void *context)
{
	uint32_t count = arenas_get_count();
	bool *unseen = context;

	(void)size;
	*unseen = !mark_object_met_if_seen(info) || *unseen;
	for (uint32_t i = 0; i < count; i++) {
		if (arenas_get_one_by_index(i)->bias == info->dlpi_addr)
			arenas_get_one_by_index(i)->met = apply.walk_count;
	}
	return 0;
}

/* Is there anything new? */
static bool look_for_new_and_gone_objects(void)
{
	bool unseen = false;

	apply.walk_count++;
	dl_iterate_phdr(visit_object_and_detect_unseen, &unseen);
	drop_unloaded_objects_and_arenas();
	return unseen;
}

/* ---- what is asked ---- */

static void read_build_id(const struct dl_phdr_info *info, struct plan_request *request)
{
	request->build_id_size = 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)(info->dlpi_addr + header->p_vaddr), *end;

		if (header->p_type != PT_NOTE)
			continue;
		end = at + header->p_memsz;
		while (at + sizeof(ElfW(Nhdr)) < end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const uint8_t *name = at + sizeof(*note),
				      *bytes = name + ((note->n_namesz + 3) & ~3u);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    name[0] == 'G' && note->n_descsz <= sizeof(request->build_id)) {
				request->build_id_size = note->n_descsz;
				for (uint32_t j = 0; j < note->n_descsz; j++)
					request->build_id[j] = bytes[j];
				return;
			}
			at = bytes + ((note->n_descsz + 3) & ~3u);
		}
	}
}

/* The executable has no name in the loader's list. */
static bool object_is_library(const struct dl_phdr_info *info)
{
	return info->dlpi_name && info->dlpi_name[0];
}

/* The executable's name is the kernel's to tell, those of others may be relative. Which file it is,
 * the build-id says; where there is none, what is mapped. */
static bool describe_object_in_request(const struct dl_phdr_info *info,
				       struct plan_request *request)
{
	struct text_buffer text = text_buffer_init(request->path, sizeof(request->path));
	bool named = object_is_library(info);
	long length;

	read_build_id(info, request);
	request->bias = info->dlpi_addr;
	request->device = request->inode = 0;
	if ((named && info->dlpi_name[0] != '/') || !request->build_id_size)
		return text_pages_find_mapped_file((uint64_t)(uintptr_t)info->dlpi_phdr,
						   request->path, sizeof(request->path),
						   &request->device, &request->inode);
	if (named) {
		text_append_string(&text, info->dlpi_name);
		return true;
	}
	length = sys_call3(SYS_readlink, (long)"/proc/self/exe", (long)request->path,
			   (long)sizeof(request->path) - 1);
	request->path[length > 0 ? length : 0] = 0;
	return length > 0;
}

static bool is_kymo_library(const char *path)
{
	const char *name = path, *prefix = LIBKYMO_FILE_PREFIX;

	for (const char *at = path; *at; at++)
		name = *at == '/' ? at + 1 : name;
	while (*prefix && *prefix == *name) {
		prefix++;
		name++;
	}
	return !*prefix;
}

/* ---- what is done with the answer ---- */

static void *read_file(const char *path, uint64_t *ret_size)
{
	struct stat status;
	long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	void *bytes = NULL;

	if (fd < 0)
		return NULL;
	if (!sys_call2(SYS_fstat, fd, (long)&status) && status.st_size > 0)
		bytes = file_copy_to_memory((int)fd, (size_t)status.st_size);
	*ret_size = bytes ? (uint64_t)status.st_size : 0;
	sys_close((int)fd);
	return bytes;
}

static bool is_valid_plan(const struct plan_header *plan, uint64_t size)
{
	static const char magic[8] = PLAN_MAGIC;

	for (unsigned i = 0; size >= sizeof(*plan) && i < sizeof(magic); i++) {
		if (plan->magic[i] != magic[i])
			return false;
	}
	return size >= sizeof(*plan) && plan->version == PLAN_VERSION && plan->plan_size <= size &&
	       plan->stubs.offset <= size && plan->stubs.count <= size - plan->stubs.offset;
}

/* Stubs whose calls are counted have a jump to the counting part where they are entered. */
static void set_counting_stub_modes(const struct arena *arena)
{
	const struct plan_function *functions =
		(const void *)((const char *)arena->plan + arena->plan->functions.offset);
	uint8_t *start = (uint8_t *)arena->data;
	bool writable = false;

	for (uint32_t i = 0; i < arena->count; i++) {
		if (arena->modes[i] != PLAN_MODE_COUNT || !functions[i].stub ||
		    functions[i].flags & (PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK))
			continue;
		if (!writable)
			sys_call3(SYS_mprotect, (long)(start + PLAN_STUBS),
				  (long)(arena->size - PLAN_STUBS), PROT_READ | PROT_WRITE);
		writable = true;
		start[functions[i].stub + PLAN_STUB_MODE] = PLAN_STUB_TO_COUNT;
	}
	if (writable)
		sys_call3(SYS_mprotect, (long)(start + PLAN_STUBS),
			  (long)(arena->size - PLAN_STUBS), PROT_READ | PROT_EXEC);
}

void apply_write_arena_record(const struct arena *arena)
{
	uint8_t *at = apply.arena_record;
	const char *const paths[] = {arena->plan_path, arena->module_path};

	at = write_fixed64_little_endian(at, ticks_now());
	at = leb128_write(at, arena->first_function_id);
	at = leb128_write(at, arena->count);
	at = write_fixed64_little_endian(at, arena->bias);
	at = write_fixed64_little_endian(at, (uint64_t)(uintptr_t)arena->data);
	at = write_fixed64_little_endian(at, arena->size);
	for (unsigned i = 0; i < 2; i++) {
		uint32_t length = 0;

		while (paths[i][length] && length < OPTIONS_PATH_SIZE)
			length++;
		at = leb128_write(at, length);
		for (uint32_t j = 0; j < length; j++)
			*at++ = (uint8_t)paths[i][j];
	}
	if (!names_write_record_in_name_chunk(SPOOL_RECORD_INSTRUMENTED, apply.arena_record,
					      (uint32_t)(at - apply.arena_record)))
		spool_count_loss(kymo_instrument.spool, SPOOL_LOSS_INSTRUMENT);
}

/* The arena is there, the trampoline closed or open as all are: now the jumps. */
static int write_jumps_to_stubs(const struct instrumenting_walk *walk, const struct arena *arena)
{
	int error;

	if (walk->writing_side == APPLY_PATCHES_IN_PROCESS)
		return text_pages_write_patches(arena);
	apply.request.kind = PLAN_REQUEST_COMMIT;
	error = request_send_and_receive(walk->fd, &apply.request, &apply.answer);
	return error ? error : apply.answer.status;
}

/* kymo attached before: stubs and ids are as they were then. */
static struct arena *reuse_arena(const struct arena *made)
{
	struct arena *arena = arena_reuse_earlier(made->plan, apply.request.bias);

	if (!arena)
		return NULL;
	arena->modes = made->modes;
	arena->plan_path = store_path_string(apply.answer.plan);
	return arena;
}

static struct arena *make_or_reuse_arena(struct arena *made, uint64_t plan_size,
					 uint64_t modes_size, int *ret_error)
{
	struct arena *arena;

	*ret_error = -EBADMSG;
	if (!is_valid_plan(made->plan, plan_size) || !made->modes || modes_size < made->count)
		return NULL;
	arena = reuse_arena(made);
	*ret_error = arena ? 0 : arena_map_at_planned_address(made->plan, apply.request.bias, made);
	if (arena || *ret_error)
		return arena;
	made->plan_path = store_path_string(apply.answer.plan);
	made->module_path = store_path_string(apply.request.path);
	arena = arena_add(made);
	if (!arena)
		*ret_error = -ENOSPC;
	return arena;
}

/* Before anything of the module runs: no call leaves a trace on a stack from here on. */
static void leave_stacks_alone_if_module_needs_it(const struct arena *arena)
{
	uint64_t flags = arena->plan->module_flags;

	if (flags & PLAN_MODULE_COPIES_STACKS)
		stack_copies_switch_to_counting(COPIED_STACKS_TEXT, arena->module_path);
	else if (flags & PLAN_MODULE_UNWINDS_BY_ITSELF)
		stack_copies_switch_to_counting(OWN_UNWINDER_TEXT, arena->module_path);
	stack_copies_make_stubs_count();
}

static int instrument_object(const struct instrumenting_walk *walk)
{
	struct arena made = {0}, *arena;
	uint64_t plan_size = 0, modes_size = 0;
	int error;

	made.plan = read_file(apply.answer.plan, &plan_size);
	if (!made.plan)
		return -ENOENT;
	made.modes = read_file(apply.answer.modes, &modes_size);
	made.count = (uint32_t)made.plan->functions.count;
	arena = make_or_reuse_arena(&made, plan_size, modes_size, &error);
	if (!arena) {
		sys_munmap((void *)(uintptr_t)made.plan, plan_size);
		if (made.modes)
			sys_munmap((void *)(uintptr_t)made.modes, modes_size);
		return error;
	}
	set_counting_stub_modes(arena);
	leave_stacks_alone_if_module_needs_it(arena);
	apply_write_arena_record(arena);
	return write_jumps_to_stubs(walk, arena);
}

/* The request says which object. */
static int ask_plan_and_instrument(struct instrumenting_walk *walk)
{
	int error = -EEXIST;

	apply.request.pid = kymo_process.pid;
	for (uint32_t placement = 0; error == -EEXIST && placement < ARENA_PLACEMENTS_MAX;
	     placement++) {
		apply.request.kind = PLAN_REQUEST_MODULE;
		apply.request.placement = placement;
		error = request_send_and_receive(walk->fd, &apply.request, &apply.answer);
		if (error)
			return error;
		error = apply.answer.status ? apply.answer.status : instrument_object(walk);
		if (apply.answer.status)
			return 0;
	}
	if (error)
		spool_count_loss(kymo_instrument.spool, SPOOL_LOSS_INSTRUMENT);
	else
		walk->applied_object_count++;
	return 0;
}

/* ---- objects ---- */

/* A plan that the object holds goes away with it. */
static struct arena *add_arena_of_rewritten_object(struct arena *made, bool is_library)
{
	struct arena *arena;

	if (made->is_made_at_start && arena_map_at_planned_address(made->plan, made->bias, made))
		return NULL;
	if ((is_library && !rewritten_replace_plan_by_copy(made)) ||
	    (!made->is_made_at_start && arena_fill_mapped(made)))
		return NULL;
	arena = arena_add(made);
	if (arena && arena->is_made_at_start) {
		set_counting_stub_modes(arena);
		if (text_pages_write_patches(arena))
			return NULL;
	}
	return arena;
}

/* Objects that were rewritten bring all that is asked for otherwise. */
static bool adopt_rewritten_object(struct instrumenting_walk *walk, const struct dl_phdr_info *info)
{
	struct arena made, *arena = NULL;
	bool foreign;

	if (!rewritten_find_arena(info, &made, &foreign))
		return false;
	if (!foreign && allocate_seen_object_table_once() &&
	    describe_object_in_request(info, &apply.request)) {
		arena = arena_find_by_address((uint64_t)(uintptr_t)made.data);
		made.plan_path = made.module_path = store_path_string(apply.request.path);
		if (!arena)
			arena = add_arena_of_rewritten_object(&made, object_is_library(info));
	}
	if (arena) {
		leave_stacks_alone_if_module_needs_it(arena);
		apply_write_arena_record(arena);
		walk->applied_object_count++;
	} else
		spool_count_loss(kymo_instrument.spool, SPOOL_LOSS_INSTRUMENT);
	if (apply.seen)
		add_seen_object(info);
	return true;
}

static int instrument_or_queue_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct instrumenting_walk *walk = context;

	(void)size;
	walk->objects++;
	if (info->dlpi_name && stack_copies_are_made_by_file(info->dlpi_name))
		stack_copies_switch_to_counting(COPIED_STACKS_TEXT, info->dlpi_name);
	if (mark_object_met_if_seen(info) || adopt_rewritten_object(walk, info) ||
	    (walk->fd < 0 && !walk->notes_requests))
		return 0;
	add_seen_object(info);
	if (!describe_object_in_request(info, &apply.request) ||
	    is_kymo_library(apply.request.path))
		return 0;
	if (walk->fd >= 0)
		return ask_plan_and_instrument(walk);
	if (apply.noted_request_count < MODULES_MAX)
		apply.noted_requests[apply.noted_request_count++] = apply.request;
	return 0;
}

int apply_plans_to_new_objects(enum apply_patch_writing_side way)
{
	const char *path = kymo_instrument.options->socket;
	struct instrumenting_walk walk = {.writing_side = way, .fd = -1};
	int error = 0;

	if (!region_acquire_lock_if_not_holder(&apply.lock))
		return 0;
	if (!look_for_new_and_gone_objects()) {
		region_release_lock(&apply.lock);
		return 0;
	}
	if (path && *path) {
		walk.fd = allocate_seen_object_table_once() ? request_connect(path) : -ENOMEM;
		error = walk.fd < 0 ? walk.fd : 0;
	}
	if (!error)
		error = dl_iterate_phdr(instrument_or_queue_object, &walk);
	if (walk.fd >= 0) {
		apply.request.kind = PLAN_REQUEST_DONE;
		request_send_and_receive(walk.fd, &apply.request, &apply.answer);
		request_disconnect(walk.fd);
	}
	region_release_lock(&apply.lock);
	return error < 0 ? error : walk.applied_object_count;
}

/* Without a descriptor, objects are noted. */
void apply_queue_new_objects(void)
{
	struct instrumenting_walk walk = {
		.writing_side = APPLY_PATCHES_FROM_OUTSIDE, .fd = -1, .notes_requests = true};

	if (!region_acquire_lock_if_not_holder(&apply.lock))
		return;
	if (!apply.noted_requests)
		apply.noted_requests =
			region_map_memory(MODULES_MAX * sizeof(*apply.noted_requests));
	apply.noted_request_count = 0;
	look_for_new_and_gone_objects();
	if (apply.noted_requests && allocate_seen_object_table_once())
		dl_iterate_phdr(instrument_or_queue_object, &walk);
	region_release_lock(&apply.lock);
}

int apply_plans_to_queued_objects(void)
{
	struct instrumenting_walk walk = {.writing_side = APPLY_PATCHES_FROM_OUTSIDE};
	int error = 0;

	if (!region_acquire_lock_if_not_holder(&apply.lock))
		return 0;
	walk.fd = request_connect(kymo_instrument.options->socket);
	for (uint32_t i = 0; walk.fd >= 0 && !error && i < apply.noted_request_count; i++) {
		apply.request = apply.noted_requests[i];
		error = ask_plan_and_instrument(&walk);
	}
	apply.noted_request_count = 0;
	if (walk.fd >= 0) {
		apply.request.kind = PLAN_REQUEST_DONE;
		request_send_and_receive(walk.fd, &apply.request, &apply.answer);
		request_disconnect(walk.fd);
	}
	region_release_lock(&apply.lock);
	return walk.fd < 0 ? walk.fd : error ? error : walk.applied_object_count;
}

void apply_mark_unloaded_arenas(void)
{
	if (!region_acquire_lock_if_not_holder(&apply.lock))
		return;
	look_for_new_and_gone_objects();
	region_release_lock(&apply.lock);
}

void apply_reset_in_forked_child(void)
{
	atomic_store(&apply.lock, 0);
}

void apply_forget_seen_objects(void)
{
	apply.seen_count = 0;
}
