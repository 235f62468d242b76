/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Stack walking that is safe in a signal handler.
 *
 * Outside the handler, unwind_compile_table_of_file_bytes() turns a module's .eh_frame into a
 * sorted table of (code offset, rule) rows, kept in a cache file by build-id and mapped read-only.
 * An immutable array of modules with their tables (struct unwind_all_modules_view) is published by
 * one atomic pointer; unwind_walk_stack() only reads it, its cache, and the stack.
 *
 * Signal-safety: unwind_walk_stack() and unwind_cache_* call nothing of libc, take no lock,
 * allocate nothing; the only system call is process_vm_readv on stacks outside the thread's own
 * (coroutines, alternate stacks).
 */
#ifndef KYMO_CORE_UNWIND_UNWIND_H
#define KYMO_CORE_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/spool.h"

/* A compiled table as it stands in memory and in the cache file (all offsets from the start of the
 * table): header, page index, pc offsets, rule ids, rules, expression byte-code. Position
 * independent. */
struct unwind_table;

/* One executable mapping. */
struct unwind_module {
	uint64_t start, end;              /* addresses */
	uint64_t bias;                    /* pc - bias is the table's offset: for files, start minus
					     the mapping's file offset; for the vDSO, its base */
	const struct unwind_table *table; /* NULL: no CFI (JIT, stripped of it); heuristics only */
	uint32_t id;                      /* the spool's module id */
};

/* Sorted by start, immutable once published. The generation must differ (in its low 13 bits) from
 * that of every view of the recent past in which an address of this view had another module or
 * another table; adding modules at new addresses may keep it. Before a generation's low bits come
 * round again, call unwind_cache_clear(). */
struct unwind_all_modules_view {
	uint64_t generation;
	uint32_t count;
	struct unwind_module modules[];
};

/* Process-wide lossy cache from pc to (module row, rule): lock-free, one 8-byte entry each; see
 * cache.c. */
struct unwind_cache;

/* What a walk starts from. */
struct unwind_start_registers {
	uint64_t ip, sp, bp;
	const uint64_t
		*gregs; /* ucontext gregs (REG_* order) or NULL when only ip, sp, bp are known */
};

/* Where stack words may be read without a system call. */
struct unwind_stack_bounds {
	uint64_t low, high; /* the thread's own stack mapping: reads in [sp, high) with low <= sp
			       are direct */
};

/* The frames of a thread's last walk; see frame_cache.h. */
#define UNWIND_FRAME_CACHE_ENTRIES 128
struct unwind_frame_cache_entry {
	uint64_t sp, bp, key;
};
struct unwind_frame_cache {
	uint64_t generation;
	uint32_t start, reserved;
	struct unwind_frame_cache_entry frames[UNWIND_FRAME_CACHE_ENTRIES],
		new_frames[UNWIND_FRAME_CACHE_ENTRIES];
};

/* Scratch that lives in the thread block, zero at first: the last walk, and a window for stacks
 * read by process_vm_readv. */
#define UNWIND_STACK_WINDOW_SIZE 16384
struct unwind_scratch {
	struct unwind_frame_cache frame_cache;
	bool met_unknown_address;   /* the last walk met an address that no module of the view holds
				     */
	bool met_interrupted_frame; /* the last walk passed a frame that a signal had interrupted */
	uint64_t *stack_pointers;   /* gets the stack pointer in each frame; NULL: not wanted */
	uint64_t window_address;
	uint32_t window_valid_bytes; /* valid bytes */
	uint8_t window[UNWIND_STACK_WINDOW_SIZE];
};

/* Code that calls are led through, between a function and its caller: stubs of instrumented
 * functions. Stacks are shown as if it were not there. */
enum unwind_trampoline_kind {
	UNWIND_TRAMPOLINE_NONE,   /* the frame is in no such code, or nothing is known about it */
	UNWIND_TRAMPOLINE_UNDONE, /* the frame is now that of the function that would be here */
	UNWIND_TRAMPOLINE_HIDDEN  /* the frame is none of the program's; its caller is found by the
				 tables */
};
struct unwind_trampoline_frame_info {
	uint64_t ip, sp;
	bool is_ip_exact;  /* ip is an interrupted pc, not a return address */
	const void *place; /* for the next call of the same walk; NULL at first */
};
struct unwind_trampoline_callbacks {
	/* Signal-safe. */
	enum unwind_trampoline_kind (*undo)(struct unwind_trampoline_frame_info *trampoline);
};
/* NULL: there is none. */
extern const struct unwind_trampoline_callbacks *_Atomic unwind_trampoline_callbacks;

/* Walks from `registers`. frames[0] is the interrupted pc itself; every later frame is to be looked
 * up at its value minus one: return addresses are stored as they are, the pc of a frame that a
 * signal interrupted as pc + 1. Writes at most `maximum` (>= 1) frames and returns their number
 * (>= 1). *end says how the walk ended. cache and scratch may be NULL (slower; stacks outside
 * `bounds` unreadable). Uses at most 650 bytes of stack. Cost: 5-8 ns a frame warm. */
uint32_t unwind_walk_stack(const struct unwind_all_modules_view *view, struct unwind_cache *cache,
			   const struct unwind_start_registers *registers,
			   const struct unwind_stack_bounds *bounds, struct unwind_scratch *scratch,
			   uint64_t *frames, uint32_t maximum, enum spool_stack_end *end);

/* ---- not for handlers ---- */

/* Compiles the table of an ELF image given as file bytes in memory (mapped privately or read; not
 * executed image). Allocates the result with mmap (raw syscall); *ret_size is its size, free with
 * unwind_table_free. 0 or -errno. Bounds-checked against malformed input (fuzzed). */
int unwind_compile_table_of_file_bytes(const uint8_t *image, size_t size, struct unwind_table **ret,
				       size_t *ret_size);
/* The same for an image as mapped in memory (vDSO): offsets are addresses minus base. */
int unwind_compile_table_of_mapped_image(const uint8_t *base, size_t size,
					 struct unwind_table **ret, size_t *ret_size);
void unwind_table_free(const struct unwind_table *table, size_t size);
/* Checks a table that comes from a cache file; everything later trusts it. */
bool unwind_table_is_valid(const struct unwind_table *table, size_t size);
/* Number of rows, for statistics and tests. */
uint32_t unwind_table_get_row_count(const struct unwind_table *table);

/* Maps DIRECTORY/<hex build-id>-<hex file size>.unwind read-only after validation; or compiles from
 * the ELF file at `path` and stores it (temporary name, rename; failure to store is no error).
 * directory NULL: no cache. inode 0: any, else -ESTALE when `path` is no longer the file with these
 * numbers (as stat gives them; the device in /proc/self/maps differs on btrfs and overlayfs). Raw
 * system calls only; needs 16 KiB of stack. -ENODATA: the file has no unwind information. */
int unwind_table_load_or_compile(const char *directory, const uint8_t *build_id,
				 uint32_t build_id_size, const char *path, uint64_t device,
				 uint64_t inode, const struct unwind_table **ret, size_t *ret_size,
				 bool *ret_cached);

struct unwind_cache *unwind_cache_create(void); /* mmap, 128 KiB; NULL on failure */
/* Forgets everything; walks may be under way. */
void unwind_cache_clear(struct unwind_cache *cache);

#endif
