/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of functions.c: the loaded bytes of a file, marks on its code addresses, and what is known
 * about a function while its code is looked through.
 */
#ifndef KYMO_BINARY_FUNCTIONS_PRIVATE_H
#define KYMO_BINARY_FUNCTIONS_PRIVATE_H

#include <pthread.h>
#include <string.h>

#include "binary/functions/frames.h"
#include "binary/functions/functions.h"
#include "binary/instruction.h"

/* A bit for each byte of code. */
enum finder_address_mark_kind {
	MARK_CONTROL_TARGET,          /* control may arrive from elsewhere */
	MARK_FUNCTION_START,          /* a function begins here */
	MARK_CALLED_OR_ADDRESS_TAKEN, /* it is called, exported, or its address is taken */
	MARK_PROBABLE_FUNCTION_PART,  /* it is reached as only parts of functions are: by tables, by
				       * unwinding
				       */
	MARK_RETURNS_TWICE,           /* returns twice, or jumps to what does */
	MARK_USED_AS_DATA,            /* read or copied, or an address is calculated from here */
	MARK_KIND_COUNT
};

#define SEVERAL_JUMP_SOURCES UINT32_MAX

/* What is known of a function beside what users of functions.h see. */
struct finder_function_facts {
	uint32_t frame;  /* 1 + index in frames; 0: known by symbols alone */
	uint32_t source; /* 1 + index of the function that jumps to it; SEVERAL_JUMP_SOURCES */
	bool source_uses_red_zone; /* ... which uses memory below rsp */
	bool has_symbol;           /* of a symbol table, not named as a part of another function */
	bool is_named_as_part;     /* ".cold" */
	bool jumps_into_function_middle; /* into the middle of another function */
	bool reads_return_address, jumps_to_own_entry;
	bool jumps_to_returning_twice; /* it jumps to what returns twice */
	bool looks_at_caller; /* it loads its return address, or jumps to what looks at its caller
			       */
	bool asks_frame_address; /* it asks an unwinder for the CFA of a frame */
};

/* What matters here of functions of other files. */
enum finder_import_kind {
	IMPORT_OTHER,
	IMPORT_RETURNS_TWICE,
	IMPORT_READS_CALLER,  /* dlsym: the answer depends on who calls */
	IMPORT_COPIES_MEMORY, /* its second argument is read as data */
	IMPORT_FRAME_ADDRESS  /* _Unwind_GetCFA */
};

/* A word of the GOT, or a stub of a procedure linkage table, that leads to such a function. */
struct finder_import_place {
	uint64_t vaddr;
	enum finder_import_kind kind;
};

/* A word of the GOT that holds an address of the file's own code. */
struct finder_code_slot {
	uint64_t vaddr, target;
};

#define GOT_SECTIONS_MAX 4u

struct finder_got_section {
	uint64_t vaddr, size;
};

struct finder_import_list {
	struct finder_import_place *list; /* by address */
	size_t count, capacity;
};

/* A function that ends in a jump to another one; both by index. */
struct finder_tail_jump {
	uint32_t from, to;
};

/* All symbols of one address. */
struct finder_symbol {
	uint64_t vaddr, size;
	uint8_t reason; /* enum plan_reason, by name or type */
	bool is_function, is_global, is_part;
	bool is_called_by_v8; /* by V8's generated code */
};

struct function_finder {
	const struct elf_file *file;
	const struct symbol_table *symbols;
	struct functions *functions;
	struct finder_function_facts *function_facts; /* beside functions->list */
	size_t capacity;
	struct eh_frame_table frames;
	struct finder_symbol *address_symbols; /* by address, no two the same */
	size_t address_symbol_count, address_symbol_capacity;
	uint64_t *address_mark_bits[MARK_KIND_COUNT];
	struct finder_import_list import_slots, import_stubs;
	struct finder_code_slot *code_slots; /* by address */
	size_t code_slot_count, code_slot_capacity;
	struct finder_tail_jump *tail_jumps;
	size_t tail_jump_count, tail_jump_capacity;
	pthread_mutex_t *tail_jump_lock; /* while several threads look through code */
	uint64_t code_low, code_size;    /* functions->targets_low to targets_high */
	struct finder_got_section got[GOT_SECTIONS_MAX]; /* linkers make one or two */
	unsigned got_count;
	bool has_absolute_addresses; /* ET_EXEC: addresses stand in the code as they are */
	bool has_go_runtime;         /* Go's run time */
};

static inline bool finder_is_in_code(const struct function_finder *finder, uint64_t vaddr)
{
	return vaddr - finder->code_low < finder->code_size;
}

static inline bool finder_has_mark(const struct function_finder *finder,
				   enum finder_address_mark_kind mark, uint64_t vaddr)
{
	uint64_t bit = vaddr - finder->code_low;

	return finder_is_in_code(finder, vaddr) &&
	       finder->address_mark_bits[mark][bit / 64] >> bit % 64 & 1;
}

/* From any of the threads that look through code. Most marks are there already. */
static inline void finder_mark_address(struct function_finder *finder,
				       enum finder_address_mark_kind mark, uint64_t vaddr)
{
	uint64_t at = vaddr - finder->code_low, bit = (uint64_t)1 << at % 64, *word;

	if (!finder_is_in_code(finder, vaddr))
		return;
	word = &finder->address_mark_bits[mark][at / 64];
	if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

/* Something holds this address: where a function begins there, it may be called. */
void finder_mark_address_taken(struct function_finder *finder, uint64_t vaddr);

/* load.c: segments, sections of code. */
int finder_read_loaded_segments(struct function_finder *finder, struct problem *problem);
/* symbols.c: what symbol tables say, by address. */
int finder_read_symbols(struct function_finder *finder);
/* names.c: what is known about functions of this name: a reason not to touch them. */
enum plan_reason finder_get_plan_reason_by_name(const char *name);
bool finder_name_is_cold_part(const char *name);
/* Is it called by V8's generated code? And is it what V8 can be told by whom to ask (struct
 * plan_header)? */
bool finder_name_is_called_by_v8(const char *name);
bool finder_name_is_v8_resolver_setter(const char *name);
/* A function that only a run time has whose unwinder knows its compiled code by return addresses.
 */
bool finder_name_is_of_own_unwinder(const char *name);
bool finder_name_is_of_run_time_image(const char *name);
/* imports.c: functions of other files that matter, and what leads to them. */
enum finder_import_kind finder_get_import_kind_by_name(const char *name);
int finder_add_import_slot(struct function_finder *finder, const char *name, uint64_t slot);
/* When all slots are known. */
int finder_find_stubs_of_imports(struct function_finder *finder);
/* Before slots are added. */
void finder_find_got(struct function_finder *finder);
int finder_add_code_slot_if_in_got(struct function_finder *finder, uint64_t slot, uint64_t target);
/* The code address that a word of the GOT holds; 0: none. */
uint64_t finder_get_code_address_in_slot(const struct function_finder *finder, uint64_t vaddr);
enum finder_import_kind finder_get_import_at(const struct finder_import_list *imports,
					     uint64_t vaddr);
/* The import that an instruction calls or jumps to. */
enum finder_import_kind finder_get_import_of_branch(const struct function_finder *finder,
						    const struct instruction *instruction);
/* callers.c: who looks at its caller, and by which jumps that becomes somebody else's. */
int finder_add_tail_jump(struct function_finder *finder, uint32_t from, uint32_t to);
int finder_set_reason_of_jumps_to_caller_readers(struct function_finder *finder);
/* Code whose unwinding asks for frame addresses: as foreign code, in struct plan_header. */
void finder_set_foreign_range_of_frame_address_users(struct function_finder *finder);
/* references.c: relocations, data, landing pads. */
int finder_mark_references(struct function_finder *finder);
/* scan.c: looks through all code. */
int finder_scan_code_and_judge_patching(struct function_finder *finder);
/* decide.c */
void finder_set_plan_reason_of_linker_code(struct function_finder *finder);
void finder_decide_patchability(struct function_finder *finder);
/* stack.c: see there. */
struct stack_watch_state {
	struct cfa_walk_state walk;
	bool described;               /* by unwind tables that follow the stack pointer */
	bool is_straight_line_so_far; /* no jump or label since the function's first byte */
	int64_t depth;                /* bytes pushed since then */
	bool reads_return_address;    /* ... or changes it, or the caller's stack pointer */
	bool loads_return_address;    /* by an operand that is where it stands */
	bool uses_red_zone;           /* memory below rsp */
	bool switches;                /* rsp comes from elsewhere */
	bool uses_pointer_guard;      /* holds the C library's pointer guard */
};

/* code_uses.c: code addresses that a function holds, and does more with than calling them. */
#define CODE_ADDRESS_SLOTS_MAX 8u
struct code_address_watch {
	uint64_t registers[16];  /* the code address that one holds; 0: none */
	uint32_t held_registers; /* bits */
	uint32_t copied_size;    /* the constant in edx; 0: none */
	uint64_t vaddr, size;    /* of the function */
	uint64_t wide_move;      /* address of the movabs that was the last instruction; 0: none */
	uint32_t slot_count;
	struct code_address_slot { /* words of the frame */
		int32_t displacement;
		uint8_t base;
		uint64_t address;
	} slots[CODE_ADDRESS_SLOTS_MAX];
};
void code_address_watch_step(struct code_address_watch *watch, struct function_finder *finder,
			     const uint8_t *bytes, const struct instruction *instruction,
			     uint64_t vaddr);
/* stack.c: the bits of REX that concern an operand's registers, whatever prefix holds them. */
uint8_t instruction_get_operand_rex_bits(const uint8_t *bytes,
					 const struct instruction *instruction);

void stack_watch_begin_at_function(struct stack_watch_state *watch,
				   const struct function_finder *finder, uint32_t frame,
				   uint64_t vaddr);
void stack_watch_step_instruction(struct stack_watch_state *watch, const uint8_t *bytes,
				  const struct instruction *instruction, uint64_t vaddr);

/* Most instructions need no step: neither an operand on the stack, nor rsp among their registers,
 * nor one of the opcodes that use it without naming it. */
static inline bool instruction_needs_stack_watch_step(const struct instruction *instruction)
{
	unsigned opcode = instruction->opcode;

	if (instruction->flow != INSTRUCTION_NEXT)
		return true;
	if (instruction->has_modrm && instruction->modrm < 0xc0)
		return (instruction->modrm & 6) == 4 || (instruction->modrm >> 3 & 7) == 4 ||
		       instruction->prefix_bits & INSTRUCTION_PREFIX_FS || opcode == 0x8f ||
		       opcode == 0xff;
	if (instruction->opcode_map || instruction->has_vector_prefix)
		return false;
	if (instruction->has_modrm)
		return (instruction->modrm & 7) == 4 || (instruction->modrm >> 3 & 7) == 4 ||
		       opcode == 0x8f || opcode == 0xff;
	return (opcode & 0xf0) == 0x50 || (opcode & 0xfd) == 0x68 || (opcode & 0xfe) == 0x9c;
}

int finder_add_function(struct function_finder *finder, uint64_t vaddr, uint64_t size,
			uint32_t frame);
struct function *finder_get_function_starting_at(const struct function_finder *finder,
						 uint64_t vaddr);

#endif
