/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Shadow stacks: the true return addresses of the instrumented calls that are open on each thread.
 *
 * An entry is found by its *slot*, the stack address where the caller's return address was. While a
 * call is open its slot holds an address of the stub. Entries above `top` have slot 0; an entry
 * below it with slot 0 is being made by the code that a signal handler interrupted. The first entry
 * of every stack is a sentinel with the highest slot there is.
 *
 * Slots fall from entry to entry on one stack. They need not when a thread changes stacks
 * (coroutines, alternate stacks), and entries stay behind when calls are left by longjmp or an
 * exception. Further in on the thread's own stack nothing is open; on other stacks, whether an
 * entry is still open is told by its slot's contents, which only the kernel can read without harm.
 * Nothing is open on an alternate signal stack that the thread does not run on, though slots there
 * hold what they did when a handler was left by siglongjmp.
 * So that is asked where a call needs to know it, and of all entries when they have become twice as
 * many (shadow_tidy()).
 *
 * Other threads take entries out, of coroutines that went on there, and only that. They look from
 * the top downwards; entries move downwards only, and are in their new place before they leave the
 * old one: none is ever missed.
 *
 * Memory: a node a thread, handed on when a thread ends, never unmapped, since unwinders may walk
 * it at any time. General registers only, no libc; safe in signal handlers.
 */
#ifndef KYMO_INSTRUMENT_SHADOW_H
#define KYMO_INSTRUMENT_SHADOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/runtime.h"

#define SHADOW_ENTRIES   65536u /* calls that can be open on one thread */
#define SHADOW_VECTORS   16384u
#define SHADOW_LEFT      16384u
#define SHADOW_LEFT_WAYS 8u
#define SHADOW_LEFT_OPEN 1024u /* threads that ended and left calls open on other stacks */
#define SHADOW_NO_THREAD UINT32_MAX

struct shadow_entry {
	uint64_t return_address;
	uint64_t slot;
	uint32_t id; /* of the process: the arena's id_base + the number in the plan */
	uint32_t flags;
};

enum shadow_flags {
	SHADOW_REGION = 1, /* its end is region_end()'s */
	SHADOW_ROUND = 1   /* bits above: when it was ended */
};

/* What the gate code works with; thread-local, at thread_offset from %fs:0. Offsets are known to
 * gate.S. */
struct calls_thread {
	struct shadow_entry *top;   /* 0: first free one */
	struct shadow_entry *limit; /* 8: the slow way from here on */
	uint64_t *at, *end;         /* 16, 24: the next word; no room from `end` on */
	uint64_t *counts;           /* 32: by function id; NULL: none yet */
	struct shadow_node *node;   /* 40 */
	_Atomic uint64_t busy;      /* slot of the call that is in the slow way; 0: none */
	uint32_t stopped;           /* nothing new is recorded on this thread */
};

/* The alternate signal stack that is registered. */
struct shadow_alternate {
	uint64_t low, size; /* 0: none, or not known */
	bool on;            /* when it was asked for */
};

struct shadow_node {
	struct shadow_node *next;           /* of all; never changes */
	struct calls_thread *_Atomic calls; /* of the thread that has it; NULL: free */
	struct shadow_entry *entries;       /* the sentinel, then SHADOW_ENTRIES */
	struct shadow_entry *end;
	/* Entries that were ended because they lie further in on the thread's own stack than the
	 * call that runs, the last of each slot. They are looked up before a thread is given up: it
	 * may run on a part of its stack that it made a coroutine's. */
	struct shadow_entry left[SHADOW_LEFT];
	uint32_t left_round; /* counts the times that entries were ended */
	bool any_left;
	/* The lowest entry with one below it that lies further in, or on a stack elsewhere: only
	 * above it a slot can occur that occurs below it as well. NULL: there is none. */
	struct shadow_entry *mixed;
	/* An entry of another stack that was seen to be open from a call further out. */
	struct shadow_entry *passed;
	uint64_t passed_slot;
	/* As it was last known, and the calls that returned with others' entries above theirs. */
	struct shadow_alternate alternate;
	uint32_t returned;
	/* When entries are gone through, and from how many open ones on other stacks on these are
	 * looked at. */
	struct shadow_entry *tidy_at;
	uint32_t open_at;
	uint64_t *counts; /* PLAN_ID_MAX + 1, or NULL; summed up over all threads that had it */
	/* the call stream */
	struct spool_chunk *chunk;
	uint8_t *record;      /* of the CALLS record being written */
	uint8_t *rest;        /* of the chunk, behind the last thread's record */
	uint64_t chunk_ticks; /* when it was begun */
	uint64_t retry_ticks; /* no chunk was to be had: not again before */
	/* Of the thread that has it; SHADOW_NO_THREAD from the time that it is given up until the
	 * next one has said who it is. */
	uint32_t internal_id;
	uint32_t tid;
	bool large;
	uint8_t vectors[] __attribute__((aligned(64))); /* SHADOW_VECTORS bytes; see vectors.h */
};

extern __thread struct calls_thread kymo_calls;
/* All nodes, newest first. */
extern struct shadow_node *_Atomic kymo_shadow_nodes;

/* A node for the calling thread, which has none; NULL: none can be had. */
struct shadow_node *shadow_take(void);
/* The thread ends: its node is for the next one. */
void shadow_release(struct shadow_node *node);
/* In a forked child: the other threads are gone. */
void shadow_forked(struct shadow_node *mine);

/* Entries with slot 1 were taken out of the middle. */
#define SHADOW_TAKEN_OUT 1u

static inline bool shadow_is_open(const struct shadow_entry *entry)
{
	return entry->slot > SHADOW_TAKEN_OUT;
}

static inline struct shadow_entry *shadow_below_taken_out(struct shadow_entry *top)
{
	while (top[-1].slot == SHADOW_TAKEN_OUT)
		(--top)->slot = 0;
	return top;
}

/* False: another thread has done so, or it has moved. */
static inline bool shadow_take_out(struct shadow_entry *entry, uint64_t slot)
{
	return atomic_compare_exchange_strong((_Atomic uint64_t *)&entry->slot, &slot,
					      SHADOW_TAKEN_OUT);
}

/* The calling thread's, as far as its bounds are known. */
static inline bool shadow_is_on_own_stack(uint64_t slot)
{
	const struct thread *thread = kymo_thread;

	return thread && slot >= thread->bounds.low && slot < thread->bounds.high;
}

/* Is what stands at `inner` only interrupted by a signal handler that runs at `slot` on an
 * alternate stack, which may be anywhere, also further out on the thread's own stack? */
bool shadow_is_interrupted(uint64_t inner, uint64_t slot);
/* Does the slot of this entry still hold the way back into its stub? */
bool shadow_is_live(const struct shadow_entry *entry);
/* Ends what was left without returning, as seen from a call at `slot`: entries further in on the
 * thread's own stack, and entries of other stacks whose slot no longer holds their stub's address.
 * How many. `each` is told, innermost first. */
uint32_t shadow_clean(struct calls_thread *calls, uint64_t slot,
		      void (*each)(const struct shadow_entry *));
/* Takes the entry of `slot` out, wherever it is: on this thread, or on another, which the
 * coroutine came from. What lies further in on the same stack ends with it. `id` is that of the
 * stub that the slot led to: entries of a slot that were left have mostly another. False: it is
 * nowhere. */
bool shadow_pop(struct calls_thread *calls, uint64_t slot, uint32_t id, struct shadow_entry *ret,
		void (*each)(const struct shadow_entry *));
/* Once there are twice as many entries as the last time: closes up what was taken out of the
 * middle, and, once twice as many are open on other stacks, ends those that were left. Not by a
 * signal handler on an alternate stack: what it interrupted may be at the top. */
void shadow_tidy(struct calls_thread *calls, void (*each)(const struct shadow_entry *));
/* The return address that belongs to a slot, on whichever thread; 0: not known. */
uint64_t shadow_return_address(uint64_t slot);
/* Where that is: there, or, if no call is open at the slot, still on the slot. */
uint64_t *shadow_return_place(uint64_t slot);

#endif
