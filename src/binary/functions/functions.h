/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of an ELF file: where each begins and ends, and which addresses something may jump
 * or return to.
 *
 * Sources, in order of trust: the ranges of .eh_frame (present in stripped files), symbol tables
 * (.symtab, .dynsym, .gnu_debugdata), for files without .eh_frame symbols alone. Cold parts of
 * functions are distinguished by their CFI (the CFA at their first byte is not rsp + 8), by names
 * (".cold", ".part"), and by being reached by branches only.
 *
 * Targets: direct branches and calls of all code, landing pads (LSDA), dynamic symbols, .init_array
 * and relocation addends, code addresses in immediates and rip-relative leas, jump tables.
 *
 * Works on link-time addresses. The file's code is read into memory of our own. Memory: about 64
 * bytes a function and 2 bits a byte of code.
 */
#ifndef KYMO_BINARY_FUNCTIONS_FUNCTIONS_H
#define KYMO_BINARY_FUNCTIONS_FUNCTIONS_H

#include "binary/elf.h"
#include "binary/functions/frames.h"
#include "binary/symbols/symbols.h"
#include "common/problem.h"
#include "kymo/plan.h"

/* A stretch of executable bytes. */
struct loaded_byte_range {
	uint64_t vaddr, size;
	const uint8_t *bytes;
};

struct function {
	uint64_t vaddr;
	uint32_t size;
	uint32_t space;             /* bytes up to the next function: padding may be used */
	uint32_t instruction_count; /* 0: could not be decoded */
	uint16_t flags;             /* enum plan_function_flags */
	uint16_t loops, blocks;
	uint8_t reason;   /* enum plan_reason: why not to touch it, as far as known from outside */
	const char *name; /* of its symbol, mangled; NULL: none */
};

struct functions {
	struct function *list; /* by address, no two the same */
	size_t count;
	struct loaded_byte_range *code_ranges;
	size_t code_range_count;
	struct loaded_byte_range *loaded_ranges; /* all segments; code points into them */
	size_t loaded_range_count;
	uint64_t low, high;                           /* link-time addresses of all PT_LOADs */
	uint64_t entry;                               /* e_entry */
	uint64_t foreign_code_low, foreign_code_high; /* as in struct plan_header; 0, 0: none */
	uint64_t v8_set_resolver_vaddr;               /* the same */
	bool asks_frame_addresses; /* why there is foreign code (struct plan_header) */
	bool shifts_frames;        /* code of it adds to rsp and rbp what it calculated */
	bool is_run_time_image;    /* a run time reads and changes its code */
	bool unwinds_by_itself; /* it has a run time that does (finder_name_is_of_own_unwinder) */
	uint64_t *targets;      /* bits, a byte of [low, high) of executable ranges; see
				   functions_address_is_control_target */
	uint64_t targets_low, targets_high;
	struct eh_frame_table frames; /* .eh_frame */
};

/* `symbols` may be NULL (then names are NULL and only ranges of .eh_frame are known). */
int functions_find_in_file(const struct elf_file *file, const struct symbol_table *symbols,
			   struct functions **ret, struct problem *problem);
void functions_destroy(struct functions *functions);

/* May control arrive at this address other than from the instruction before it? */
bool functions_address_is_control_target(const struct functions *functions, uint64_t vaddr);
/* The bytes at an address, and how many follow in the same range; NULL: no code there. */
const uint8_t *functions_get_code_bytes_at(const struct functions *functions, uint64_t vaddr,
					   size_t *ret_size);
/* The same of any loaded byte, also of data. */
const uint8_t *functions_get_loaded_bytes_at(const struct functions *functions, uint64_t vaddr,
					     size_t *ret_size);
/* The function that holds the address, or NULL. */
const struct function *functions_find_at_address(const struct functions *functions, uint64_t vaddr);

#endif
