/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The patch plan: everything that instrumenting one ELF file takes, made once from the file and
 * kept by its build-id; and how an instrumented file asks for its plan.
 *
 * A plan holds the finished code of all stubs. That is possible because a module's stubs lie in an
 * *arena* at a fixed distance from it, `arena_vaddr` in the module's own link-time addresses:
 *
 *   arena := data page (RW) | trampoline code (RX, PLAN_TRAMPOLINE_SIZE) | stubs (RX) and their
 * unwind tables
 *
 * The data page is steered by the runtime (struct plan_arena_data); the trampoline code is the
 * runtime's, at fixed offsets from the arena's start, so stubs call it directly. Whoever applies a
 * plan maps the arena and writes the patches of the functions wanted: the runtime at start-up, kymo
 * from outside into a running process, the rewriter into a file. Nothing is decoded in the process.
 *
 * A plan is independent of what was selected: that is a byte per function (enum plan_mode) in
 * a file of its own. Functions are numbered by their place in the plan; in a process a function's
 * id is that plus the module's first id.
 *
 * All integers little endian; all offsets from the start of the plan; sections 8-byte aligned,
 * stubs page-aligned.
 */
#ifndef KYMO_PLAN_H
#define KYMO_PLAN_H

#include <stdint.h>

#define PLAN_MAGIC   "KYMOPLN"
#define PLAN_VERSION 8u

#define PLAN_PAGE            4096u
#define PLAN_DATA_SIZE       PLAN_PAGE
#define PLAN_TRAMPOLINE_SIZE (2 * PLAN_PAGE)
#define PLAN_STUBS           (PLAN_DATA_SIZE + PLAN_TRAMPOLINE_SIZE) /* offset in the arena */

/* Entries of the trampoline code, offsets in the arena. */
#define PLAN_TRAMPOLINE_ENTRY (PLAN_DATA_SIZE + 0x000)
#define PLAN_TRAMPOLINE_EXIT  (PLAN_DATA_SIZE + 0x400)
#define PLAN_TRAMPOLINE_COUNT (PLAN_DATA_SIZE + 0x800)

/* Ids are 20 bits of a word of the call stream (kymo/spool.h); 0 is none. */
#define PLAN_ID_MAX ((1u << 20) - 1)

/* Start of the data page. Wiped in forked children (MADV_WIPEONFORK), so that nothing is recorded
 * there before the runtime is ready; zero in the file of a rewritten program, whose stubs then pass
 * straight through. */
struct plan_arena_data {
	uint64_t trampoline; /* enum plan_trampoline */
	uint64_t counts; /* of the thread's pointer to its counts, from %fs:0; 0: the trampoline is
			  * closed
			  */
};

enum plan_trampoline {
	PLAN_TRAMPOLINE_CLOSED, /* every stub passes straight through */
	PLAN_TRAMPOLINE_FAST,   /* words are written by the trampoline code itself */
	PLAN_TRAMPOLINE_SLOW, /* exits go the slow way (entries do where the thread's limit is 0) */
	PLAN_TRAMPOLINE_COUNTS /* only stubs that count do so, others pass straight through: in the
				  data page as CLOSED, with its word for counts */
};

/* At the end of the trampoline pages, filled before they become executable; survive fork. */
struct plan_trampoline_constants {
	uint64_t id_base;
	uint64_t thread_offset; /* of the runtime's per-thread state, from %fs:0 */
	uint64_t entry_slow, exit_slow, count_slow; /* the runtime's functions */
	uint64_t shadow_nodes; /* address of the head of the list of shadow stacks, for unwinders */
	uint64_t foreign_low, foreign_size; /* addresses of struct plan_header's foreign code */
	uint64_t stubs_size;                /* of the stubs' code */
	uint64_t first_count;               /* what the module's counts lie behind the thread's */
	uint64_t entry_sums, exit_sums;     /* the same for calls that are summed up in place */
	uint64_t reserved[4];
};
#define PLAN_TRAMPOLINE_CONSTANTS (PLAN_STUBS - 128u) /* offset in the arena */

/* A displaced call begins with these bytes (binary/plan/relocate.c): after 5 of them the stack is 8
 * bytes deeper, after 6 16, and after 19, at a jump, 8 again. */
#define PLAN_CALL_COPY "\x48\x8d\x64\x24\xf8\x51\x48\x8d\x0d"
#define PLAN_CALL_JUMP 19u

/* What expressions in unwind tables know of shadow stacks (instrument/shadow.h): nodes begin with a
 * pointer to the next; entries are 24 bytes and begin with the return address; the first one is
 * none, and behind the last one in use is one with slot 0. */
#define PLAN_SHADOW_ENTRIES 16 /* offset in a node of the pointer to its entries */
#define PLAN_SHADOW_SLOT    8  /* offset in an entry */
#define PLAN_SHADOW_ENTRY   24

/* Why a function is not patched, or that it can be. One table gives their texts
 * (binary/plan/reasons.c). Append only. */
enum plan_reason {
	PLAN_PATCHABLE,
	PLAN_TARGET_IN_WINDOW,  /* something jumps to an instruction that would be overwritten */
	PLAN_TOO_SHORT,         /* less than five bytes before the next function */
	PLAN_UNDECODABLE,       /* bytes that are no instruction */
	PLAN_UNRELOCATABLE,     /* an instruction that works only where it stands */
	PLAN_FRAGMENT,          /* a part of another function (cold code), not an entry */
	PLAN_NO_RETURN_ADDRESS, /* _start, signal trampolines: called by nobody */
	PLAN_READS_RETURN,      /* uses its return address or its caller's stack pointer */
	PLAN_RETURNS_TWICE,     /* setjmp, vfork, getcontext and their kin */
	PLAN_UNWINDER,          /* part of unwinding or of the dynamic loader's way to code */
	PLAN_LINKER_CODE,       /* PLT, init and fini code, what the linker made */
	PLAN_RESOLVER,          /* IFUNC resolver: runs before the program is relocated */
	PLAN_NO_SPACE,          /* no stub can be reached */
	PLAN_OVERLAPS,          /* shares code with another function */
	PLAN_UNCERTAIN,         /* its extent is not known for sure */
	PLAN_NO_FRAME, /* unwind tables do not know it: made by hand, or by a compiler of its own */
	PLAN_COUNTED_ELSEWHERE, /* a block that is executed as often as function `site`, which is
				   patched */
	PLAN_USED_AS_DATA,      /* its code is read or copied, or an address in it is calculated */
	PLAN_REASON_COUNT
};

enum plan_how {
	PLAN_HOW_NONE,
	PLAN_HOW_JUMP,   /* five bytes at the entry become a jump to the stub */
	PLAN_HOW_NOPS,   /* the compiler left room there */
	PLAN_HOW_PUN,    /* the jump shares bytes with what follows it */
	PLAN_HOW_ISLAND, /* two bytes jump to a jump in padding near by */
};

enum plan_function_flags {
	PLAN_FUNCTION_LOCAL = 1,         /* not visible outside its file */
	PLAN_FUNCTION_RETURNS_NOT = 2,   /* has no return instruction and no tail call */
	PLAN_FUNCTION_INDIRECT = 4,      /* holds calls through pointers */
	PLAN_FUNCTION_TAIL = 8,          /* ends in a jump to another function */
	PLAN_FUNCTION_LOOPS = 16,        /* holds a loop */
	PLAN_FUNCTION_NO_SYMBOL = 32,    /* known by unwind tables alone */
	PLAN_FUNCTION_BRANCHES_OUT = 64, /* jump tables were not all understood */
	/* Not functions but places in one, whose executions are counted: the head of a loop, a
	 * block. They stand after all functions, in plans made for that. */
	PLAN_FUNCTION_IS_LOOP = 128,
	PLAN_FUNCTION_IS_BLOCK = 256
};
#define PLAN_PLACES (PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK)

struct plan_function {
	uint64_t vaddr;        /* link-time address of its first byte */
	uint32_t size;         /* bytes */
	uint32_t instructions; /* decoded ones */
	uint32_t stub;         /* offset in the arena of its stub; 0: not patchable */
	uint32_t site;         /* its site; PLAN_COUNTED_ELSEWHERE: a function or place; else
				  undefined when not patchable */
	uint8_t reason;        /* enum plan_reason */
	uint8_t how;           /* enum plan_how */
	uint16_t flags;        /* enum plan_function_flags */
	uint16_t loops;
	uint16_t blocks;
};

/* What is written where. Sites are in the order of addresses, those of functions before those of
 * places. */
struct plan_site {
	uint64_t vaddr;
	uint32_t function;
	uint8_t length;      /* bytes that change, at most 8 */
	uint8_t window;      /* bytes whose instructions moved: no thread may be inside */
	uint16_t move_count; /* of moves from first_move on */
	uint32_t first_move;
	uint32_t island; /* 1 + index of a site that must be written with it; 0: none */
	uint8_t original[8];
	uint8_t patched[8];
};

/* An instruction in a window (the first at offset 0), and where its copy is. */
struct plan_move {
	uint32_t from; /* offset from the site */
	uint32_t to;   /* offset in the arena */
};

enum plan_module_flags {
	PLAN_MODULE_COPIES_STACKS = 1,        /* it moves frames on the stack that it runs on */
	PLAN_MODULE_ASKS_FRAME_ADDRESSES = 2, /* why its foreign code is foreign: its unwinding
						 relies on where frames are, so whatever it calls,
						 in any module, is called unhooked */
	PLAN_MODULE_UNWINDS_BY_ITSELF = 4 /* it looks return addresses up in tables of its own */
};

struct plan_table {
	uint64_t offset;
	uint64_t count; /* elements; bytes for stubs and frames */
};

struct plan_header {
	char magic[8];
	uint32_t version, header_size;
	uint8_t build_id[32];
	uint32_t build_id_size; /* 0: none */
	uint32_t variant;       /* of the planner, and what it was asked for (binary/plan/plan.h) */
	uint64_t file_size;     /* of the ELF file that it was made from */
	uint64_t low, high;     /* link-time addresses that the module takes */
	/* Code that no unwind table describes (a language runtime's own, such as V8's): it may look
	 * at the return addresses of what it calls, so calls from there are not recorded. */
	uint64_t foreign_low, foreign_high;
	/* V8's own way out of that: a function of the module (V8::SetReturnAddressLocationResolver)
	 * that is told whom to ask where a return address is. Link-time address; 0: none. */
	uint64_t set_resolver;
	uint64_t module_flags;    /* enum plan_module_flags */
	uint64_t arena_vaddr;     /* link-time, page-aligned; the arena's start; modulo 2^64, as it
				     may lie below address 0 of a file that is loaded higher */
	uint64_t arena_size;      /* whole arena, multiple of PLAN_PAGE */
	uint64_t plan_size;       /* of this file */
	struct plan_table stubs;  /* bytes, mapped at PLAN_STUBS */
	struct plan_table frames; /* .eh_frame_hdr and .eh_frame; lies inside stubs */
	struct plan_table functions, sites, moves;
	uint64_t checksum; /* of all bytes, with 0 here (plan_checksum) */
};

/* A byte per function. */
enum plan_mode {
	PLAN_MODE_OFF,
	PLAN_MODE_FULL,     /* entry and exit are recorded */
	PLAN_MODE_COUNT,    /* calls are counted */
	PLAN_MODE_ARGUMENTS /* as FULL, with arguments and return value */
};

/* ---- a stub ---- 16-byte aligned, offsets from its start; flags and all registers are kept.
 * Patches lead to `entry`, a short jump whose distance chooses between `full` and `count`, which is
 * behind it. That one byte may be changed at any time. What a counted call executes is together:
 * the functions that are counted are those called often, and these are to take few cache lines.
 *
 * Counting is done in the stub: at a function's entry nothing below rsp is in use, signal handlers
 * leave 128 bytes there alone (System V ABI 3.2.2), and one instruction counts, so that they may
 * count too. Stubs of loops and blocks, where the red zone is in use, only call
 * PLAN_TRAMPOLINE_COUNT, between lea -128(%rsp),%rsp and lea 128(%rsp),%rsp, with rcx behind the
 * number.
 *
 *     0  first: push $number            68 imm32            the thread has no counts yet
 *     5  call PLAN_TRAMPOLINE_COUNT           e8 rel32
 *    10  jmp skipped                    eb rel8
 *    12  int3                           cc cc
 *    14  full: mov %rcx, -24(%rsp)      48 89 4c 24 e8      where the trampoline code looks for it
 *    19  mov trampoline(%rip), %rcx           48 8b 0d rel32
 *    26  jrcxz closed                   e3 rel8
 *    28  push $number                   68 imm32
 *    33  call PLAN_TRAMPOLINE_ENTRY           e8 rel32            returns here, or to `skipped`
 *    38  lea 16(%rsp), %rsp             48 8d 64 24 10      number and return address dropped
 *    43  call body                      e8 rel32
 *    48  lea -8(%rsp), %rsp             48 8d 64 24 f8      <- the return address that callees see
 *    53  push $number                   68 imm32
 *    58  call PLAN_TRAMPOLINE_EXIT            e8 rel32
 *    63  lea 8(%rsp), %rsp              48 8d 64 24 08
 *    68  ret                            c3
 *    69  skipped: lea 8(%rsp), %rsp     48 8d 64 24 08
 *    74  jmp closed                     eb rel8
 *    76  entry: jmp                     eb rel8
 *    78  count: mov %rcx, -24(%rsp)     48 89 4c 24 e8
 *    83  mov counts(%rip), %rcx         48 8b 0d rel32
 *    90  jrcxz closed                   e3 rel8
 *    92  mov %fs:(%rcx), %rcx           64 48 8b 09
 *    96  jrcxz first                    e3 rel8
 *    98  mov %rax, -8(%rsp)             48 89 44 24 f8
 *   103  lahf                           9f                  the flags but DF, which stays
 *   104  seto %al                       0f 90 c0
 *   107  add first_count(%rip), %rcx    48 03 0d rel32
 *   114  incq 8 * number(%rcx)          48 ff 81 disp32
 *   121  add $0x7f, %al                 04 7f               OF again, if it was set
 *   123  sahf                           9e
 *   124  mov -8(%rsp), %rax             48 8b 44 24 f8
 *   129  closed: mov -24(%rsp), %rcx    48 8b 4c 24 e8
 *   134  body: displaced instructions, jmp back
 */
#define PLAN_STUB_FULL 14u
#define PLAN_STUB_RETURN                                                                           \
	38u                   /* where PLAN_TRAMPOLINE_ENTRY returns to when the call is recorded  \
			       */
#define PLAN_STUB_EXIT    48u /* offset of the return address that the function sees */
#define PLAN_STUB_NUMBER  54u /* offset of the number behind that */
#define PLAN_STUB_SKIPPED 69u /* where it returns to when it is not */
#define PLAN_STUB_ENTRY   76u
#define PLAN_STUB_MODE    77u /* its distance */
#define PLAN_STUB_COUNT   78u
#define PLAN_STUB_CLOSED  129u
#define PLAN_STUB_BODY    134u
/* What stands at PLAN_STUB_MODE. */
#define PLAN_STUB_TO_FULL  ((uint8_t)(PLAN_STUB_FULL - PLAN_STUB_COUNT))
#define PLAN_STUB_TO_COUNT 0u
#define PLAN_STUB_ALIGN    16u

/* ---- rewritten files ----
 * They hold their arena, their plan and their modes as parts of loaded segments. The runtime finds
 * them by a note of this name and type. Addresses are link-time ones. */
#define PLAN_NOTE_NAME "kymo"
#define PLAN_NOTE_TYPE 3u /* 1 and 2: kymo/binding.h */

struct plan_note {
	uint64_t arena_vaddr, arena_size;
	uint64_t plan_vaddr, plan_size; /* whole plan, read-only */
	uint64_t modes_vaddr;           /* function_count bytes */
	uint64_t site_vaddr;            /* of the first patch; 0: there is none */
	uint32_t function_count, flags; /* plan_note_flag */
};

enum plan_note_flag {
	/* The file's data is so large that its code reaches nothing behind it, and no segment can
	 * lie before it: the runtime maps the arena there and writes the patches, which are not in
	 * the file. */
	PLAN_NOTE_ARENA_IS_MADE_AT_START = 1
};

/* ---- asking for a plan ----
 * A SOCK_SEQPACKET unix socket whose path is the value of KYMO_INSTRUMENT in the environment; one
 * message each way at a time. Whoever started or attached to the program answers. */
enum plan_request_kind {
	PLAN_REQUEST_MODULE = 1, /* what is to be instrumented in this file? */
	PLAN_REQUEST_COMMIT, /* the arena is mapped: write the patches while all threads stand */
	PLAN_REQUEST_DONE    /* everything that is loaded now has been asked for */
};

struct plan_request {
	uint32_t kind, pid;
	uint64_t bias;          /* load address minus link-time address */
	uint64_t device, inode; /* of the mapped file, as /proc/self/maps has them */
	uint32_t build_id_size;
	uint32_t placement; /* MODULE: 0, or 1, 2 when the arena's place was taken (-EEXIST) */
	uint8_t build_id[32];
	char path[4096];
};

struct plan_answer {
	int32_t status;          /* 0; -ENOENT: nothing is selected in it; other negative errno */
	uint32_t function_count; /* in the plan */
	char plan[4096];         /* path of the plan */
	char modes[4096];        /* path of function_count bytes */
	char reason[512];        /* status not 0: what to say */
};

#ifdef __cplusplus
#define PLAN_STATIC_ASSERT static_assert
#else
#define PLAN_STATIC_ASSERT _Static_assert
#endif
PLAN_STATIC_ASSERT(sizeof(struct plan_trampoline_constants) == 128,
		   "trampoline constants are 128 bytes");
PLAN_STATIC_ASSERT(sizeof(struct plan_function) == 32, "plan_function is 32 bytes");
PLAN_STATIC_ASSERT(sizeof(struct plan_site) == 40, "plan_site is 40 bytes");

#endif
