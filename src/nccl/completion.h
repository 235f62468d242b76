/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * When is an operation over? NCCL's stop only says that it is in a stream. It is over when what was
 * seen of it to run, kernel channels and network operations, has stopped, and either as many
 * channels as NCCL said have, or nothing more came for a while: numbers of channels are hints,
 * children may be late, and some never come (kymo/nccl_records.h, nccl_operation_is_quiet()).
 */
#ifndef KYMO_NCCL_COMPLETION_H
#define KYMO_NCCL_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

struct completion_round {
	uint64_t ticks;  /* now */
	bool is_last;    /* the process ends */
	bool needs_room; /* chunks of finalized communicators are wanted now */
};

/* The own thread's round: seals what is over, finishes chunks, finds each communicator's oldest
 * operation in flight, adds up totals and the header's counters. */
void completion_run_round(const struct completion_round *round);
/* Ticks of so many nanoseconds, and back. */
uint64_t completion_ns_to_ticks(uint64_t ns);
uint64_t completion_ticks_to_ns(uint64_t ticks);

#endif
