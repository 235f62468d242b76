/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One sample to one record: the stack is walked at once, with the tables of unwind/ over the copied
 * piece of the stack, and no stack bytes are kept.
 *
 * Who continues a stack is asked frame by frame: a module with unwind information by its table; one
 * without (Go, which keeps frame pointers) by what stacks usually look like (unwind/heuristics.c).
 * Where the walk leaves the copied piece, the kernel's own chain of frame pointers goes on from the
 * last frame that both know: it read the whole stack, across those that Go's runtime switches
 * between.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ucontext.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/leb128.h"
#include "core/spool/sample_record.h"
#include "core/unwind/walk.h"
#include "outside/records.h"

#define MAPS_READING_PAUSE_NS 50000000ull
#define SPAN_BYTES_MAX        32u
#define FIRST_CALLERS_BYTES   1024u

/* Places of the registers in a sample (OUTSIDE_REGISTERS) by their places in a ucontext. */
static const uint8_t greg_by_register[OUTSIDE_REGISTER_COUNT] = {
	REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP,
	REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/* Whose code the walker reads. */
static const struct outside_process *walked_process;

/* From the file where there is one: the process may have ended. */
static bool read_code(uint64_t address, uint8_t *buffer, size_t size)
{
	const struct outside_module *module = outside_modules_find(walked_process, address);
	struct iovec local = {buffer, size}, remote = {(void *)(uintptr_t)address, size};

	if (module && module->image && module->image->file >= 0)
		return pread(module->image->file, buffer, size,
			     (off_t)(address - module->mapping.start + module->mapping.offset)) ==
		       (ssize_t)size;
	return process_vm_readv((pid_t)walked_process->pid, &local, 1, &remote, 1, 0) ==
	       (ssize_t)size;
}

/* Appends what the kernel found beyond the outermost frame of the walk, where that keeps frame
 * pointers: code without unwind information, into which the kernel's chain leads as well, and on to
 * nothing but code. The chain begins with a marker (PERF_CONTEXT_USER) and the interrupted address.
 */
static uint32_t append_kernel_chain(struct outside_world *world,
				    const struct outside_process *process,
				    const struct outside_sample *sample, uint32_t count,
				    enum spool_stack_end *end)
{
	const struct outside_module *module =
		outside_modules_find(process, world->walked[count - 1] - (count > 1));
	uint64_t k = 1;

	while (k < sample->chain_count && sample->chain[k] != world->walked[count - 1])
		k++;
	if (!module || k + 1 >= sample->chain_count ||
	    unwind_module_find_rule(&process->view->modules[module - process->modules],
				    world->walked[count - 1] - (count > 1)))
		return count;
	for (uint64_t i = k + 1; i < sample->chain_count; i++) {
		if (!outside_modules_find(process, sample->chain[i] - 1))
			return count;
	}
	while (++k < sample->chain_count && count < world->depth_max)
		world->walked[count++] = sample->chain[k];
	*end = k < sample->chain_count ? SPOOL_STACK_DEPTH : SPOOL_STACK_COMPLETE;
	return count;
}

/* The first functions of a program often have no unwind information (musl's). Between such a frame
 * and the arguments of the program, which the kernel put at the bottom of the stack, lies little
 * more than their return addresses. */
static uint32_t append_first_callers(struct outside_world *world,
				     const struct outside_process *process,
				     const struct outside_sample *sample, uint32_t count,
				     enum spool_stack_end *end)
{
	uint64_t sp = world->scratch->stack_pointers[count - 1], low = sample->registers[7];
	const uint64_t *words = (const uint64_t *)(const void *)sample->stack;
	const struct outside_module *module =
		outside_modules_find(process, world->walked[count - 1] - (count > 1));

	/* Go uses its first stack again and again: it is full of old frames. */
	if (*end != SPOOL_STACK_NO_TABLE || !module || !module->image || module->image->is_go ||
	    sp > process->stack_start || sp < low || sp & 7 ||
	    process->stack_start - sp > FIRST_CALLERS_BYTES ||
	    process->stack_start - low > sample->stack_bytes)
		return count;
	for (; sp < process->stack_start && count < world->depth_max; sp += 8) {
		uint64_t word = words[(sp - low) / 8];

		if (unwind_outside_is_return_address(process->view, word))
			world->walked[count++] = word;
	}
	*end = SPOOL_STACK_COMPLETE;
	return count;
}

static uint32_t walk_sample(struct outside_world *world, struct outside_process *process,
			    const struct outside_sample *sample, enum spool_stack_end *end)
{
	const struct unwind_all_modules_view *view = outside_modules_get_view(world, process);
	uint64_t gregs[REG_CR2 + 1] = {0};
	struct unwind_start_registers registers = {.gregs = gregs};
	struct unwind_stack_bounds bounds;
	uint32_t count;

	for (unsigned i = 0; i < OUTSIDE_REGISTER_COUNT; i++)
		gregs[greg_by_register[i]] = sample->registers[i];
	registers.ip = gregs[REG_RIP];
	registers.sp = gregs[REG_RSP];
	registers.bp = gregs[REG_RBP];
	bounds.low = registers.sp;
	bounds.high = registers.sp + sample->stack_bytes;
	world->walked[0] = registers.ip;
	*end = SPOOL_STACK_NOT_WALKED;
	if (!view)
		return 1;
	walked_process = process;
	unwind_outside.stack_displacement = (uint64_t)(uintptr_t)sample->stack - registers.sp;
	unwind_outside.read_code = read_code;
	count = unwind_walk_stack(view, world->cache, &registers, &bounds, world->scratch,
				  world->walked, world->depth_max, end);
	if (*end == SPOOL_STACK_COMPLETE || *end == SPOOL_STACK_DEPTH)
		return count;
	count = append_kernel_chain(world, process, sample, count, end);
	return append_first_callers(world, process, sample, count, end);
}

/* Addresses that nothing is known of: code that became executable, or was mapped, without a record.
 */
static void read_maps_if_unknown(struct outside_process *process, uint64_t ip, uint64_t time_ns)
{
	if (outside_modules_find(process, ip) || time_ns < process->next_maps_reading_ns)
		return;
	process->next_maps_reading_ns = time_ns + MAPS_READING_PAUSE_NS;
	outside_modules_read_maps(process, time_ns);
}

/* Puts the kernel's frames on top of the user's, of which the innermost is a return address then,
 * or was interrupted: one more than its address, as all frames but the innermost one are looked up
 * a byte before. Returns the new count. */
static uint32_t put_kernel_frames_on_top(struct outside_world *world,
					 const struct outside_sample *sample, uint32_t count)
{
	uint64_t more = sample->kernel_chain_count;

	if (!world->kernel_start || !more)
		return count;
	if (more > world->depth_max)
		more = world->depth_max;
	if (count > world->depth_max - more)
		count = (uint32_t)(world->depth_max - more);
	memmove(world->walked + more, world->walked, count * sizeof(*world->walked));
	for (uint64_t i = 0; i < more; i++)
		world->walked[i] = sample->kernel_chain[i] & ~SPOOL_KERNEL_FRAME_LOST_BIT;
	if (count && world->walked[more] >= SPOOL_NO_STACK_LIMIT)
		world->walked[more]++;
	return (uint32_t)more + count;
}

static void begin_span(struct outside_thread *thread, uint64_t time_ns)
{
	struct outside_chunk *chunk = thread->chunk;
	uint8_t *start = chunk->bytes + chunk->used, *at = start + 2;

	at = leb128_write(at, thread->internal_id);
	at = leb128_write(at, thread->tid);
	at = write_fixed64_little_endian(at, time_ns);
	start[0] = SPOOL_RECORD_SPAN;
	start[1] = (uint8_t)(at - start - 2);
	chunk->used = (uint32_t)(at - chunk->bytes);
	thread->last_time = time_ns >> SPOOL_SAMPLE_TIME_SHIFT;
	thread->last_weight = 0;
	thread->frame_count = 0;
}

static bool keep_frames(struct outside_thread *thread, const uint64_t *frames, uint32_t count)
{
	if (count > thread->frame_capacity) {
		uint64_t *more = realloc(thread->frames, count * sizeof(*more));

		if (!more)
			return false;
		thread->frames = more;
		thread->frame_capacity = count;
	}
	memcpy(thread->frames, frames, count * sizeof(*frames));
	thread->frame_count = count;
	return true;
}

static bool make_room(struct outside_thread *thread, uint32_t frames, uint64_t time_ns)
{
	struct outside_spool *spool = thread->process->spool;
	uint32_t size = (uint32_t)sample_record_compute_size_max(frames);

	if (outside_chunk_room(thread->chunk) >= size)
		return true;
	if (thread->chunk)
		outside_chunk_close(spool, thread->chunk);
	thread->chunk = outside_chunk_open(spool, size + SPAN_BYTES_MAX);
	if (!thread->chunk)
		return false;
	begin_span(thread, time_ns);
	return true;
}

void outside_sample_write(struct outside_world *world, struct outside_thread *thread,
			  const struct outside_weighted_sample *sample)
{
	struct outside_spool *spool = thread->process->spool;
	struct sample_encoder_input input = {.frames = world->walked,
					     .count = sample->count,
					     .end = sample->end,
					     .source = sample->source,
					     .weight = sample->weight};
	struct sample_encoder_state state = {0};
	uint64_t time_ns = sample->time_ns;
	uint8_t *at;

	/* Two CPUs' clocks may differ by a little. */
	if (time_ns < thread->last_ns)
		time_ns = thread->last_ns;
	thread->last_ns = time_ns;
	input.time = time_ns >> SPOOL_SAMPLE_TIME_SHIFT;
	if (!make_room(thread, input.count, time_ns))
		return;
	state = (struct sample_encoder_state){thread->frames, thread->frame_count,
					      thread->last_time, thread->last_weight, NULL};
	at = sample_record_encode(thread->chunk->bytes + thread->chunk->used, &state, &input,
				  sample_record_count_common_frames(&state, &input));
	thread->chunk->used = (uint32_t)(at - thread->chunk->bytes);
	thread->last_time = input.time;
	thread->last_weight = input.weight;
	if (!keep_frames(thread, world->walked, input.count)) {
		outside_chunk_close(spool, thread->chunk);
		thread->chunk = NULL;
	}
	spool->header.samples++;
	spool->header.stacks[input.end]++;
	world->samples++;
	thread->samples++;
	if (input.source != SPOOL_SOURCE_CPU)
		return;
	thread->covered_ns += input.weight;
	spool->header.cpu_covered_ns += input.weight;
	if (thread->process->by_cpu_ns)
		thread->process->by_cpu_ns[world->cpu] += input.weight;
}

uint32_t outside_sample_walk(struct outside_world *world, struct outside_process *process,
			     const struct outside_sample *sample, enum spool_stack_end *end)
{
	uint32_t count = 1;

	*end = SPOOL_STACK_NOT_WALKED;
	if (sample->registers && sample->stack) {
		read_maps_if_unknown(process, sample->registers[8], sample->time_ns);
		count = walk_sample(world, process, sample, end);
	} else if (world->kernel_start && sample->kernel_chain_count) {
		count = 0;
	} else {
		/* It ends, or begins: it has no memory of its own. */
		world->walked[0] = SPOOL_NO_STACK_KERNEL;
	}
	return put_kernel_frames_on_top(world, sample, count);
}

void outside_sample_handle(struct outside_world *world, const struct outside_sample *sample)
{
	struct outside_thread *thread =
		outside_thread_get(world, sample->pid, sample->tid, sample->time_ns);
	struct outside_weighted_sample written = {
		.time_ns = sample->time_ns, .weight = world->period_ns, .source = SPOOL_SOURCE_CPU};

	if (sample->time_ns < world->from_ns || sample->time_ns >= world->to_ns)
		return;
	if (!thread || !outside_process_is_in_scope(world, thread->process, sample->time_ns) ||
	    !outside_process_begin_spool(world, thread->process))
		return;
	outside_thread_record_start(thread);
	written.count = outside_sample_walk(world, thread->process, sample, &written.end);
	outside_sample_write(world, thread, &written);
}
