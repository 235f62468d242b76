/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of functions.c: the loaded bytes of a file, marks on its code addresses, and what is known
 * about a function while its code is looked through.
 */
#ifndef KYMO_BINARY_FUNCTIONS_INTERNAL_H
#define KYMO_BINARY_FUNCTIONS_INTERNAL_H

#include <string.h>

#include "binary/functions.h"
#include "binary/functions_frames.h"
#include "binary/instruction.h"

/* A bit for each byte of code. */
enum finder_mark {
	MARK_TARGET,  /* control may arrive from elsewhere */
	MARK_START,   /* a function begins here */
	MARK_ENTRY,   /* it is called, exported, or its address is taken */
	MARK_SUSPECT, /* it is reached as only parts of functions are: by tables, by unwinding */
	MARK_TWICE,   /* returns twice, or jumps to what does */
	MARK_COUNT
};

#define SOURCE_MANY UINT32_MAX

/* What is known of a function beside what users of functions.h see. */
struct finder_function {
	uint32_t frame;   /* 1 + index in frames; 0: known by symbols alone */
	uint32_t source;  /* 1 + index of the function that jumps to it; SOURCE_MANY */
	bool live_stack;  /* ... which uses memory below rsp */
	bool has_symbol;  /* of a symbol table, not named as a part of another function */
	bool named_part;  /* ".cold" */
	bool jumps_aside; /* into the middle of another function */
	bool reads_return, enters_itself;
	bool leads_twice; /* it jumps to what returns twice */
};

/* All symbols of one address. */
struct finder_symbol {
	uint64_t vaddr, size;
	uint8_t reason; /* enum plan_reason, by name or type */
	bool function, global, part;
	bool called; /* by V8's generated code */
};

struct finder {
	const struct elf_file *file;
	const struct symbols *symbols;
	struct functions *functions;
	struct finder_function *extra; /* beside functions->list */
	size_t capacity;
	struct frames frames;
	struct finder_symbol *names; /* by address, no two the same */
	size_t name_count, name_capacity;
	uint64_t *marks[MARK_COUNT];
	uint64_t *twice_slots; /* words of the GOT that lead to what returns twice, sorted */
	size_t twice_slot_count;
	uint64_t code_low, code_size; /* functions->targets_low to targets_high */
	bool absolute;                /* ET_EXEC: addresses stand in the code as they are */
	bool go;                      /* Go's run time */
};

static inline bool finder_in_code(const struct finder *finder, uint64_t vaddr)
{
	return vaddr - finder->code_low < finder->code_size;
}

static inline bool finder_is(const struct finder *finder, enum finder_mark mark, uint64_t vaddr)
{
	uint64_t bit = vaddr - finder->code_low;

	return finder_in_code(finder, vaddr) && finder->marks[mark][bit / 64] >> bit % 64 & 1;
}

/* From any of the threads that look through code. Most marks are there already. */
static inline void finder_mark(struct finder *finder, enum finder_mark mark, uint64_t vaddr)
{
	uint64_t at = vaddr - finder->code_low, bit = (uint64_t)1 << at % 64, *word;

	if (!finder_in_code(finder, vaddr))
		return;
	word = &finder->marks[mark][at / 64];
	if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

/* Something holds this address: where a function begins there, it may be called. */
void finder_mark_taken(struct finder *finder, uint64_t vaddr);

/* functions_load.c: segments, sections of code. */
int finder_load(struct finder *finder, struct problem *problem);
/* functions_symbols.c: what symbol tables say, by address. */
int finder_read_symbols(struct finder *finder);
/* functions_names.c: what is known about functions of this name: a reason not to touch them. */
enum plan_reason finder_name_reason(const char *name);
bool finder_name_is_part(const char *name);
/* Is it called by V8's generated code? And is it what V8 can be told by whom to ask (struct
 * plan_header)? */
bool finder_name_is_called(const char *name);
bool finder_name_sets_resolver(const char *name);
/* functions_references.c: relocations, data, landing pads. */
int finder_mark_references(struct finder *finder);
/* functions_scan.c: looks through all code. */
int finder_scan(struct finder *finder);
/* functions_decide.c */
void finder_note_linker_code(struct finder *finder);
void finder_decide(struct finder *finder);
/* functions_stack.c: see there. */
struct stack_watch {
	struct frame_walk walk;
	bool described;    /* by unwind tables that follow the stack pointer */
	bool straight;     /* no jump or label since the function's first byte */
	int64_t depth;     /* bytes pushed since then */
	bool reads_return; /* ... or changes it, or the caller's stack pointer */
	bool red_zone;     /* memory below rsp */
	bool switches;     /* rsp comes from elsewhere */
	bool mangles;      /* holds the C library's pointer guard */
};
void stack_watch_start(struct stack_watch *watch, const struct finder *finder, uint32_t frame,
		       uint64_t vaddr);
void stack_watch_step(struct stack_watch *watch, const uint8_t *bytes,
		      const struct instruction *instruction, uint64_t vaddr);

/* Most instructions need no step: neither an operand on the stack, nor rsp among their registers,
 * nor one of the opcodes that use it without naming it. */
static inline bool stack_watch_concerns(const struct instruction *instruction)
{
	unsigned opcode = instruction->opcode;

	if (instruction->flow != INSTRUCTION_NEXT)
		return true;
	if (instruction->has_modrm && instruction->modrm < 0xc0)
		return (instruction->modrm & 6) == 4 || (instruction->modrm >> 3 & 7) == 4 ||
		       instruction->prefixes & INSTRUCTION_PREFIX_FS || opcode == 0x8f ||
		       opcode == 0xff;
	if (instruction->map || instruction->vex)
		return false;
	if (instruction->has_modrm)
		return (instruction->modrm & 7) == 4 || (instruction->modrm >> 3 & 7) == 4 ||
		       opcode == 0x8f || opcode == 0xff;
	return (opcode & 0xf0) == 0x50 || (opcode & 0xfd) == 0x68 || (opcode & 0xfe) == 0x9c;
}

int finder_add_function(struct finder *finder, uint64_t vaddr, uint64_t size, uint32_t frame);
struct function *finder_function_at(const struct finder *finder, uint64_t vaddr);

#endif
