/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See launches.h. What a thread keeps of its stacks is found by the index of its block, as for
 * allocations (wrappers/memory/walk.c), and pins the view of the modules in the same way.
 *
 * Most stacks of a thread that launches differ in little more than their return addresses: they are
 * told apart by the same words of the stack. So a memo says which words these are, and a table has
 * the numbers of paths by what is in them and by the interpreted frames: a stack that was met
 * before costs one pass over its words, however many others there are.
 */
#include "launches/launches.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "common/leb128.h"
#include "common/syscalls.h"
#include "core/base/ticks.h"
#include "core/runtime.h"
#include "core/stacks/memo.h"
#include "kymo/gpu_records.h"
#include "launches/path_table.h"
#include "launches/waiting_python.h"

#define LAUNCH_THREADS_MAX (1u << 20) /* by index of a thread's block */
#define MEMO_PLACE_BITS    5u
#define MEMO_PLACES        (1u << MEMO_PLACE_BITS)
#define MEMOS_AT_PLACE     4u
#define KNOWN_PATHS        4096u /* of a thread, by hash: each in one of two places */

/* Numbers, ticks, stack end, counts; frames as differences. */
#define RECORD_BYTES_MAX ((5 + LAUNCH_PATH_FRAMES_MAX) * LEB128_BYTES_MAX)

struct known_path {
	uint64_t key;
	uint32_t number; /* 0: free */
};

struct launch_memo {
	uint64_t serial; /* tells it from what was in its place */
	struct stack_memo words;
};

struct launch_thread {
	uint32_t owner; /* internal id + 1 of the thread whose it is; indexes are reused */
	bool is_walking;
	struct unwind_scratch scratch;
	uint64_t frames[LAUNCH_PATH_FRAMES_MAX], native_frames[LAUNCH_PATH_FRAMES_MAX],
		stack_pointers[LAUNCH_PATH_FRAMES_MAX];
	uint64_t interpreted_items[2 * LAUNCH_PATH_FRAMES_MAX];
	uint64_t interpreter_thread; /* the interpreter's state of the thread, once it is known */
	struct waiting_python waiting;
	uint8_t record[RECORD_BYTES_MAX];
	uint64_t memo_serial;
	uint8_t next_memo[MEMO_PLACES]; /* to be replaced */
	struct stack_memo new_memo;
	struct launch_memo memos[MEMO_PLACES][MEMOS_AT_PLACE];
	struct known_path known_paths[KNOWN_PATHS];
};

static struct runtime *launch_runtime;
static _Atomic(struct launch_thread *) *_Atomic launch_threads;

void launches_remember_collector(struct runtime *runtime)
{
	launch_runtime = runtime;
}

static void *map_pages(uint64_t size, int fork_advice)
{
	void *memory = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_mmap_failed(memory))
		return NULL;
	sys_madvise(memory, size, fork_advice);
	return memory;
}

static bool create_tables(void)
{
	uint64_t size = LAUNCH_THREADS_MAX * sizeof(struct launch_thread *);
	void *threads, *none = NULL;

	if (atomic_load_explicit(&launch_threads, memory_order_acquire))
		return true;
	threads = path_table_create() ? map_pages(size, MADV_WIPEONFORK) : NULL;
	if (threads &&
	    !atomic_compare_exchange_strong((void *_Atomic *)&launch_threads, &none, threads))
		sys_munmap(threads, size);
	return threads != NULL;
}

/* What another thread left here says nothing of this one's stack. */
static void begin_thread_life(struct launch_thread *thread)
{
	for (uint32_t i = 0; thread->owner && i < MEMO_PLACES * MEMOS_AT_PLACE; i++)
		thread->memos[i / MEMOS_AT_PLACE][i % MEMOS_AT_PLACE].words.ip = 0;
	thread->scratch.frame_cache.generation = 0;
	thread->interpreter_thread = 0;
	thread->waiting = (struct waiting_python){0};
	thread->is_walking = false;
	thread->owner = kymo_thread->internal_id + 1;
}

static struct launch_thread *find_or_add_thread(void)
{
	_Atomic(struct launch_thread *) *place;
	struct launch_thread *thread;

	if (!kymo_thread && !runtime_find_or_add_this_thread())
		return NULL;
	if (!kymo_thread || kymo_thread->index >= LAUNCH_THREADS_MAX || !create_tables())
		return NULL;
	place = &atomic_load_explicit(&launch_threads, memory_order_acquire)[kymo_thread->index];
	thread = atomic_load_explicit(place, memory_order_relaxed);
	if (!thread) {
		thread = map_pages(sizeof(*thread), MADV_DONTFORK);
		if (!thread)
			return NULL;
		atomic_store_explicit(place, thread, memory_order_relaxed);
	}
	if (thread->owner != kymo_thread->internal_id + 1)
		begin_thread_life(thread);
	return thread;
}

void launches_reset_for_new_run(void)
{
	_Atomic(struct launch_thread *) *threads =
		atomic_load_explicit(&launch_threads, memory_order_acquire);

	/* Blocks that were used: behind them the table's memory is not there yet. */
	uint32_t end = threads ? atomic_load(&launch_runtime->threads.block_count) : 0;

	path_table_clear();
	for (uint32_t i = 0; i < end && i < LAUNCH_THREADS_MAX; i++) {
		struct launch_thread *thread =
			atomic_load_explicit(&threads[i], memory_order_acquire);

		if (!thread)
			continue;
		sys_madvise(thread, sizeof(*thread), MADV_DONTNEED);
	}
}

/* ---- records ---- */

/* Differences from one frame to the next are small where both are of one file. */
static uint32_t encode_record(uint8_t *record, uint32_t number, const struct sampled_stack *stack,
			      uint32_t waiting_count)
{
	uint8_t *at = leb128_write(record, number);
	uint64_t before = 0;

	at = write_fixed64_little_endian(at, ticks_now());
	at = leb128_write(at, stack->end);
	at = leb128_write(at, stack->count);
	for (uint32_t i = 0; i < stack->count; i++) {
		at = leb128_write_zigzag(at, (int64_t)(stack->frames[i] - before));
		before = stack->frames[i];
	}
	at = leb128_write(at, waiting_count);
	return (uint32_t)(at - record);
}

/* The same addresses are other code once a module is gone. */
static uint32_t find_or_write_path(struct launch_thread *thread, const struct sampled_stack *stack,
				   uint32_t waiting_count)
{
	struct path_identity path = path_identity_of_frames(
		stack->frames, stack->count,
		__atomic_load_n(&launch_runtime->modules.unmapped_count, __ATOMIC_RELAXED) << 8 |
			(uint64_t)stack->end);
	uint32_t number = path_table_find(path);

	if (number)
		return number;
	number = path_table_allocate_number();
	if (!number)
		return GPU_LAUNCH_PATH_TOO_MANY;
	if (!sampler_write_record_outside_handler(
		    kymo_thread, SPOOL_RECORD_LAUNCH_PATH, thread->record,
		    encode_record(thread->record, number, stack, waiting_count)))
		return GPU_LAUNCH_PATH_NOT_WRITTEN;
	path_table_add(path, number);
	return number;
}

/* ---- walks ---- */

static struct stack_request make_stack_request(struct launch_thread *thread,
					       const struct unwind_start_registers *caller)
{
	return (struct stack_request){.cache = launch_runtime->sampler.cache,
				      .registers = caller,
				      .bounds = &kymo_thread->stack_bounds,
				      .memory = {.frames = thread->frames,
						 .native_frames = thread->native_frames,
						 .stack_pointers = thread->stack_pointers,
						 .interpreted_items = thread->interpreted_items,
						 .maximum = LAUNCH_PATH_FRAMES_MAX,
						 .native_maximum = LAUNCH_PATH_FRAMES_MAX,
						 .scratch = &thread->scratch},
				      .sink = {sampler_write_record_outside_handler, kymo_thread},
				      .interpreter_thread = &thread->interpreter_thread};
}

static uint64_t make_key(const struct launch_memo *memo, uint64_t interpreted_hash)
{
	uint64_t key = stack_memo_hash_words(&memo->words) ^
		       (interpreted_hash + memo->serial) * 0xd6e8feb86659fd93ull;

	return key ^ key >> 32;
}

static uint32_t find_known_path(const struct launch_thread *thread,
				const struct unwind_start_registers *caller,
				uint64_t interpreted_hash, uint64_t generation)
{
	uint32_t place = stack_memo_hash_caller(caller->ip, caller->sp, MEMO_PLACE_BITS);

	for (uint32_t i = 0; i < MEMOS_AT_PLACE; i++) {
		const struct launch_memo *memo = &thread->memos[place][i];
		const struct known_path *known = thread->known_paths;
		uint64_t key;

		if (!stack_memo_has_registers(&memo->words, caller, generation))
			continue;
		key = make_key(memo, interpreted_hash);
		known += key % KNOWN_PATHS;
		if (known->key != key)
			known = &thread->known_paths[(key ^ 1) % KNOWN_PATHS];
		if (known->key == key && known->number)
			return known->number;
	}
	return 0;
}

/* The memo that looks at these words: there already, or in the place of another one. */
static const struct launch_memo *find_or_add_memo(struct launch_thread *thread,
						  const struct stack_memo *words)
{
	uint32_t place = stack_memo_hash_caller(words->ip, words->sp, MEMO_PLACE_BITS);
	struct launch_memo *memo = thread->memos[place];

	for (uint32_t i = 0; i < MEMOS_AT_PLACE; i++) {
		if (stack_memo_has_words_of(&memo[i].words, words))
			return &memo[i];
	}
	memo += thread->next_memo[place]++ % MEMOS_AT_PLACE;
	memo->words = *words;
	memo->serial = ++thread->memo_serial;
	return memo;
}

static void remember_path(struct launch_thread *thread, const struct stack_request *walked,
			  uint64_t interpreted_hash, uint64_t generation, uint32_t number)
{
	struct known_path *known = thread->known_paths;
	uint64_t key;

	if (!stack_memo_remember(&thread->new_memo, walked, generation))
		return;
	key = make_key(find_or_add_memo(thread, &thread->new_memo), interpreted_hash);
	known += key % KNOWN_PATHS;
	/* The last one stays; of two, either. */
	if (known->number && known->key != key && key >> 32 & 1)
		known = &thread->known_paths[(key ^ 1) % KNOWN_PATHS];
	*known = (struct known_path){key, number};
}

/* The next launches are to find it: who waits for a round is woken. */
static void ask_for_unknown_code(void)
{
	struct loaded_modules *modules = &launch_runtime->modules;

	if (!atomic_exchange_explicit(&modules->has_met_unknown_address, 1, memory_order_relaxed))
		background_wake(&launch_runtime->background);
}

/* Behind the thread's own frames those of the thread of Python that waits, if there are any: the
 * outermost ones where there is not room for all. Returns their number. */
static uint32_t append_waiting_frames(struct launch_thread *thread, struct sampled_stack *stack)
{
	uint32_t count = thread->waiting.count;

	if (stack->frames != thread->frames)
		memcpy(thread->frames, stack->frames, stack->count * sizeof(*stack->frames));
	stack->frames = thread->frames;
	if (count > LAUNCH_PATH_FRAMES_MAX - stack->count)
		count = LAUNCH_PATH_FRAMES_MAX - stack->count;
	memcpy(thread->frames + stack->count, thread->waiting.frames,
	       count * sizeof(*thread->frames));
	stack->count += count;
	return count;
}

/* Threads that are not on the background thread's list yet share a pin. */
static _Atomic uint32_t *get_view_pin(struct thread *thread)
{
	return __atomic_load_n(&thread->started, __ATOMIC_ACQUIRE)
		       ? &thread->is_walked_outside_handler
		       : &launch_runtime->walkers;
}

/* is_waiting: the hash is that of frames of another thread. */
static uint32_t walk_and_find_path(struct launch_thread *thread, struct stack_request *request,
				   uint64_t interpreted_hash, bool is_waiting)
{
	struct sampled_stack stack = {&request->registers->ip, 1, SPOOL_STACK_UNSUPPORTED,
				      SPOOL_INTERPRETER_STATE_NONE};
	_Atomic uint32_t *pin = get_view_pin(kymo_thread);
	uint32_t number, waiting_count = 0;
	uint64_t generation;

	/* seq_cst: before the view is read; the background thread replaces it, then looks here */
	atomic_fetch_add_explicit(pin, 1, memory_order_seq_cst);
	request->view = modules_get_unwind_view(&launch_runtime->modules);
	generation = request->view ? request->view->generation : 0;
	if (request->view)
		stack_walk(request, &stack);
	atomic_fetch_sub_explicit(pin, 1, memory_order_release);
	if (thread->scratch.met_unknown_address)
		ask_for_unknown_code();
	sampler_count_interpreted_losses(&launch_runtime->spool, request);
	if (is_waiting && !request->has_interpreted_frames)
		waiting_count = append_waiting_frames(thread, &stack);
	number = find_or_write_path(thread, &stack, waiting_count);
	/* The interpreter may have come or gone in between. */
	if (number <= GPU_LAUNCH_PATH_LAST && request->view &&
	    (interpreted_hash != 0 && !is_waiting) == request->has_interpreted_frames)
		remember_path(thread, request, interpreted_hash, generation, number);
	return number;
}

static uint32_t find_path_of_thread(struct launch_thread *thread,
				    const struct unwind_start_registers *caller)
{
	struct stack_request request = make_stack_request(thread, caller);
	uint64_t interpreted_hash =
		stack_may_be_interpreted() ? stack_hash_interpreted_frames(&request) : 0;
	bool is_waiting = false;
	uint32_t number;

	if (interpreted_hash) {
		waiting_python_note_launch(kymo_thread);
	} else if (stack_may_be_interpreted()) {
		waiting_python_refresh(&thread->waiting, kymo_thread,
				       launch_runtime->sampler.tick_hz, thread->scratch.window,
				       request.sink);
		interpreted_hash = thread->waiting.hash;
		is_waiting = interpreted_hash != 0;
	}
	/* A generation that is just being replaced is that of a moment before. */
	number = find_known_path(
		thread, caller, interpreted_hash,
		__atomic_load_n(&launch_runtime->modules.generation, __ATOMIC_RELAXED));
	return number ? number : walk_and_find_path(thread, &request, interpreted_hash, is_waiting);
}

uint32_t launch_find_path(const struct unwind_start_registers *caller)
{
	struct launch_thread *thread;
	uint32_t number;

	if (!launch_runtime || !runtime_is_active())
		return GPU_LAUNCH_PATH_NO_COLLECTOR;
	thread = find_or_add_thread();
	if (!thread)
		return GPU_LAUNCH_PATH_UNKNOWN_THREAD;
	/* A handler of the program's launches while its thread's stack is walked for another. */
	if (thread->is_walking)
		return GPU_LAUNCH_PATH_NESTED;
	thread->is_walking = true;
	atomic_signal_fence(memory_order_seq_cst);
	number = find_path_of_thread(thread, caller);
	atomic_signal_fence(memory_order_seq_cst);
	thread->is_walking = false;
	return number;
}
