/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See wall_sampler.h.
 */
#include "core/wall_sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/futex.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "core/text.h"
#include "core/ticks.h"

#define SLAB_WATCHES  64u
#define SLABS_MAX     65536u
#define MERGE_NS      100000000ull /* a wait that lasts is reported this often */
#define SHARE_MAXIMUM 5            /* a sweep over all threads takes at most a fifth of a core */
#define FRAMES_MAX    512
#define FINISH_NS     100000000ull
#define CLOSED_NS     1000000000ull /* nothing to do: it is woken */

/* What is known of one thread between two looks. */
struct wall_watch {
	uint64_t identity; /* of the thread that the block belonged to; 0: of none */
	bool waiting;      /* frames are those of the wait under way */
	uint32_t count;
	enum spool_stack_end end;
	uint64_t last_ns, cpu_ns;
	uint64_t owed_ns; /* real time off the CPU that no sample stands for yet */
	uint64_t since_ns;
	uint64_t pc, sp;
	uint64_t frames[FRAMES_MAX];
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static bool take_hex(const char **at, uint64_t *ret)
{
	uint64_t value = 0;
	const char *start;

	while (**at == ' ')
		++*at;
	if ((*at)[0] == '0' && (*at)[1] == 'x')
		*at += 2;
	for (start = *at;; ++*at) {
		unsigned char c = (unsigned char)**at;
		if (c >= '0' && c <= '9')
			value = value << 4 | (c - (unsigned)'0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (c - (unsigned)'a' + 10);
		else
			break;
	}
	*ret = value;
	return *at != start;
}

enum look { LOOK_GONE, LOOK_RUNNING, LOOK_WAITING };

/* "running", "number arg0…arg5 sp pc", or "-1 sp pc" when it waits outside a system call. */
static enum look read_registers(uint32_t tid, uint64_t *ret_sp, uint64_t *ret_pc)
{
	char path[64], buffer[256];
	struct text text = text_on(path, sizeof(path));
	const char *at = buffer;
	uint64_t value;
	long fd, length;

	text_string(&text, "/proc/self/task/");
	text_unsigned(&text, tid);
	text_string(&text, "/syscall");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return LOOK_GONE;
	length = sys_read((int)fd, buffer, sizeof(buffer) - 1);
	sys_close((int)fd);
	if (length <= 0)
		return LOOK_GONE;
	buffer[length] = 0;
	if (buffer[0] == 'r')
		return LOOK_RUNNING;
	if (buffer[0] == '-') {
		at += 2;
	} else {
		while (*at && *at != ' ')
			at++;
		for (int i = 0; i < 6; i++) {
			if (!take_hex(&at, &value))
				return LOOK_GONE;
		}
	}
	return take_hex(&at, ret_sp) && take_hex(&at, ret_pc) ? LOOK_WAITING : LOOK_GONE;
}

/* /proc/self/task/T/stat: "pid (name) state …". Costs 10 us: only asked when the clock stands still
 * and the thread does not wait in a system call. */
static bool is_runnable(uint32_t tid)
{
	char path[64], buffer[512];
	struct text text = text_on(path, sizeof(path));
	const char *last = NULL;
	long fd, length;

	text_string(&text, "/proc/self/task/");
	text_unsigned(&text, tid);
	text_string(&text, "/stat");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	length = sys_read((int)fd, buffer, sizeof(buffer) - 1);
	sys_close((int)fd);
	buffer[length > 0 ? length : 0] = 0;
	for (const char *at = buffer; *at; at++) {
		if (*at == ')')
			last = at;
	}
	return last && last[1] == ' ' && last[2] == 'R';
}

/* Writes the time owed as one sample of the thread, in a span of its own. */
static void report(struct runtime *runtime, const struct thread *thread, struct wall_watch *watch,
		   enum spool_sample_source source, uint64_t now)
{
	struct thread *stream = runtime->wall_sampler.stream;
	struct sampler_stack stack = {watch->frames, watch->count, watch->end};
	static uint64_t nowhere[1];

	if (source == SPOOL_SOURCE_RUNNABLE || !watch->count) {
		nowhere[0] = watch->count ? watch->frames[0] : thread->entry;
		stack = (struct sampler_stack){nowhere, 1, SPOOL_STACK_NOT_WALKED};
	}
	if (stream->internal_id != thread->internal_id || !stream->chunk) {
		stream->internal_id = thread->internal_id;
		stream->tid = thread->tid;
		sampler_switch_stream(stream, ticks_now());
	}
	if (sampler_write(stream, &stack, source, ticks_now(), watch->owed_ns,
			  modules_stale(&runtime->modules), NULL))
		watch->owed_ns = 0;
	watch->since_ns = now;
}

static void walk(struct runtime *runtime, struct wall_watch *watch)
{
	static const struct unwind_bounds none;
	struct thread *stream = runtime->wall_sampler.stream;
	struct unwind_registers registers = {.ip = watch->pc, .sp = watch->sp};
	uint32_t most =
		runtime->threads.max_depth < FRAMES_MAX ? runtime->threads.max_depth : FRAMES_MAX;

	/* The view stays while our own mark is set, as in a handler. */
	atomic_store(&stream->in_handler, 1);
	stream->scratch.window_size = 0;
	watch->count =
		unwind_stack(modules_view(&runtime->modules), runtime->sampling.cache, &registers,
			     &none, &stream->scratch, watch->frames, most, &watch->end);
	atomic_store(&stream->in_handler, 0);
}

/* What a sampler saw before is nothing to the next one: a forked child would have its parent's wait
 * as its own. */
static uint64_t identity_of(const struct wall_sampler *sampler, const struct thread *thread)
{
	return (uint64_t)sampler->starts << 32 | (thread->internal_id + 1);
}

static void look_at(struct runtime *runtime, struct thread *thread, struct wall_watch *watch,
		    uint64_t now)
{
	uint64_t cpu = ticks_thread_cpu_ns(thread->tid), ran, passed, sp = 0, pc = 0;
	uint64_t identity = identity_of(&runtime->wall_sampler, thread);
	enum look look;

	if (watch->identity != identity) {
		*watch = (struct wall_watch){
			.identity = identity, .last_ns = now, .cpu_ns = cpu, .since_ns = now};
		return;
	}
	ran = cpu - watch->cpu_ns;
	passed = now - watch->last_ns;
	watch->cpu_ns = cpu;
	watch->last_ns = now;
	watch->owed_ns += passed > ran ? passed - ran : 0;
	if (ran == 0 && watch->waiting) { /* the same wait goes on */
		if (now - watch->since_ns >= MERGE_NS)
			report(runtime, thread, watch, SPOOL_SOURCE_WALL, now);
		return;
	}
	if (watch->waiting) { /* it ended; the time since the last look belongs to it or to what
				 follows */
		watch->waiting = false;
		report(runtime, thread, watch, SPOOL_SOURCE_WALL, now);
	}
	look = read_registers(thread->tid, &sp, &pc);
	if (look == LOOK_RUNNING && ran == 0 && watch->owed_ns && is_runnable(thread->tid)) {
		report(runtime, thread, watch, SPOOL_SOURCE_RUNNABLE, now);
		return;
	}
	if (look != LOOK_WAITING)
		return;
	watch->pc = pc;
	watch->sp = sp;
	walk(runtime, watch);
	watch->since_ns = now;
	/* The stack stood still while it was read only if the clock did too. */
	watch->waiting = ticks_thread_cpu_ns(thread->tid) == cpu;
	if (!watch->waiting)
		watch->count = 0;
}

static void report_owed(struct runtime *runtime, const struct thread *thread,
			struct wall_watch *watch)
{
	if (watch->identity == identity_of(&runtime->wall_sampler, thread) && watch->waiting &&
	    watch->owed_ns)
		report(runtime, thread, watch, SPOOL_SOURCE_WALL, watch->last_ns);
}

/* The watch of a block, made on first use; NULL when memory is short. */
static struct wall_watch *watch_of(struct wall_sampler *sampler, uint32_t index)
{
	void *slab;

	if (index / SLAB_WATCHES >= SLABS_MAX)
		return NULL;
	if (!sampler->watches[index / SLAB_WATCHES]) {
		slab = sys_mmap(NULL, SLAB_WATCHES * sizeof(struct wall_watch),
				PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);
		if (sys_failed(slab))
			return NULL;
		sampler->watches[index / SLAB_WATCHES] = slab;
	}
	return &sampler->watches[index / SLAB_WATCHES][index % SLAB_WATCHES];
}

/* Looks at every thread once; returns how long that took. */
static uint64_t sweep(struct runtime *runtime)
{
	struct wall_sampler *sampler = &runtime->wall_sampler;
	uint64_t start = ticks_clock_ns(CLOCK_MONOTONIC);
	uint32_t count = atomic_load(&runtime->threads.block_count);

	for (uint32_t i = 0; i < count; i++) {
		struct thread *thread = threads_at(&runtime->threads, i);
		struct wall_watch *watch;
		if (!thread ||
		    atomic_load_explicit(&thread->state, memory_order_acquire) != THREAD_LIVE ||
		    thread->how == THREAD_INTERNAL || thread->sealed ||
		    !options_tids_allow(&runtime->options.wall.tids, thread->sequent_id))
			continue;
		watch = watch_of(sampler, i);
		if (!watch)
			continue;
		if (atomic_load_explicit(&thread->excluded, memory_order_relaxed)) {
			report_owed(runtime, thread, watch);
			watch->identity = 0;
			continue;
		}
		look_at(runtime, thread, watch, start);
	}
	return ticks_clock_ns(CLOCK_MONOTONIC) - start;
}

static void report_rest(struct runtime *runtime)
{
	uint32_t count = atomic_load(&runtime->threads.block_count);

	for (uint32_t i = 0; i < count; i++) {
		struct thread *thread = threads_at(&runtime->threads, i);
		struct wall_watch *watch = watch_of(&runtime->wall_sampler, i);
		if (thread && watch)
			report_owed(runtime, thread, watch);
	}
}

/* The window closed: what passes until it opens again is nobody's. */
static void forget_all(struct runtime *runtime)
{
	uint32_t count = atomic_load(&runtime->threads.block_count);

	report_rest(runtime);
	for (uint32_t i = 0; i < count; i++) {
		struct wall_watch *watch = watch_of(&runtime->wall_sampler, i);
		if (watch)
			watch->identity = 0;
	}
}

static void run(void *argument)
{
	struct runtime *runtime = argument;
	struct wall_sampler *sampler = &runtime->wall_sampler;
	uint64_t period = runtime->options.wall.period, random = ticks_now();
	uint32_t stop = 0;
	bool was_open = false;

	own_thread_known(&sampler->thread, &runtime->threads, sampler->own);
	while (stop != 1) {
		uint64_t pause = period / 2 + next_random(&random) % (period + 1), taken = 0;
		uint32_t changes = atomic_load(&sampler->changes);
		bool open = runtime_active() && atomic_load(&runtime->sampling.wall_open);
		own_thread_follow_credentials(&sampler->thread);
		stop = atomic_load(&sampler->stop);
		if (open)
			taken = sweep(runtime);
		else if (was_open && runtime_active())
			forget_all(runtime);
		was_open = open;
		if (!open)
			pause = CLOSED_NS;
		if (stop == 2 &&
		    runtime_active()) { /* the process ends: what is owed now, then go on */
			report_rest(runtime);
			atomic_store(&sampler->stop, 3);
			futex_wake(&sampler->stop);
		}
		if (pause < taken * SHARE_MAXIMUM)
			pause = taken * SHARE_MAXIMUM;
		/* what came in the meantime makes the word differ: no sleep */
		futex_wait(&sampler->changes, changes, pause);
	}
}

int wall_sampler_start(struct runtime *runtime)
{
	struct wall_sampler *sampler = &runtime->wall_sampler;

	sampler->stop = 0;
	sampler->stream = NULL;
	sampler->starts++;
	if (!sampler->watches) {
		sampler->watches = sys_mmap(NULL, SLABS_MAX * sizeof(struct wall_watch *),
					    PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (sys_failed(sampler->watches)) {
			sampler->watches = NULL;
			return -ENOMEM;
		}
	}
	sampler->stream = threads_allocate(&runtime->threads, THREAD_INTERNAL, THREADS_NONE);
	sampler->own = threads_allocate(&runtime->threads, THREAD_INTERNAL, THREADS_NONE);
	if (!sampler->stream || !sampler->own)
		return -ENOMEM;
	return own_thread_start_known(&sampler->thread, "kymo-wall", run, runtime,
				      &runtime->threads);
}

void wall_sampler_finish(struct runtime *runtime)
{
	struct wall_sampler *sampler = &runtime->wall_sampler;

	if (!sampler->stream)
		return;
	atomic_store(&sampler->stop, 2);
	wall_sampler_wake(sampler);
	futex_wait(&sampler->stop, 2, FINISH_NS);
}

void wall_sampler_wake(struct wall_sampler *sampler)
{
	atomic_fetch_add(&sampler->changes, 1);
	futex_wake(&sampler->changes);
}
