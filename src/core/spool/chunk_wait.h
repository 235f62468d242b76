/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * For who finds no chunk ready: allocators (core/allocators.h) keep some, but on an
 * overloaded machine they may not have run yet. Waiting costs the program time then, losing would
 * cost it data. Nothing that kymo's own threads do waits for the program; nobody waits for a disk
 * that is full.
 */
#ifndef KYMO_CORE_SPOOL_CHUNK_WAIT_H
#define KYMO_CORE_SPOOL_CHUNK_WAIT_H

#include "core/spool/writer.h"

enum chunk_wait_patience {
	CHUNK_WAIT_IN_HANDLER, /* 10 ms */
	CHUNK_WAIT_IN_CALL,    /* two seconds, which only an overloaded machine takes */
};

/* A program's thread, also in a signal handler: kymo's own threads are asked to make one, and
 * waited for. NULL: none came; then the next ones wait shortly only, until one has come. */
struct spool_chunk *spool_wait_for_chunk(struct spool_writer *spool,
					 enum spool_chunk_class chunk_class,
					 enum chunk_wait_patience patience);

/* One of the threads that make chunks: it makes small ones, or waits for the one that is at it. */
struct spool_chunk *chunk_refill_and_take(struct spool_writer *spool);

#endif
