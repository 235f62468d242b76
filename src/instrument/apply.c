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
#include "core/text.h"
#include "core/ticks.h"
#include "instrument/arena.h"
#include "instrument/request.h"
#include "instrument/rewritten.h"
#include "instrument/text_pages.h"
#include "regions/names.h"

#define MODULES_MAX  8192u
#define STRINGS_SIZE (1u << 20)
#define PLACEMENTS   3 /* places for arenas that the planner offers */
#define OWN_PREFIX   "libkymo"
#define RECORD_MAX   16384u

/* A loaded object as it was seen. */
struct seen_module {
	uint64_t bias;
	const void *headers; /* its program headers, as mapped */
	uint32_t walk;       /* that it was last met in */
};

static struct {
	_Atomic uint32_t lock;
	struct seen_module *seen;
	uint32_t seen_count, walks;
	char *strings; /* paths, for the life of the process */
	uint32_t strings_used;
	struct plan_request *noted; /* MODULES_MAX; what apply_noted() will ask */
	uint32_t noted_count;
	struct plan_request request;
	struct plan_answer answer;
	uint8_t record[RECORD_MAX];
} apply;

/* What is done with each object. */
struct apply_walk {
	struct runtime *runtime;
	enum apply_way way;
	int fd, applied;
	uint32_t objects;
	bool notes; /* there is nobody to ask yet */
};

static bool make_room(void)
{
	if (!apply.seen)
		apply.seen = region_map(MODULES_MAX * sizeof(*apply.seen));
	if (!apply.strings)
		apply.strings = region_map(STRINGS_SIZE);
	return apply.seen && apply.strings;
}

static const char *keep(const char *string)
{
	char *kept = apply.strings + apply.strings_used;
	struct text text = text_on(kept, STRINGS_SIZE - apply.strings_used);

	text_string(&text, string);
	apply.strings_used +=
		(uint32_t)text.length + (apply.strings_used + text.length + 1 < STRINGS_SIZE);
	return kept;
}

static bool was_seen(const struct dl_phdr_info *info)
{
	for (uint32_t i = 0; i < apply.seen_count; i++) {
		if (apply.seen[i].bias != info->dlpi_addr ||
		    apply.seen[i].headers != info->dlpi_phdr)
			continue;
		apply.seen[i].walk = apply.walks;
		return true;
	}
	return false;
}

static void note_seen(const struct dl_phdr_info *info)
{
	if (apply.seen_count < MODULES_MAX)
		apply.seen[apply.seen_count++] =
			(struct seen_module){info->dlpi_addr, info->dlpi_phdr, apply.walks};
}

/* After a walk over all objects. What was unloaded may come again, and another file may come to its
 * place. */
static void forget_unloaded(void)
{
	uint32_t kept = 0, count = arena_count();

	for (uint32_t i = 0; i < apply.seen_count; i++) {
		if (apply.seen[i].walk == apply.walks)
			apply.seen[kept++] = apply.seen[i];
	}
	apply.seen_count = kept;
	for (uint32_t i = 0; i < count; i++) {
		if (arena_at(i)->met != apply.walks)
			arena_at(i)->gone = true;
	}
}

static int find_unseen(struct dl_phdr_info *info, size_t size, void *context)
{
	uint32_t count = arena_count();
	bool *unseen = context;

	(void)size;
	*unseen = !was_seen(info) || *unseen;
	for (uint32_t i = 0; i < count; i++) {
		if (arena_at(i)->bias == info->dlpi_addr)
			arena_at(i)->met = apply.walks;
	}
	return 0;
}

/* Is there anything new? */
static bool look_around(void)
{
	bool unseen = false;

	apply.walks++;
	dl_iterate_phdr(find_unseen, &unseen);
	forget_unloaded();
	return unseen;
}

/* ---- what is asked ---- */

static void find_build_id(const struct dl_phdr_info *info, struct plan_request *request)
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
static bool is_library(const struct dl_phdr_info *info)
{
	return info->dlpi_name && info->dlpi_name[0];
}

/* The executable's name is the kernel's to tell, those of others may be relative. Which file it is,
 * the build-id says; where there is none, what is mapped. */
static bool find_file(const struct dl_phdr_info *info, struct plan_request *request)
{
	struct text text = text_on(request->path, sizeof(request->path));
	bool named = is_library(info);
	long length;

	find_build_id(info, request);
	request->bias = info->dlpi_addr;
	request->device = request->inode = 0;
	if ((named && info->dlpi_name[0] != '/') || !request->build_id_size)
		return text_pages_file((uint64_t)(uintptr_t)info->dlpi_phdr, request->path,
				       sizeof(request->path), &request->device, &request->inode);
	if (named) {
		text_string(&text, info->dlpi_name);
		return true;
	}
	length = sys_call3(SYS_readlink, (long)"/proc/self/exe", (long)request->path,
			   (long)sizeof(request->path) - 1);
	request->path[length > 0 ? length : 0] = 0;
	return length > 0;
}

static bool is_own(const char *path)
{
	const char *name = path, *prefix = OWN_PREFIX;

	for (const char *at = path; *at; at++)
		name = *at == '/' ? at + 1 : name;
	while (*prefix && *prefix == *name) {
		prefix++;
		name++;
	}
	return !*prefix;
}

/* ---- what is done with the answer ---- */

static void *map_file(const char *path, uint64_t *ret_size, int *ret_fd)
{
	struct stat status;
	long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	void *bytes = NULL;

	if (fd < 0)
		return NULL;
	if (!sys_call2(SYS_fstat, fd, (long)&status) && status.st_size > 0)
		bytes = sys_mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, (int)fd, 0);
	*ret_size = (uint64_t)status.st_size;
	if (!bytes || sys_failed(bytes) || !ret_fd)
		sys_close((int)fd);
	else
		*ret_fd = (int)fd;
	return bytes && !sys_failed(bytes) ? bytes : NULL;
}

static bool is_plan(const struct plan_header *plan, uint64_t size)
{
	static const char magic[8] = PLAN_MAGIC;

	for (unsigned i = 0; size >= sizeof(*plan) && i < sizeof(magic); i++) {
		if (plan->magic[i] != magic[i])
			return false;
	}
	return size >= sizeof(*plan) && plan->version == PLAN_VERSION && plan->plan_size <= size;
}

/* Stubs whose calls are counted have a jump to the counting part where they are entered. */
static void set_modes(const struct arena *arena)
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

void apply_record(const struct arena *arena)
{
	uint8_t *at = apply.record;
	const char *const paths[] = {arena->plan_path, arena->module_path};

	at = leb128_put_fixed(at, ticks_now());
	at = leb128_put(at, arena->first_id);
	at = leb128_put(at, arena->count);
	at = leb128_put_fixed(at, arena->bias);
	at = leb128_put_fixed(at, (uint64_t)(uintptr_t)arena->data);
	at = leb128_put_fixed(at, arena->size);
	for (unsigned i = 0; i < 2; i++) {
		uint32_t length = 0;

		while (paths[i][length] && length < OPTIONS_PATH_SIZE)
			length++;
		at = leb128_put(at, length);
		for (uint32_t j = 0; j < length; j++)
			*at++ = (uint8_t)paths[i][j];
	}
	if (!names_write(SPOOL_RECORD_INSTRUMENTED, apply.record, (uint32_t)(at - apply.record)))
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_INSTRUMENT);
}

/* The arena is there, the gate closed or open as all are: now the jumps. */
static int commit(const struct apply_walk *walk, const struct arena *arena)
{
	int error;

	if (walk->way == APPLY_HERE)
		return text_pages_patch(arena);
	apply.request.kind = PLAN_REQUEST_COMMIT;
	error = request_ask(walk->fd, &apply.request, &apply.answer);
	return error ? error : apply.answer.status;
}

/* kymo attached before: stubs and ids are as they were then. */
static struct arena *take_again(const struct arena *made)
{
	struct arena *arena = arena_again(made->plan, apply.request.bias);

	if (!arena)
		return NULL;
	arena->modes = made->modes;
	arena->plan_path = keep(apply.answer.plan);
	return arena;
}

static struct arena *make_arena(struct arena *made, uint64_t plan_size, uint64_t modes_size,
				int plan_fd, int *ret_error)
{
	struct arena *arena;

	*ret_error = -EBADMSG;
	if (!is_plan(made->plan, plan_size) || !made->modes || modes_size < made->count)
		return NULL;
	arena = take_again(made);
	*ret_error = arena ? 0 : arena_map(made->plan, plan_fd, apply.request.bias, made);
	if (arena || *ret_error)
		return arena;
	made->plan_path = keep(apply.answer.plan);
	made->module_path = keep(apply.request.path);
	arena = arena_add(made);
	if (!arena)
		*ret_error = -ENOSPC;
	return arena;
}

static int instrument(const struct apply_walk *walk)
{
	struct arena made = {0}, *arena;
	uint64_t plan_size = 0, modes_size = 0;
	int plan_fd = -1, error;

	made.plan = map_file(apply.answer.plan, &plan_size, &plan_fd);
	if (!made.plan)
		return -ENOENT;
	made.modes = map_file(apply.answer.modes, &modes_size, NULL);
	made.count = (uint32_t)made.plan->functions.count;
	arena = make_arena(&made, plan_size, modes_size, plan_fd, &error);
	sys_close(plan_fd);
	if (!arena) {
		sys_munmap((void *)(uintptr_t)made.plan, plan_size);
		if (made.modes)
			sys_munmap((void *)(uintptr_t)made.modes, modes_size);
		return error;
	}
	set_modes(arena);
	apply_record(arena);
	return commit(walk, arena);
}

/* The request says which object. */
static int ask_and_instrument(struct apply_walk *walk)
{
	int error = -EEXIST;

	apply.request.pid = kymo_runtime.pid;
	for (uint32_t placement = 0; error == -EEXIST && placement < PLACEMENTS; placement++) {
		apply.request.kind = PLAN_REQUEST_MODULE;
		apply.request.placement = placement;
		error = request_ask(walk->fd, &apply.request, &apply.answer);
		if (error)
			return error;
		error = apply.answer.status ? apply.answer.status : instrument(walk);
		if (apply.answer.status)
			return 0;
	}
	if (error)
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_INSTRUMENT);
	else
		walk->applied++;
	return 0;
}

/* ---- objects ---- */

/* Objects that were rewritten bring all that is asked for otherwise. */
static bool take_rewritten(struct apply_walk *walk, const struct dl_phdr_info *info)
{
	struct arena made, *arena = NULL;
	bool foreign;

	if (!rewritten_find(info, &made, &foreign))
		return false;
	if (!foreign && make_room() && find_file(info, &apply.request)) {
		arena = arena_find((uint64_t)(uintptr_t)made.data);
		made.plan_path = made.module_path = keep(apply.request.path);
		if (!arena && (!is_library(info) || rewritten_keep(&made)) && !arena_adopt(&made))
			arena = arena_add(&made);
	}
	if (arena) {
		apply_record(arena);
		walk->applied++;
	} else
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_INSTRUMENT);
	if (apply.seen)
		note_seen(info);
	return true;
}

static int each_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct apply_walk *walk = context;

	(void)size;
	walk->objects++;
	if (was_seen(info) || take_rewritten(walk, info) || (walk->fd < 0 && !walk->notes))
		return 0;
	note_seen(info);
	if (!find_file(info, &apply.request) || is_own(apply.request.path))
		return 0;
	if (walk->fd >= 0)
		return ask_and_instrument(walk);
	if (apply.noted_count < MODULES_MAX)
		apply.noted[apply.noted_count++] = apply.request;
	return 0;
}

int apply_loaded(struct runtime *runtime, enum apply_way way)
{
	const char *path = runtime->options.instrument.socket;
	struct apply_walk walk = {.runtime = runtime, .way = way, .fd = -1};
	int error = 0;

	if (!region_lock(&apply.lock))
		return 0;
	if (!look_around()) {
		region_unlock(&apply.lock);
		return 0;
	}
	if (path && *path) {
		walk.fd = make_room() ? request_begin(path) : -ENOMEM;
		error = walk.fd < 0 ? walk.fd : 0;
	}
	if (!error)
		error = dl_iterate_phdr(each_object, &walk);
	if (walk.fd >= 0) {
		apply.request.kind = PLAN_REQUEST_DONE;
		request_ask(walk.fd, &apply.request, &apply.answer);
		request_end(walk.fd);
	}
	region_unlock(&apply.lock);
	return error < 0 ? error : walk.applied;
}

/* Without a descriptor, objects are noted. */
void apply_note(struct runtime *runtime)
{
	struct apply_walk walk = {
		.runtime = runtime, .way = APPLY_OUTSIDE, .fd = -1, .notes = true};

	if (!region_lock(&apply.lock))
		return;
	if (!apply.noted)
		apply.noted = region_map(MODULES_MAX * sizeof(*apply.noted));
	apply.noted_count = 0;
	look_around();
	if (apply.noted && make_room())
		dl_iterate_phdr(each_object, &walk);
	region_unlock(&apply.lock);
}

int apply_noted(struct runtime *runtime)
{
	struct apply_walk walk = {.runtime = runtime, .way = APPLY_OUTSIDE};
	int error = 0;

	if (!region_lock(&apply.lock))
		return 0;
	walk.fd = request_begin(runtime->options.instrument.socket);
	for (uint32_t i = 0; walk.fd >= 0 && !error && i < apply.noted_count; i++) {
		apply.request = apply.noted[i];
		error = ask_and_instrument(&walk);
	}
	apply.noted_count = 0;
	if (walk.fd >= 0) {
		apply.request.kind = PLAN_REQUEST_DONE;
		request_ask(walk.fd, &apply.request, &apply.answer);
		request_end(walk.fd);
	}
	region_unlock(&apply.lock);
	return walk.fd < 0 ? walk.fd : error ? error : walk.applied;
}

void apply_unloaded(void)
{
	if (!region_lock(&apply.lock))
		return;
	look_around();
	region_unlock(&apply.lock);
}

void apply_forked(void)
{
	atomic_store(&apply.lock, 0);
}

void apply_forget(void)
{
	apply.seen_count = 0;
}
