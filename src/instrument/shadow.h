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
 * entry is still open is known by its slot's contents, which only the kernel can read without harm.
 * Nothing is open on an alternate signal stack that the thread does not run on, though slots there
 * hold what they did when a handler was left by siglongjmp.
 * So that is asked where a call needs to know it, and of all entries when they have become twice as
 * many (shadow_compact_if_grown()).
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

#define SHADOW_ENTRIES_MAX              65536u /* calls that can be open on one thread */
#define SHADOW_THREAD_VECTOR_AREA_BYTES 16384u
#define SHADOW_ABANDONED_ENTRIES_MAX    16384u
#define SHADOW_ABANDONED_SET_WAYS       8u
#define SHADOW_ABANDONED_NODES_MAX                                                                 \
	1024u /* threads that ended and left calls open on other stacks */
#define SHADOW_NO_THREAD UINT32_MAX

struct shadow_entry {
	uint64_t return_address;
	uint64_t slot;
	uint32_t id; /* of the process: the arena's id_base + the number in the plan */
	uint32_t flags;
};

enum shadow_flags {
	SHADOW_FLAG_REGION = 1, /* its end is region_end()'s */
	SHADOW_FLAG_REUSED = 2, /* ended, and its slot had been another ended call's before */
	SHADOW_ROUND_SHIFT = 2  /* bits above: when it was ended */
};

/* What the trampoline code works with; thread-local, at thread_offset from %fs:0. Offsets are known
 * to trampoline.S. */
struct calls_thread_state {
	struct shadow_entry *top;       /* 0: first free one */
	struct shadow_entry *limit;     /* 8: the slow way from here on */
	uint64_t *at, *end;             /* 16, 24: the next word; no room from `end` on */
	uint64_t *counts;               /* 32: by function id; NULL: none yet */
	struct shadow_stack_node *node; /* 40 */
	_Atomic uint64_t busy;          /* slot of the call that is in the slow way; 0: none */
	bool stopped;                   /* nothing new is recorded on this thread */
	bool has_ended;                 /* for kymo; handlers and destructors may still run */
};

/* The alternate signal stack that is registered. */
struct registered_signal_stack_info {
	uint64_t low, size; /* 0: none, or not known */
	bool on;            /* when it was asked for */
};

struct shadow_stack_node {
	struct shadow_stack_node *next;           /* of all; never changes */
	struct calls_thread_state *_Atomic calls; /* of the thread that has it; NULL: free */
	struct shadow_entry *entries;             /* the sentinel, then SHADOW_ENTRIES_MAX */
	struct shadow_entry *end;
	/* Entries that were ended because they lie further in on the thread's own stack than the
	 * call that runs, the last of each slot. They are looked up before a thread is given up: it
	 * may run on a part of its stack that it made a coroutine's. */
	struct shadow_entry abandoned_entries[SHADOW_ABANDONED_ENTRIES_MAX];
	uint32_t abandoned_round; /* counts the times that entries were ended */
	bool has_abandoned_entries;
	/* The lowest entry with one below it that lies further in, or on a stack elsewhere: only
	 * above it a slot can occur that occurs below it as well. NULL: there is none. */
	struct shadow_entry *lowest_interleaved_entry;
	/* An entry of another stack that was seen to be open from a call further out. */
	struct shadow_entry *checked_live_entry;
	uint64_t checked_live_slot;
	/* As it was last known, and the calls that returned with others' entries above theirs. */
	struct registered_signal_stack_info alternate_signal_stack;
	uint32_t return_under_others_count;
	/* When entries are gone through, and from how many open ones on other stacks on these are
	 * looked at. */
	struct shadow_entry *compact_limit;
	uint32_t open_check_count_min;
	uint64_t *counts; /* PLAN_ID_MAX + 1, or NULL; summed up over all threads that had it */
	/* the call stream */
	struct spool_chunk *chunk;
	uint8_t *record;      /* of the CALLS record being written */
	uint8_t *rest;        /* of the chunk, behind the last thread's record */
	uint64_t chunk_ticks; /* when it was begun */
	uint64_t retry_ticks; /* no chunk was to be had: not again before */
	/* The thread that has it; SHADOW_NO_THREAD from the time that it is given up until the next
	 * one has said who it is. */
	uint32_t internal_thread_id;
	uint32_t tid;
	/* The helper writes to the thread's own memory at this moment: the thread's end waits. */
	_Atomic bool is_being_poked;
	bool large;
	uint8_t vector_area[] __attribute__((
		aligned(64))); /* SHADOW_THREAD_VECTOR_AREA_BYTES bytes; see vectors.h */
};

extern __thread struct calls_thread_state kymo_calls;
/* All nodes, newest first. */
extern struct shadow_stack_node *_Atomic kymo_shadow_nodes;

/* A node for the calling thread, which has none; NULL: none can be had. */
struct shadow_stack_node *shadow_acquire_node(void);
/* The thread ends: its node is for the next one. */
void shadow_release_node(struct shadow_stack_node *node);
/* In a forked child: the other threads are gone. */
void shadow_reset_in_forked_child(struct shadow_stack_node *mine);

/* Entries with slot 1 were taken out of the middle. */
#define SHADOW_SLOT_REMOVED 1u

static inline bool shadow_entry_is_open(const struct shadow_entry *entry)
{
	return entry->slot > SHADOW_SLOT_REMOVED;
}

static inline struct shadow_entry *shadow_trim_removed_top(struct shadow_entry *top)
{
	while (top[-1].slot == SHADOW_SLOT_REMOVED)
		(--top)->slot = 0;
	return top;
}

/* False: another thread has done so, or it has moved. */
static inline bool shadow_try_remove_entry(struct shadow_entry *entry, uint64_t slot)
{
	return atomic_compare_exchange_strong((_Atomic uint64_t *)&entry->slot, &slot,
					      SHADOW_SLOT_REMOVED);
}

/* The calling thread's, as far as its bounds are known. */
static inline bool shadow_slot_is_on_own_stack(uint64_t slot)
{
	const struct thread *thread = kymo_thread;

	return thread && thread_has_on_stack(thread, slot);
}

/* Is what stands at `inner` only interrupted by a signal handler that runs at `slot` on an
 * alternate stack, which may be anywhere, also further out on the thread's own stack? */
bool shadow_is_interrupted_by_handler_at(uint64_t inner, uint64_t slot);
/* Does the slot of this entry still hold the way back into its stub? */
bool shadow_entry_is_live(const struct shadow_entry *entry);
/* Ends what was left without returning, as seen from a call at `slot`: entries further in on the
 * thread's own stack, and entries of other stacks whose slot no longer holds their stub's address.
 * Returns how many; `each` is called with each, innermost first. */
uint32_t shadow_end_stale_entries(struct calls_thread_state *calls, uint64_t slot,
				  void (*each)(const struct shadow_entry *));
/* Takes the entry of `slot` out, wherever it is: on this thread, or on another, which the
 * coroutine came from. What lies further in on the same stack ends with it. `id` is that of the
 * stub that the slot led to: entries of a slot that were left have mostly another. False: it is
 * nowhere. */
bool shadow_pop_entry(struct calls_thread_state *calls, uint64_t slot, uint32_t id,
		      struct shadow_entry *ret, void (*each)(const struct shadow_entry *));
/* What an entry was whose call has returned: the address that all returned calls of the function
 * went back to that can still be seen. A call can only return twice where its stack was copied.
 * False: there is none, or there are several. */
bool shadow_find_return_address_of_returned_call(const struct calls_thread_state *calls,
						 uint32_t id, uint64_t *ret);
/* Once there are twice as many entries as the last time: closes up what was taken out of the
 * middle, and, once twice as many are open on other stacks, ends those that were left. Not by a
 * signal handler on an alternate stack: what it interrupted may be at the top. */
void shadow_compact_if_grown(struct calls_thread_state *calls,
			     void (*each)(const struct shadow_entry *));
/* The return address that belongs to a slot, on whichever thread; 0: not known. */
uint64_t shadow_find_return_address(uint64_t slot);
/* Where that is: there, or, if no call is open at the slot, still on the slot. */
uint64_t *shadow_find_return_address_slot(uint64_t slot);

#endif
