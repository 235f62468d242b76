/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the parts of a commit share (commit.h): the sites that are to be written and the threads
 * that stand meanwhile.
 */
#ifndef KYMO_INJECT_COMMIT_PRIVATE_H
#define KYMO_INJECT_COMMIT_PRIVATE_H

#include <stdbool.h>

#include "inject/commit.h"
#include "inject/process.h"
#include "inject/tracee.h"

#define COMMIT_SITE_WITHOUT_PAIR UINT32_MAX

enum commit_site_state_kind {
	COMMIT_SITE_WANTED,
	COMMIT_SITE_ALREADY_DONE, /* the bytes are there already */
	COMMIT_SITE_SKIPPED,      /* other bytes than expected, or a thread that cannot be moved */
	COMMIT_SITE_WRITTEN
};

struct commit_site {
	uint64_t address;
	const struct plan_site *plan;
	uint32_t module;
	uint32_t paired_site_index; /* a site that is written when this one is;
				       COMMIT_SITE_WITHOUT_PAIR */
	uint8_t state;              /* enum commit_site_state_kind */
};

/* Memory that is read and written at once: from the first to the last of some sites, without a page
 * between them that has none. */
struct commit_write_range {
	uint64_t start;
	size_t size;
	size_t at;             /* in the buffer */
	uint32_t first, count; /* in the order by address */
};

struct commit_sites {
	const struct patched_module *modules;
	bool is_undo;
	pid_t pid;
	int memory;
	struct commit_site *list; /* by module, as in the plan; only those that are wanted */
	uint32_t *order;          /* of the list, by address */
	uint32_t count;
	struct commit_write_range *write_ranges;
	size_t write_range_count;
	uint8_t *buffer;
	size_t buffer_size;
};

/* Collects the sites, reads what is there, and has the process own the pages. */
int commit_sites_prepare(struct commit_sites *sites, const struct patched_module *modules,
			 size_t count, bool undo, pid_t pid, int memory, struct problem *problem);
void commit_sites_free(struct commit_sites *sites);
/* Reads what is there now; sites with other bytes are left, and, where patches are taken back,
 * those whose file is not mapped any more. */
bool commit_sites_read_and_check(struct commit_sites *sites);
/* Writes all that are wanted still, or none of them. */
bool commit_sites_write(struct commit_sites *sites);
uint32_t commit_sites_count_in_state(const struct commit_sites *sites,
				     enum commit_site_state_kind state);
/* Is there code inside a window at this address? Then, where it has gone; 0: nowhere, and its site
 * is left alone from now on. `call` is whether the thread is to make the system call before the
 * address again. */
bool commit_sites_find_moved_address(struct commit_sites *sites, uint64_t address, bool call,
				     uint64_t *ret);
/* All windows are within. */
void commit_sites_get_range(const struct commit_sites *sites, uint64_t *ret_low,
			    uint64_t *ret_high);

struct commit_thread {
	struct tracee tracee;
	bool seized, stopped, gone;
	int signal; /* that it was about to take */
};

struct commit_threads {
	pid_t pid;
	int memory;
	struct commit_thread **list;
	size_t count, capacity, unstopped_thread_count; /* for how many of them to stop */
	uint64_t stop_began_ns, stop_ended_ns;
};

/* Follows all threads, so that stopping them takes less time. */
int commit_threads_seize(struct commit_threads *threads, struct problem *problem);
/* Stops them, and those that have been made since. -EAGAIN: one did not within `patience_ns`. */
int commit_threads_stop(struct commit_threads *threads, uint64_t patience_ns);
bool commit_thread_set_pc(struct commit_thread *thread, uint64_t pc);
/* Lets all go on, from where they are to. */
void commit_threads_resume(struct commit_threads *threads);
void commit_threads_free(struct commit_threads *threads);

/* Moves threads out of the windows: their pc, and what is saved of it in frames of signal handlers
 * on their stacks. Those that cannot be moved make the site be left. Two steps, for what is found
 * in the first may change what is written. */
struct commit_pc_move {
	struct commit_thread *thread; /* NULL: a word in memory */
	uint64_t at;                  /* its address */
	uint64_t to;
};

struct commit_moves {
	struct commit_pc_move *list;
	size_t count, capacity;
	bool failed; /* out of memory */
};

int commit_moves_find_in_all_threads(struct commit_moves *moves, struct commit_threads *threads,
				     struct commit_sites *sites, struct process_maps *maps);
bool commit_moves_apply(struct commit_moves *moves, int memory);

#endif
