/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See records.h. Layouts: perf_event_open(2). All sizes are those of the kernel, whose ring nobody
 * else can write to; texts and counts are checked all the same.
 */
#include "outside/records.h"
#include "outside/blocking.h"

#include <stdlib.h>
#include <string.h>

/* What is behind each record that is no sample: PERF_SAMPLE_TID, PERF_SAMPLE_TIME. */
struct record_trailer {
	uint32_t pid, tid;
	uint64_t time;
};

struct task_record {
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time;
};

struct name_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char name[];
};

struct mapping_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, size, offset;
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	uint32_t protection, flags;
	char path[];
};

struct lost_record {
	struct perf_event_header header;
	uint64_t first, second; /* PERF_RECORD_LOST: id, count; LOST_SAMPLES: count */
};

struct sample_record {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
	uint64_t chain_count;
	uint64_t words[];
};

static struct record_trailer read_trailer(const struct perf_event_header *record)
{
	struct record_trailer trailer;

	memcpy(&trailer, (const uint8_t *)record + record->size - sizeof(trailer), sizeof(trailer));
	return trailer;
}

uint64_t outside_record_get_time(const struct perf_event_header *record)
{
	if (record->type == PERF_RECORD_SAMPLE)
		return ((const struct sample_record *)(const void *)record)->time;
	return read_trailer(record).time;
}

static void handle_mapping(struct outside_world *world, const struct mapping_record *record,
			   uint64_t time_ns)
{
	struct outside_thread *thread =
		outside_thread_get(world, record->pid, record->tid, time_ns);
	struct outside_mapping mapping = {.start = record->address,
					  .end = record->address + record->size,
					  .offset = record->offset,
					  .device = (uint64_t)record->major << 20 | record->minor,
					  .inode = record->inode,
					  .path = record->path};
	struct outside_process *process = thread ? thread->process : NULL;

	if (!process || !record->size || (record->header.misc & PERF_RECORD_MISC_MMAP_DATA))
		return;
	if (!strncmp(record->path, "//", 2)) /* "//anon" */
		mapping.path = "";
	if (!process->executable && process->origin == SPOOL_IMAGE_EXECUTED &&
	    record->path[0] == '/' && record->inode)
		process->executable = strdup(record->path);
	outside_modules_add(process, &mapping, time_ns);
}

static void handle_name(struct outside_world *world, const struct name_record *record,
			uint64_t time_ns)
{
	struct outside_thread *thread =
		outside_thread_get(world, record->pid, record->tid, time_ns);

	if (!thread)
		return;
	if (record->header.misc & PERF_RECORD_MISC_COMM_EXEC)
		outside_process_execute(world, thread, record->name, time_ns);
	else
		outside_thread_set_name(world, thread, record->name);
}

static void handle_fork(struct outside_world *world, const struct task_record *record)
{
	struct outside_process *parent = outside_process_find(world, record->parent_pid);
	struct outside_thread *thread;

	if (record->pid != record->parent_pid)
		outside_process_fork(world, parent, record->pid, record->time);
	thread = outside_thread_get(world, record->pid, record->tid, record->time);
	if (thread && !thread->name[0]) {
		struct outside_thread *maker = outside_thread_get(world, record->parent_pid,
								  record->parent_tid, record->time);

		if (maker)
			memcpy(thread->name, maker->name, sizeof(thread->name));
	}
}

static void handle_end(struct outside_world *world, const struct task_record *record)
{
	struct outside_thread *thread =
		outside_thread_get(world, record->pid, record->tid, record->time);

	if (thread)
		outside_thread_end(world, thread, record->time);
}

static void handle_loss(struct outside_world *world, uint64_t count, uint32_t pid)
{
	struct outside_process *process = outside_process_find(world, pid);

	world->lost += count;
	outside_blocks_forget(world);
	/* The task that ran when room was found again; if it is not sampled, whoever is in the
	 * results in any case. */
	if (!process || !process->spool)
		process = outside_process_find(world, world->root_pid);
	if (process && outside_process_begin_spool(world, process))
		process->spool->header.losses[SPOOL_LOSS_PERF_RING] += count;
}

/* The kernel's part of a chain comes first, each part behind a marker (enum
 * perf_callchain_context). */
static void split_chain(struct outside_sample *sample)
{
	uint64_t count = 0;

	if (!sample->chain_count || sample->chain[0] != (uint64_t)PERF_CONTEXT_KERNEL)
		return;
	while (count + 1 < sample->chain_count &&
	       sample->chain[count + 1] < (uint64_t)PERF_CONTEXT_MAX)
		count++;
	sample->kernel_chain = sample->chain + 1;
	sample->kernel_chain_count = count;
	sample->chain += count + 1;
	sample->chain_count -= count + 1;
}

/* A size of 4 bytes, data, and padding up to 8 bytes. Registers follow. */
static bool parse_raw_data(const uint64_t **at, const uint64_t *end, struct outside_sample *ret)
{
	uint32_t words;

	memcpy(&ret->raw_size, *at, sizeof(ret->raw_size));
	ret->raw = (const uint8_t *)*at + sizeof(ret->raw_size);
	words = (uint32_t)(sizeof(ret->raw_size) + ret->raw_size + 7) / 8;
	if (words >= (uint64_t)(end - *at))
		return false;
	*at += words;
	return true;
}

/* Chain, registers and stack follow each other, each with its size. */
static bool parse_sample(const struct sample_record *record, bool has_raw_data,
			 struct outside_sample *ret)
{
	const uint64_t *end =
		(const uint64_t *)(const void *)((const uint8_t *)record + record->header.size);
	const uint64_t *at = record->words;
	uint64_t stack_room;

	*ret = (struct outside_sample){
		.ip = record->ip,
		.time_ns = record->time,
		.pid = record->pid,
		.tid = record->tid,
		.chain = at,
		.chain_count = record->chain_count,
		.is_in_kernel = (record->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				PERF_RECORD_MISC_KERNEL};
	if (record->chain_count >= (uint64_t)(end - at))
		return false;
	at += record->chain_count;
	split_chain(ret);
	if (has_raw_data && !parse_raw_data(&at, end, ret))
		return false;
	if (*at++ == PERF_SAMPLE_REGS_ABI_64) {
		ret->registers = at;
		if (end - at <= (long)OUTSIDE_REGISTER_COUNT)
			return false;
		at += OUTSIDE_REGISTER_COUNT;
	} else if (at[-1]) {
		return true; /* a 32-bit program: its registers tell the walker nothing */
	}
	if (at >= end)
		return true;
	stack_room = *at++;
	if (!stack_room || stack_room / 8 >= (uint64_t)(end - at))
		return true;
	ret->stack = (const uint8_t *)at;
	ret->stack_bytes = at[stack_room / 8];
	if (ret->stack_bytes > stack_room)
		ret->stack_bytes = stack_room;
	return true;
}

uint32_t outside_record_copy_compact(const struct perf_event_header *record, bool has_raw_data,
				     uint8_t *to)
{
	const void *any = record;
	struct perf_event_header header = *record;
	struct outside_sample sample;
	const uint8_t *start = any;
	uint64_t kept, words[2];
	size_t front;

	if (record->type != PERF_RECORD_SAMPLE || !parse_sample(any, has_raw_data, &sample) ||
	    !sample.stack || !sample.stack_bytes) {
		memcpy(to, record, record->size);
		return record->size;
	}
	/* Size of the room, the room, how much of it is used. */
	kept = (sample.stack_bytes + 7) & ~7ull;
	front = (size_t)(sample.stack - start);
	memcpy(to, start, front);
	words[0] = kept;
	words[1] = sample.stack_bytes;
	memcpy(to + front - 8, &words[0], 8);
	memcpy(to + front, sample.stack, kept);
	memcpy(to + front + kept, &words[1], 8);
	header.size = (uint16_t)(front + kept + 8);
	memcpy(to, &header, sizeof(header));
	return header.size;
}

static void handle_switch(struct outside_world *world, const struct perf_event_header *record)
{
	struct record_trailer trailer = read_trailer(record);

	if (!(record->misc & PERF_RECORD_MISC_SWITCH_OUT))
		outside_block_return_to_cpu(world, trailer.tid, trailer.time);
	else
		outside_block_leave_cpu(world, trailer.tid, trailer.time,
					record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
}

void outside_record_handle(struct outside_world *world, const struct perf_event_header *record)
{
	const void *any = record;
	struct outside_sample sample;

	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		if (!parse_sample(any, world->ring_kind == OUTSIDE_RING_WAKEUPS, &sample))
			break;
		if (world->ring_kind == OUTSIDE_RING_SWITCHES)
			outside_block_handle_sample(world, &sample);
		else if (world->ring_kind == OUTSIDE_RING_WAKEUPS)
			outside_block_handle_wakeup(world, &sample);
		else
			outside_sample_handle(world, &sample);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		handle_switch(world, record);
		break;
	case PERF_RECORD_MMAP2:
		handle_mapping(world, any, read_trailer(record).time);
		break;
	case PERF_RECORD_COMM:
		handle_name(world, any, read_trailer(record).time);
		break;
	case PERF_RECORD_FORK:
		handle_fork(world, any);
		break;
	case PERF_RECORD_EXIT:
		handle_end(world, any);
		break;
	case PERF_RECORD_LOST:
		handle_loss(world, ((const struct lost_record *)any)->second,
			    read_trailer(record).pid);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		handle_loss(world, ((const struct lost_record *)any)->first,
			    read_trailer(record).pid);
		break;
	default:
		break;
	}
}
