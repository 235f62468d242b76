/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The kernel's records, one by one, in the order of their times.
 */
#ifndef KYMO_OUTSIDE_RECORDS_H
#define KYMO_OUTSIDE_RECORDS_H

#include "outside/events.h"
#include "outside/process.h"

/* When the kernel wrote a record. */
uint64_t outside_record_get_time(const struct perf_event_header *record);
/* Copies a record without the room that its stack did not need. Returns the size of the copy. */
uint32_t outside_record_copy_compact(const struct perf_event_header *record, bool has_raw_data,
				     uint8_t *to);
void outside_record_handle(struct outside_world *world, const struct perf_event_header *record);

/* A sample as the kernel gives it; the pointers lead into the record. */
struct outside_sample {
	uint64_t ip, time_ns;
	uint32_t pid, tid;
	const uint64_t *chain; /* return addresses by frame pointers, innermost first */
	uint64_t chain_count;
	const uint64_t *kernel_chain; /* the same in the kernel, from the interrupted address on */
	uint64_t kernel_chain_count;
	const uint64_t *registers; /* OUTSIDE_REGISTER_COUNT, or NULL: it had none in user mode */
	const uint8_t *stack;
	uint64_t stack_bytes;
	bool is_in_kernel;
	const uint8_t *raw; /* the tracepoint's data */
	uint32_t raw_size;
};

/* Walks its stack and writes it (sample.c). */
void outside_sample_handle(struct outside_world *world, const struct outside_sample *sample);
/* Puts its frames into world->walked, the kernel's first; returns how many. The process has its
 * spool file. */
uint32_t outside_sample_walk(struct outside_world *world, struct outside_process *process,
			     const struct outside_sample *sample, enum spool_stack_end *end);

/* What is written; its frames are in world->walked. */
struct outside_weighted_sample {
	uint64_t time_ns, weight;
	enum spool_sample_source source;
	uint32_t count;
	enum spool_stack_end end;
};
void outside_sample_write(struct outside_world *world, struct outside_thread *thread,
			  const struct outside_weighted_sample *sample);

#endif
