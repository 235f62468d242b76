/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The processes and threads that are sampled from outside, as the kernel's records tell of them:
 * what they execute, what they map, when they fork and end. A process gets its spool file with its
 * first sample; what came before is recorded then.
 */
#ifndef KYMO_OUTSIDE_PROCESS_H
#define KYMO_OUTSIDE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/unwind/unwind.h"
#include "outside/events.h"
#include "outside/image_file.h"
#include "outside/scope.h"
#include "outside/spool_file.h"

#define OUTSIDE_NAME_BYTES 16 /* of a thread, with its end (prctl(2), PR_SET_NAME) */

/* One executable mapping. */
struct outside_module {
	struct outside_mapping mapping; /* its path is malloc'ed */
	const struct outside_image *image;
	uint64_t time_ns;
	uint32_t id;
	bool is_inspected; /* its file was looked for */
	bool is_recorded;  /* in the process's spool file */
	bool is_seen;      /* by the reading of /proc/PID/maps that goes on */
};

struct outside_thread {
	struct outside_thread *next; /* in the table, by tid */
	struct outside_process *process;
	uint32_t tid, internal_id;
	char name[OUTSIDE_NAME_BYTES];
	struct outside_chunk *chunk;
	uint64_t *frames; /* of the last sample in the chunk, innermost first */
	uint32_t frame_count, frame_capacity;
	uint64_t last_time, last_weight;
	uint64_t last_ns;
	uint64_t start_ns;
	uint64_t samples, covered_ns;
	uint64_t ended_ns;           /* 0: it runs */
	struct outside_block *block; /* NULL: it was not seen to leave a CPU */
	bool is_recorded;
};

enum outside_membership { OUTSIDE_NOT_LOOKED_AT, OUTSIDE_IN_SCOPE, OUTSIDE_NOT_IN_SCOPE };

struct outside_process {
	struct outside_process *next; /* in the table, by pid */
	uint32_t pid, parent_pid;
	uint32_t events_tid; /* the task whose events it has or inherited; 0: the first one's */
	uint64_t start_ns;   /* of this image */
	enum spool_image_origin origin;
	char *executable, *arguments; /* NULL: not known */
	size_t argument_bytes;
	struct outside_module *modules; /* by start */
	uint32_t module_count, module_capacity, next_module_id;
	struct unwind_all_modules_view *view;
	bool is_view_stale;
	uint64_t next_maps_reading_ns;
	uint64_t stack_start; /* where the kernel put its arguments; 0: not known */
	uint32_t next_internal_id, living_threads;
	struct outside_spool *spool; /* NULL: no sample yet */
	struct outside_waits *waits; /* NULL: none */
	/* ---- where the whole machine is sampled ---- */
	bool is_kernel_thread;
	char *cgroup;        /* NULL: not known */
	uint64_t *by_cpu_ns; /* of samples, by CPU; NULL: no sample yet */
	enum outside_membership membership;
	uint64_t next_check_ns; /* of membership */
};

#define OUTSIDE_TABLE_SIZE 1024u /* lists of each table */

/* Everything that is known; one thread works on it. */
struct outside_world {
	struct outside_process *processes[OUTSIDE_TABLE_SIZE];
	struct outside_thread *threads[OUTSIDE_TABLE_SIZE];
	struct outside_images images;
	char *spool_directory;
	const char *source_text; /* what the results say of where samples come from */
	uint64_t view_generation;
	uint64_t period_ns;
	uint64_t kernel_start;   /* of its code; 0: its frames are not wanted */
	uint32_t root_pid;       /* whose file says what the collector costs */
	uint64_t from_ns, to_ns; /* samples outside of this are left out */
	uint32_t depth_max;
	uint64_t *walked; /* frames of the sample at hand, depth_max of them */
	struct unwind_cache *cache;
	struct unwind_scratch *scratch;
	uint64_t samples, lost;
	uint64_t short_copies; /* stacks that go on beyond the copied piece */
	/* NULL: chosen processes are sampled; else the machine, or a part of it. */
	const struct outside_scope *scope;
	uint32_t cpu, cpu_count;          /* cpu: of the record at hand */
	enum outside_ring_kind ring_kind; /* of the record at hand */
	uint32_t raw_pid_offset;          /* in the data of wake-ups */
	bool keeps_ended;                 /* threads go on being reported after their end */
	uint64_t thread_cpu_ns;           /* of the collector's thread, when it has ended */
	uint64_t unknown_scope; /* samples of processes that ended before kymo looked at them */
};

int outside_world_init(struct outside_world *world);
/* Ends all processes that are left as such that kymo left, and frees everything. */
void outside_world_deinit(struct outside_world *world, uint64_t now_ns);
void outside_world_flush(struct outside_world *world, uint64_t now_ns);

struct outside_process *outside_process_find(struct outside_world *world, uint32_t pid);
/* Finds or adds both. NULL: out of memory. */
struct outside_thread *outside_thread_get(struct outside_world *world, uint32_t pid, uint32_t tid,
					  uint64_t time_ns);
/* NULL: not known. */
struct outside_thread *outside_thread_find(struct outside_world *world, uint32_t tid);
bool outside_thread_is_known(struct outside_world *world, uint32_t tid);
void outside_thread_set_name(struct outside_world *world, struct outside_thread *thread,
			     const char *name);
void outside_thread_end(struct outside_world *world, struct outside_thread *thread,
			uint64_t time_ns);
/* The process executes another program from now on. */
void outside_process_execute(struct outside_world *world, struct outside_thread *thread,
			     const char *name, uint64_t time_ns);
void outside_process_fork(struct outside_world *world, struct outside_process *parent, uint32_t pid,
			  uint64_t time_ns);
/* Takes away threads that ended before a time: their last samples come after their end. */
void outside_world_remove_ended(struct outside_world *world, uint64_t before_ns);
/* Executable, arguments and control group of a process that is there. */
void outside_process_read_identity(const struct outside_world *world,
				   struct outside_process *process);
/* Whether samples of the process are wanted at this time. */
bool outside_process_is_in_scope(struct outside_world *world, struct outside_process *process,
				 uint64_t time_ns);
/* Gives the process its spool file; false: it cannot be had. */
bool outside_process_begin_spool(struct outside_world *world, struct outside_process *process);
void outside_thread_record_start(struct outside_thread *thread);

/* ---- mappings (modules.c) ---- */

/* The kernel, as a module of the process. */
void outside_modules_write_kernel(const struct outside_world *world,
				  struct outside_process *process);
bool outside_modules_add(struct outside_process *process, const struct outside_mapping *mapping,
			 uint64_t time_ns);
void outside_modules_copy(struct outside_process *to, const struct outside_process *from);
void outside_modules_free(struct outside_process *process);
/* Reads what the process maps now. */
void outside_modules_read_maps(struct outside_process *process, uint64_t time_ns);
/* What the walker sees of them; NULL: out of memory. Looks for files and records what is new. */
const struct unwind_all_modules_view *outside_modules_get_view(struct outside_world *world,
							       struct outside_process *process);
const struct outside_module *outside_modules_find(const struct outside_process *process,
						  uint64_t address);

#endif
