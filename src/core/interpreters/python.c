/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The frames of a thread of CPython.
 *
 * Why it may read directly: the thread that a signal interrupted keeps its own frames, and frames
 * keep their code objects. That holds wherever the chain of frames is whole, which it is but for a
 * few instructions at the beginning of the evaluation loop, where a record of its C frame is
 * reachable before it is filled in (3.11, 3.12). A walk that finds the thread there reads directly
 * only what is in the thread's own state, stack and stack of frames, which are there whatever they
 * hold; it knows code by its address alone, and asks the kernel for all else, a few times. A walk
 * of another thread asks the kernel for everything. The first frame must lie in the thread's own
 * stack of frames, or is asked for; code objects must be known ones, or are. While the interpreter
 * ends, threads that it has forgotten are left alone.
 */
#include "core/interpreters/python_walk.h"

#include <string.h>

#define FRAMES_MAX 100000u /* no chain is longer: one that goes round is left */
#define EVALUATE_BEGINNING_BYTES                                                                   \
	0x200u /* of the evaluation loop, up to where its record is whole */
#define OWNER_GENERATOR          1u
#define OWNER_SHIM_FIRST         3u
#define FRAME_TAG_BITS           3u   /* of pointers to objects (3.14) */
#define THREAD_STATE_SIZE        512u /* about: the outermost record is in it */
#define CHUNKS_MAX               4096u
#define CHECKED_READS_IN_HANDLER 64u
#define CHUNK_PREVIOUS_OFFSET    0u /* _PyStackChunk */
#define CHUNK_SIZE_OFFSET        8u
#define POSITION_MAX             ((1u << SPOOL_INTERPRETED_POSITION_BITS) - 1)

struct python_frame {
	uint64_t code, previous;
	uint64_t generator; /* or coroutine that the frame is of; 0: of none */
	uint32_t position;  /* as in the spool: unit plus one */
	bool is_shim, is_entry;
	bool is_left; /* or not begun; what it needs no more may be gone */
};

/* ---- memory ---- */

static bool address_is_in_own_stack(const struct native_stack *stack, uint64_t address)
{
	return !stack->tid && stack->count && address >= stack->stack_pointers[0] &&
	       address < stack->stack_high;
}

/* Of the thread's own state. */
static uint64_t read_state_word(const struct python_walk *python, uint32_t offset)
{
	uint64_t word;

	memory_read_directly(python->thread + offset, &word, sizeof(word));
	return word;
}

static bool address_is_in_chunk(uint64_t chunk, uint64_t address)
{
	uint64_t size;

	memory_read_directly(chunk + CHUNK_SIZE_OFFSET, &size, sizeof(size));
	return address > chunk && address - chunk < size;
}

/* Is it in the thread's own stack of frames? Its chunks are looked at from where the last frame
 * was: a caller's is the same or an earlier one. */
static bool address_is_in_frame_stack(struct python_walk *python, uint64_t address)
{
	uint64_t chunk;

	if (!python->layout->thread_chunk || python->walk->stack->tid)
		return false;
	if (!python->chunk)
		python->chunk = read_state_word(python, python->layout->thread_chunk);
	chunk = python->chunk;
	for (uint32_t i = 0; i < CHUNKS_MAX && memory_is_plausible_pointer(chunk); i++) {
		if (address_is_in_chunk(chunk, address)) {
			python->chunk = chunk;
			return true;
		}
		memory_read_directly(chunk + CHUNK_PREVIOUS_OFFSET, &chunk, sizeof(chunk));
	}
	return false;
}

static bool address_is_in_own_state(const struct python_walk *python, uint64_t address)
{
	return !python->walk->stack->tid && address - python->thread < THREAD_STATE_SIZE;
}

static bool read_memory(struct python_walk *python, uint64_t address, void *to, size_t size)
{
	if (!python->walk->trusts_memory && !address_is_in_own_state(python, address) &&
	    !address_is_in_own_stack(python->walk->stack, address) &&
	    !address_is_in_frame_stack(python, address))
		return interpreted_walk_read_checked(python->walk, address, to, size);
	memory_read_directly(address, to, size);
	return true;
}

/* ---- frames ---- */

INTERPRETED_UNSANITIZED
static inline uint64_t get_frame_word(const uint8_t *words, uint32_t offset)
{
	return *(const uint64_t *)(const void *)(words + offset);
}

INTERPRETED_UNSANITIZED
static inline uint32_t get_position(const struct python_layout *layout, const uint8_t *words,
				    uint64_t code)
{
	uint64_t at = get_frame_word(words, layout->frame_position), units;
	int32_t last = (int32_t)at;

	if (layout->position_kind != PYTHON_POSITION_POINTER) {
		if (last < 0)
			return 0;
		units = (uint32_t)last / (layout->position_kind == PYTHON_POSITION_BYTES ? 2 : 1);
	} else if (at < code + layout->code_instructions) {
		return 0;
	} else {
		units = (at - code - layout->code_instructions) / 2;
	}
	return units + 1 < POSITION_MAX ? (uint32_t)units + 1 : POSITION_MAX;
}

/* `words`: the frame itself, or what was read of it. */
INTERPRETED_UNSANITIZED
static inline void get_frame(const struct python_layout *layout, uint64_t address,
			     const uint8_t *words, struct python_frame *ret)
{
	uint8_t owner = layout->frame_owner ? words[layout->frame_owner] : 0;

	ret->is_shim = layout->chain == PYTHON_CHAIN_SHIMS && owner >= OWNER_SHIM_FIRST;
	ret->is_entry = layout->chain == PYTHON_CHAIN_CALL_A_FRAME ||
			(layout->frame_is_entry && words[layout->frame_is_entry]);
	ret->code = get_frame_word(words, layout->frame_code) & ~(uint64_t)FRAME_TAG_BITS;
	ret->previous = get_frame_word(words, layout->frame_previous);
	ret->position = get_position(layout, words, ret->code);
	ret->generator = layout->frame_generator    ? get_frame_word(words, layout->frame_generator)
			 : owner == OWNER_GENERATOR ? address - layout->generator_frame
						    : 0;
	ret->is_left = layout->frame_stack_top &&
		       (int32_t)get_frame_word(words, layout->frame_stack_top) >= 0;
}

static bool read_frame(struct python_walk *python, uint64_t address, struct python_frame *ret)
{
	uint64_t words[PYTHON_FRAME_SIZE_MAX / 8];

	if (!memory_is_plausible_pointer(address))
		return false;
	if (python->walk->trusts_memory) {
		get_frame(python->layout, address, (const uint8_t *)(uintptr_t)address, ret);
		return true;
	}
	if (!read_memory(python, address, words, python->layout->frame_size))
		return false;
	get_frame(python->layout, address, (const uint8_t *)words, ret);
	return true;
}

/* While 3.11 takes a function's last frame off, its code may be freed already: then it is known by
 * its address. */
static uint32_t find_code_id(struct python_walk *python, const struct python_frame *frame)
{
	bool trusts = python->walk->trusts_memory;
	uint32_t id;

	if (frame->is_left && python->frame_count == 1)
		python->walk->trusts_memory = false;
	id = python_code_find_id(python->walk, frame->code);
	python->walk->trusts_memory = trusts;
	return id;
}

/* Behind the frame's item. Of coroutines that await one another a task knows the outermost. */
static void note_coroutine(struct python_walk *python, const struct python_frame *frame)
{
	if (frame->generator) {
		if (!python->is_in_coroutine && python->root_count < PYTHON_ROOTS_MAX)
			python->root_count++;
		python->roots[python->root_count - 1] =
			(struct python_root){frame->generator, frame->code, python->walk->count};
	}
	python->is_in_coroutine = frame->generator != 0;
}

/* False: the frame is none, or there is no room. */
static bool append_frame(struct python_walk *python, const struct python_frame *frame)
{
	uint32_t id;

	if (++python->frame_count > FRAMES_MAX)
		return false;
	id = find_code_id(python, frame);
	if (id == PYTHON_CODE_HIDDEN)
		return true;
	if (!id ||
	    !interpreted_walk_append(python->walk, python_make_frame_item(id, frame->position)))
		return false;
	if (frame->generator || python->is_in_coroutine)
		note_coroutine(python, frame);
	return true;
}

static bool append_boundary(struct python_walk *python, uint64_t address)
{
	return interpreted_walk_append(python->walk, INTERPRETED_BOUNDARY_BIT | address);
}

/* ---- chains ---- */

/* Up to 3.10: a call of the evaluation loop a frame; where it stands is not known. */
static bool walk_frames_of_calls(struct python_walk *python, uint64_t frame)
{
	struct python_frame it;

	for (; frame; frame = it.previous) {
		if (!read_frame(python, frame, &it) || !append_frame(python, &it) ||
		    !append_boundary(python, 0))
			return false;
	}
	return true;
}

/* 3.11: the frames of each call of the evaluation loop, from its record on the C stack on. */
static bool walk_marked_frames(struct python_walk *python, uint64_t record)
{
	const struct python_layout *layout = python->layout;
	uint64_t frame, expected = 0, previous;
	struct python_frame it;

	for (uint32_t records = 0; record; record = previous, records++) {
		uint32_t before = python->frame_count;

		if (records == FRAMES_MAX || !memory_is_plausible_pointer(record) ||
		    !read_memory(python, record + layout->cframe_current, &frame, 8) ||
		    !read_memory(python, record + layout->cframe_previous, &previous, 8) ||
		    (records && frame != expected))
			return false;
		while (frame) {
			if (!read_frame(python, frame, &it) || !append_frame(python, &it))
				return false;
			frame = it.previous;
			if (it.is_entry)
				break;
		}
		expected = frame;
		if (python->frame_count != before && !append_boundary(python, record))
			return false;
	}
	return true;
}

/* From 3.12 on: a shim on the C stack is the caller of the outermost frame of each call. */
static bool walk_frames_between_shims(struct python_walk *python, uint64_t frame)
{
	struct python_frame it;

	for (; frame; frame = it.previous) {
		if (!read_frame(python, frame, &it) ||
		    !(it.is_shim ? append_boundary(python, frame) : append_frame(python, &it)))
			return false;
	}
	return true;
}

/* ---- the thread ---- */

/* The innermost frame: may it be read directly? Up to 3.10 it is an object that the evaluation loop
 * holds for longer than the thread's state points to it. */
static bool first_frame_is_sound(struct python_walk *python, uint64_t frame)
{
	struct python_frame it;
	bool sound;

	if (!frame || python->layout->chain == PYTHON_CHAIN_CALL_A_FRAME ||
	    address_is_in_frame_stack(python, frame) ||
	    address_is_in_own_stack(python->walk->stack, frame))
		return true;
	python->walk->trusts_memory = false;
	sound = read_frame(python, frame, &it) &&
		(it.is_shim || python_code_find_id(python->walk, it.code));
	python->walk->trusts_memory = sound;
	return sound;
}

static bool walk_thread(struct python_walk *python)
{
	const struct python_layout *layout = python->layout;
	uint64_t first, frame;

	if (!read_memory(python, python->thread + layout->thread_frame, &first, 8))
		return false;
	frame = first;
	if (layout->has_cframe) {
		/* The outermost record is in the thread's state. */
		if (!address_is_in_own_state(python, first) &&
		    !address_is_in_own_stack(python->walk->stack, first))
			python->walk->trusts_memory = false;
		if (!memory_is_plausible_pointer(first) ||
		    !read_memory(python, first + layout->cframe_current, &frame, 8))
			return false;
	}
	if (python->walk->trusts_memory && !first_frame_is_sound(python, frame))
		return false;
	if (python->walk->only_differences && python->walk->trusts_memory)
		return !frame || (python_hash_frames(layout, frame, &first) &&
				  interpreted_walk_append(python->walk, first));
	if (layout->chain == PYTHON_CHAIN_ENTRY_MARKS)
		return walk_marked_frames(python, first);
	return layout->chain == PYTHON_CHAIN_SHIMS ? walk_frames_between_shims(python, frame)
						   : walk_frames_of_calls(python, frame);
}

/* Of the calling thread: by the handler at the beginning of the evaluation loop, or in a handler of
 * the program's own, whatever that has interrupted. */
static bool chain_may_be_half_made(const struct interpreted_walk *walk)
{
	const struct python_layout *layout = walk->interpreter->layout;
	const struct native_stack *stack = walk->stack;

	return layout->has_cframe &&
	       (stack->has_interrupted_frame || stack->is_not_walked ||
		(stack->count && stack->frames[0] - walk->interpreter->symbols[PYTHON_EVALUATE] <
					 EVALUATE_BEGINNING_BYTES));
}

static bool python_collect(struct interpreted_walk *walk)
{
	struct python_walk python = {.walk = walk, .layout = walk->interpreter->layout};

	walk->trusts_memory =
		!walk->stack->tid && walk->stack->stack_high && !chain_may_be_half_made(walk);
	walk->checked_reads_left = walk->stack->tid ? UINT32_MAX : CHECKED_READS_IN_HANDLER;
	python.thread = python_find_thread_state(walk);
	if (!python.thread)
		return false;
	if (!memory_is_plausible_pointer(python.thread) ||
	    python_ends_for_thread(walk, python.thread)) {
		walk->merge->lost_frame_walks++;
		return true;
	}
	walk->merge->thread_state = python_get_thread_state(&python);
	if (!walk_thread(&python) && !walk->is_full)
		walk->merge->lost_frame_walks++;
	if (python.root_count && walk->merge->names_tasks)
		python_tasks_insert(&python);
	return true;
}

/* ---- finding it ---- */

/* "…python3.9" or "…libpython3.9.so…": before 3.11 no symbol says which it is. */
static uint32_t get_version_in_path(const char *path)
{
	static const char mark[] = "python3.";
	const char *at = NULL;
	uint32_t minor = 0;

	for (const char *p = path; *p; p++) {
		if (!strncmp(p, mark, sizeof(mark) - 1))
			at = p + sizeof(mark) - 1;
	}
	if (!at || *at < '0' || *at > '9')
		return 0;
	for (; *at >= '0' && *at <= '9' && minor < 100; at++)
		minor = minor * 10 + (uint32_t)(*at - '0');
	return 3u << 24 | minor << 16;
}

static const char *python_recognize(struct interpreter *interpreter, uint32_t version)
{
	static const char unknown[] =
		"this build of CPython is not one that kymo knows (3.8 to 3.14, with the global "
		"lock): stacks have its own functions in the place of Python's";
	const struct python_layout *layout =
		version >> 24 == 3 ? python_layout_find(version >> 16 & 255) : NULL;
	uint64_t runtime = interpreter->symbols[PYTHON_RUNTIME];

	if (python_is_free_threaded(runtime))
		return "this Python is free-threaded (built without the global lock), which kymo "
		       "does not know: stacks have the interpreter's own functions in the place "
		       "of Python's, and calls of Python functions cannot be recorded";
	if (!layout || !interpreter->symbols[PYTHON_EVALUATE])
		return unknown;
	interpreter->layout = layout->debug_offsets.size
				      ? python_layout_read_debug_offsets(layout, runtime)
				      : layout;
	return interpreter->layout ? NULL : unknown;
}

static uint32_t python_read_version(const struct elf_exports *exports, const char *path)
{
	uint64_t address, size;
	uint32_t version;

	if (elf_exports_find(exports, interpreter_kind_python.symbols[PYTHON_VERSION], &address,
			     &size) &&
	    elf_exports_read_address(exports, address, &version, sizeof(version)))
		return version;
	return get_version_in_path(path);
}

const struct interpreter_kind interpreter_kind_python = {
	.name = "CPython",
	.symbols = {[PYTHON_RUNTIME] = "_PyRuntime",
		    [PYTHON_EVALUATE] = "_PyEval_EvalFrameDefault",
		    [PYTHON_VERSION] = "Py_Version"},
	.evaluate_symbol = PYTHON_EVALUATE,
	.read_version = python_read_version,
	.recognize = python_recognize,
	.collect = python_collect,
	.search = python_tasks_search,
};
