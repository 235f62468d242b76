/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Frames of interpreted code (Python's) in native stacks. The interpreters of the process are found
 * by symbols that their files export; a sample's handler, or whoever else walks a stack, reads the
 * interpreter's own frames of that thread, names their code objects by ids (code_table.h), and puts
 * them where the native frames of the evaluation loop stand.
 *
 * kind.h is the seam between this and one interpreter: its row in interpreters.c says by which
 * symbols it is found and which functions read its frames.
 *
 * Signal-safety: interpreters_merge_frames() may be called anywhere. What it reads is either memory
 * that must be there (python.c says why) or read by process_vm_readv, which fails instead of
 * faulting. All others: the background thread.
 */
#ifndef KYMO_CORE_INTERPRETERS_INTERPRETERS_H
#define KYMO_CORE_INTERPRETERS_INTERPRETERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/spool.h"

#define INTERPRETER_SYMBOLS_MAX 3

struct interpreter_kind;

/* What a file says of the interpreter that it contains. */
struct interpreter_file {
	const struct interpreter_kind *kind; /* NULL: it contains none */
	uint64_t code_bias;                  /* of its code: address as linked minus file offset */
	uint32_t version;                    /* as the kind understands it; 0: not known */
	struct {
		uint64_t address, size; /* as linked; 0: not exported */
	} symbols[INTERPRETER_SYMBOLS_MAX];
};

/* Looks for an interpreter in the ELF file behind a descriptor. */
void interpreters_inspect_file(int fd, const char *path, struct interpreter_file *ret);
/* The file is mapped: `start` is the address of the mapping of its code, `offset` what it maps. */
/* NULL, or why its functions are not shown: a text for a notice. */
const char *interpreters_note_module(const struct interpreter_file *file, uint64_t start,
				     uint64_t offset);
void interpreters_note_module_gone(uint64_t start);
/* A library is about to be closed, and has been: between the two no interpreter is looked at, and
 * after that those that are there still. By any thread. */
void interpreters_pause(void);
void interpreters_resume_mapped(void);
/* Searches for what walks have missed. */
void interpreters_run_round(void);
/* How many different names of tasks may be frames; 0: none at all. */
void interpreters_set_task_name_maximum(uint32_t maximum);
/* What was written of code objects stands in a file of another run. */
void interpreters_reset_for_new_run(void);

/* Where descriptions of code objects go. */
struct interpreted_code_sink {
	bool (*write_record)(void *context, enum spool_record kind, const uint8_t *payload,
			     size_t size);
	void *context;
};

/* A stack that was walked. */
struct native_stack {
	const uint64_t *frames, *stack_pointers; /* innermost first */
	uint32_t count;
	bool is_complete;
	uint64_t stack_high;     /* end of the thread's own stack; 0: not known */
	uint32_t tid;            /* of another thread, which waits; 0: the calling one */
	uint64_t pthread;        /* of that one: its pthread_t; 0: not known */
	uint64_t first_argument; /* of the call that it is in (rdi), as far as is known */
	/* A signal interrupted one of the frames: the interpreter may be in the midst of a change.
	 */
	bool has_interrupted_frame;
	/* Only where it begins is known, so not whether that is so. There is time to ask the kernel
	 * for what code is at an address. */
	bool is_not_walked;
};

#define INTERPRETED_SCRATCH_SIZE 16384

/* Memory for one merge, and what comes of it. */
struct interpreted_merge {
	uint64_t *items; /* working memory: twice `maximum` */
	uint64_t *frames;
	uint32_t maximum;
	uint8_t *scratch; /* INTERPRETED_SCRATCH_SIZE bytes; NULL: code is not described */
	struct interpreted_code_sink sink;
	uint64_t *interpreter_thread; /* remembers what is found out of another thread; or NULL */
	bool names_tasks;             /* tasks of an event loop are frames; needs `scratch` */
	/* Results. */
	uint32_t lost_frame_walks, lost_code; /* walks that failed half-way; code not described */
	bool is_cut;                          /* there were more than `maximum` frames */
	enum spool_interpreter_state thread_state;
};

/* Is there an interpreter to look at? */
static inline bool interpreters_are_present(void)
{
	extern _Atomic uint32_t interpreters_present_count;

	return atomic_load_explicit(&interpreters_present_count, memory_order_acquire) != 0;
}

/* Returns the number of frames in merge->frames; 0: the thread runs no interpreted code, and the
 * native frames are what there is. */
uint32_t interpreters_merge_frames(const struct native_stack *stack,
				   struct interpreted_merge *merge);
/* A value that differs where the interpreted frames do, of the calling thread; 0: it runs no
 * interpreted code. Of the stack only the first frame need be there. */
uint64_t interpreters_hash_frames(const struct native_stack *stack,
				  struct interpreted_merge *merge);
/* The innermost interpreted frame of the calling thread; 0: it runs no interpreted code. */
uint64_t interpreters_find_innermost_frame(const struct native_stack *stack,
					   struct interpreted_merge *merge);

#endif
