/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The walk. Per frame, fast path: hash the pc, load one cache entry, add an offset to rsp or rbp,
 * load the return address and perhaps rbp; about 25 instructions, no call. Whatever the fast path
 * cannot do (first time at this pc, registers other than rsp and rbp, expressions, signal frames,
 * stacks outside the thread's own) goes through step(), which looks the rule up in the tables, or
 * guesses where there is none.
 *
 * Trust: tables are validated when loaded, stack words are only read in [direct_low, direct_high),
 * which is mapped because the handler itself or the interrupted function runs on it, or through
 * process_vm_readv, which fails instead of faulting. The frame address must grow with every frame
 * except across a signal frame, so a walk ends; `maximum` bounds the rest.
 */
#include "core/unwind_walk.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/ucontext.h>
#include <sys/uio.h>

#include "common/syscalls.h"
#include "core/unwind_cache.h"

#define WALK_RED_ZONE 128

const struct unwind_detours *_Atomic unwind_detours;

/* Fills the window from an address on; the rest of the stack lies above it. Not inlined, for the
 * sake of the stack that its callers take. */
__attribute__((noinline)) static bool fetch_window(struct unwind_walk *walk, uint64_t address)
{
	struct unwind_scratch *scratch = walk->scratch;
	uint64_t start = address & ~(uint64_t)7;
	struct iovec local, remote;
	long got;

	if (!scratch || walk->fetches == UNWIND_FETCHES_MAX || address >> 47 != 0)
		return false;
	walk->fetches++;
	local = (struct iovec){.iov_base = scratch->window, .iov_len = UNWIND_WINDOW};
	remote = (struct iovec){.iov_base = (void *)(uintptr_t)start, .iov_len = UNWIND_WINDOW};
	got = sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1, 0);
	scratch->window_start = start;
	scratch->window_size = got > 0 ? (uint32_t)got : 0;
	return got >= 16;
}

UNWIND_UNSANITIZED
bool unwind_read(struct unwind_walk *walk, uint64_t address, uint64_t *ret)
{
	const struct unwind_scratch *scratch = walk->scratch;
	uint64_t inside;

	walk->end = SPOOL_STACK_BAD_READ;
	if (address & 7)
		return false;
	if (address >= walk->direct_low && address < walk->direct_high) {
		*ret = *(const uint64_t *)(uintptr_t)address;
		return true;
	}
	if (!scratch || address < scratch->window_start ||
	    address - scratch->window_start + 8 > scratch->window_size) {
		if (!fetch_window(walk, address))
			return false;
	}
	inside = address - scratch->window_start;
	__builtin_memcpy(ret, scratch->window + inside, 8);
	return true;
}

const struct unwind_module *unwind_view_find(const struct unwind_view *view, uint64_t address)
{
	uint32_t low = 0, high = view->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (view->modules[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= view->modules[low - 1].end)
		return NULL;
	return &view->modules[low - 1];
}

/* ---- values ---- */

/* ucontext register (REG_*, sys/ucontext.h) of each DWARF register number. */
static const uint8_t walk_gregs[UNWIND_RIP + 1] = {
	REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
	REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

/* Registers other than rip, rsp and rbp are those of the interrupted frame: exact there, and in its
 * nearest callers still right when nothing on the way changed them, which the checks of the CFA and
 * the return address that follow make sure of. rbx, r12 to r15 change all the time; of them, rbx
 * alone is recovered where it is asked for. */
static bool read_register(struct unwind_walk *walk, uint8_t reg, uint64_t *ret)
{
	bool preserved = reg == UNWIND_RBX || (reg >= UNWIND_R12 && reg < UNWIND_RIP);

	if (reg == UNWIND_RSP)
		*ret = walk->sp;
	else if (reg == UNWIND_RBP)
		*ret = walk->bp;
	else if (reg == UNWIND_RIP)
		*ret = walk->ip;
	else if (reg == UNWIND_RBX && walk->track_bx && walk->bx_known)
		*ret = walk->bx;
	else if (walk->gregs && walk->age <= (preserved ? 0 : UNWIND_AGE_MAX))
		*ret = walk->gregs[walk_gregs[reg]];
	else if (walk->context && walk->age <= (preserved ? 0 : UNWIND_AGE_MAX))
		return unwind_read(walk, walk->context + 40 + 8 * (uint64_t)walk_gregs[reg], ret);
	else {
		walk->wants_bx = reg == UNWIND_RBX;
		walk->end = SPOOL_STACK_UNSUPPORTED;
		return false;
	}
	return true;
}

static uint64_t binary(uint8_t code, uint64_t a, uint64_t b)
{
	switch (code) {
	case UNWIND_OP_PLUS:
		return a + b;
	case UNWIND_OP_MINUS:
		return a - b;
	case UNWIND_OP_MUL:
		return a * b;
	case UNWIND_OP_AND:
		return a & b;
	case UNWIND_OP_OR:
		return a | b;
	case UNWIND_OP_XOR:
		return a ^ b;
	case UNWIND_OP_SHL:
		return b < 64 ? a << b : 0;
	case UNWIND_OP_SHR:
		return b < 64 ? a >> b : 0;
	case UNWIND_OP_SHRA:
		return (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
	case UNWIND_OP_EQ:
		return a == b;
	case UNWIND_OP_NE:
		return a != b;
	case UNWIND_OP_LT:
		return (int64_t)a < (int64_t)b;
	case UNWIND_OP_LE:
		return (int64_t)a <= (int64_t)b;
	case UNWIND_OP_GT:
		return (int64_t)a > (int64_t)b;
	default:
		return (int64_t)a >= (int64_t)b;
	}
}

/* One operation on the stack alone; returns the new depth. */
static uint32_t operate(const struct unwind_op *op, uint64_t *stack, uint32_t depth)
{
	uint64_t top = stack[depth - 1];

	switch (op->code) {
	case UNWIND_OP_ADD_CONSTANT:
		stack[depth - 1] = top + (uint64_t)op->operand;
		return depth;
	case UNWIND_OP_NEG:
		stack[depth - 1] = 0 - top;
		return depth;
	case UNWIND_OP_NOT:
		stack[depth - 1] = ~top;
		return depth;
	case UNWIND_OP_DUP:
		stack[depth] = top;
		return depth + 1;
	case UNWIND_OP_DROP:
		return depth - 1;
	case UNWIND_OP_SWAP:
		stack[depth - 1] = stack[depth - 2];
		stack[depth - 2] = top;
		return depth;
	case UNWIND_OP_ROT:
		stack[depth - 1] = stack[depth - 2];
		stack[depth - 2] = stack[depth - 3];
		stack[depth - 3] = top;
		return depth;
	case UNWIND_OP_PICK:
		stack[depth] = stack[depth - 1 - op->reg];
		return depth + 1;
	default:
		stack[depth - 2] = binary(op->code, stack[depth - 2], top);
		return depth - 1;
	}
}

/* Runs validated operations: neither codes nor stack depth are checked here. */
static bool evaluate(struct unwind_walk *walk, const struct unwind_op *op, uint64_t cfa,
		     uint64_t *ret)
{
	uint64_t stack[UNWIND_STACK_MAX];
	uint32_t depth = 0;

	for (; op->code != UNWIND_OP_END; op++) {
		if (op->code == UNWIND_OP_CONSTANT) {
			stack[depth++] = (uint64_t)op->operand;
		} else if (op->code == UNWIND_OP_CFA) {
			stack[depth++] = cfa;
		} else if (op->code == UNWIND_OP_REGISTER) {
			if (!read_register(walk, op->reg, &stack[depth]))
				return false;
			stack[depth++] += (uint64_t)op->operand;
		} else if (op->code == UNWIND_OP_DEREF) {
			if (!unwind_read(walk, stack[depth - 1], &stack[depth - 1]))
				return false;
		} else {
			depth = operate(op, stack, depth);
		}
	}
	*ret = stack[depth - 1];
	return true;
}

/* The caller's value at a location; `same` is the register's value now. */
static bool locate(struct unwind_walk *walk, const struct unwind_location *location,
		   const struct unwind_op *ops, uint64_t cfa, uint64_t same, uint64_t *ret)
{
	uint64_t address;

	switch (location->kind) {
	case UNWIND_SAME:
		*ret = same;
		return true;
	case UNWIND_AT_CFA:
		return unwind_read(walk, cfa + (uint64_t)(int64_t)location->value, ret);
	case UNWIND_CFA_PLUS:
		*ret = cfa + (uint64_t)(int64_t)location->value;
		return true;
	case UNWIND_REGISTER:
		if (!read_register(walk, location->reg, ret))
			return false;
		*ret += (uint64_t)(int64_t)location->value;
		return true;
	case UNWIND_AT_EXPRESSION:
		return evaluate(walk, ops + location->value, cfa, &address) &&
		       unwind_read(walk, address, ret);
	case UNWIND_EXPRESSION:
		return evaluate(walk, ops + location->value, cfa, ret);
	default:
		*ret = 0;
		return true;
	}
}

/* ---- frames ---- */

/* The compact form of a rule (unwind_cache.h), 0 when it has none. */
static uint32_t compact_rule(const struct unwind_rule *rule)
{
	uint32_t offset = (uint32_t)rule->cfa.value, saved = 0;

	if (rule->cfa.kind == UNWIND_CONTEXT)
		return UNWIND_SPECIAL_CONTEXT << UNWIND_COMPACT_BP_SHIFT;
	if (rule->cfa.kind == UNWIND_UNDEFINED)
		return UNWIND_SPECIAL_OUTERMOST << UNWIND_COMPACT_BP_SHIFT;
	if (rule->cfa.kind != UNWIND_REGISTER || rule->cfa.value <= 0 || offset % 8 != 0 ||
	    offset / 8 > UNWIND_COMPACT_OFFSET ||
	    (rule->cfa.reg != UNWIND_RSP && rule->cfa.reg != UNWIND_RBP) ||
	    rule->ra.kind != UNWIND_AT_CFA || rule->ra.value != -8)
		return 0;
	if (rule->bp.kind == UNWIND_AT_CFA && rule->bp.value < 0 && rule->bp.value % 8 == 0 &&
	    rule->bp.value >= -8 * (int32_t)UNWIND_COMPACT_BP && -rule->bp.value <= rule->cfa.value)
		saved = (uint32_t)(-rule->bp.value / 8);
	else if (rule->bp.kind != UNWIND_SAME)
		return 0;
	return offset / 8 | saved << UNWIND_COMPACT_BP_SHIFT |
	       (rule->cfa.reg == UNWIND_RBP ? UNWIND_COMPACT_FROM_BP : 0);
}

static enum unwind_step stop(struct unwind_walk *walk, enum spool_stack_end end)
{
	walk->end = end;
	return UNWIND_STEP_END;
}

/* To the caller by a rule. */
static enum unwind_step apply(struct unwind_walk *walk, const struct unwind_rule *rule,
			      const struct unwind_op *ops)
{
	uint64_t cfa, ip, bp, bx = 0;
	bool bx_known = false;

	if (rule->cfa.kind == UNWIND_UNDEFINED)
		return stop(walk, SPOOL_STACK_COMPLETE);
	if (rule->cfa.kind == UNWIND_CONTEXT)
		return unwind_from_context(walk, walk->sp);
	if (rule->cfa.kind == UNWIND_UNSUPPORTED)
		return stop(walk, SPOOL_STACK_UNSUPPORTED);
	if (!locate(walk, &rule->cfa, ops, 0, 0, &cfa))
		return UNWIND_STEP_END;
	if (cfa <= walk->sp || cfa & 7)
		return stop(walk, SPOOL_STACK_BAD_CFA);
	if (!locate(walk, &rule->ra, ops, cfa, walk->ip, &ip) ||
	    !locate(walk, &rule->bp, ops, cfa, walk->bp, &bp))
		return UNWIND_STEP_END;
	if (rule->cfa.kind == UNWIND_REGISTER && rule->cfa.reg != UNWIND_RSP &&
	    rule->cfa.reg != UNWIND_RBP && walk->age && !unwind_view_find(walk->view, ip - 1))
		return stop(walk, SPOOL_STACK_UNSUPPORTED);
	if (walk->track_bx)
		bx_known = (rule->bx.kind != UNWIND_SAME || walk->bx_known) &&
			   locate(walk, &rule->bx, ops, cfa, walk->bx, &bx);
	walk->ip = ip;
	walk->sp = cfa;
	walk->bp = bp;
	walk->bx = bx;
	walk->bx_known = bx_known;
	walk->age++;
	return UNWIND_STEP_CALLER;
}

const struct unwind_rule *unwind_module_find(const struct unwind_module *module, uint64_t pc)
{
	if (!module || !module->table)
		return NULL;
	return unwind_table_find(module->table, pc - module->bias);
}

/* From one frame to the next without the cache's help. */
static enum unwind_step step(struct unwind_walk *walk)
{
	uint64_t pc = walk->ip - !walk->exact;
	const struct unwind_module *module = unwind_view_find(walk->view, pc);
	const struct unwind_rule *rule = unwind_module_find(module, pc);
	uint32_t compact;

	if (!rule)
		return unwind_guess(walk);
	compact = compact_rule(rule);
	if (compact && walk->cache)
		unwind_cache_store(walk->cache, pc + 1,
				   unwind_cache_generation(walk->view->generation), compact);
	return apply(walk, rule, unwind_table_arrays(module->table).ops);
}

/* The registers that the fast path carries from frame to frame. */
struct cached_frame {
	uint64_t sp, bp, key; /* key: pc to look up, plus one */
};

/* From a frame that the last walk was in, as many frames as are still the same. */
UNWIND_UNSANITIZED
static inline uint32_t follow_memo(struct unwind_memo_cursor *cursor, struct cached_frame *frame,
				   uint64_t high, uint64_t *restrict frames, uint32_t count,
				   uint32_t maximum)
{
	const struct unwind_memo_frame *entries = cursor->memo->frames;
	uint32_t at = cursor->at;

	for (; at + 1 < UNWIND_MEMO && count < maximum; at++) {
		const struct unwind_memo_frame *next = &entries[at + 1];
		uint64_t how = next->key >> UNWIND_MEMO_HOW_SHIFT;
		uint64_t ip = next->key & UNWIND_MEMO_KEY;

		if (how == 0 || next->sp > high || next->sp <= entries[at].sp ||
		    *(const uint64_t *)(uintptr_t)(next->sp - 8) != ip ||
		    (how > 1 &&
		     *(const uint64_t *)(uintptr_t)(next->sp - 8 * (how - 1)) != next->bp))
			break;
		frames[count++] = ip;
	}
	*frame = (struct cached_frame){.sp = entries[at].sp,
				       .bp = entries[at].bp,
				       .key = entries[at].key & UNWIND_MEMO_KEY};
	cursor->at = at + 1;
	if (at + 1 < UNWIND_MEMO)
		unwind_memo_flush(cursor, at + 1);
	return count;
}

/* One frame by the cache. False: it has no rule for it, or the rule leads out of the stack. *
 * Invariant: sp <= high, sp a multiple of 8, and what lies between is readable; then compact rules
 * read between sp and the CFA only, and one comparison with high is enough. */
UNWIND_UNSANITIZED
static inline bool cached_step(uint64_t rule, struct cached_frame *frame, uint64_t high,
			       uint64_t *ret_saved)
{
	uint64_t cfa = frame->sp, ip, saved, kept, word;

	if (rule & UNWIND_COMPACT_FROM_BP) {
		if (frame->bp - frame->sp > high - frame->sp || frame->bp & 7)
			return false;
		cfa = frame->bp;
	}
	cfa += 8 * (rule & UNWIND_COMPACT_OFFSET);
	if (cfa > high)
		return false;
	ip = *(const uint64_t *)(uintptr_t)(cfa - 8);
	if ((ip - 1) >> UNWIND_PC_BITS)
		return false;
	/* No branch: whether rbp was saved is as good as random along a stack. */
	saved = rule >> UNWIND_COMPACT_BP_SHIFT & UNWIND_COMPACT_BP;
	kept = (uint64_t)0 - !saved;
	word = *(const uint64_t *)(uintptr_t)(cfa - 8 * (saved + !saved));
	frame->bp = (frame->bp & kept) | (word & ~kept);
	frame->key = ip;
	frame->sp = cfa;
	*ret_saved = saved;
	return true;
}

/* As many frames as the memo and the cache know and the thread's own stack holds; returns the new
 * count. *ret_end: the last one is the outermost. */
UNWIND_UNSANITIZED
static uint32_t run_cached(struct unwind_walk *walk, uint64_t *restrict frames, uint32_t count,
			   uint32_t maximum, bool *ret_end)
{
	struct unwind_memo_cursor cursor = walk->memo;
	uint64_t high = walk->direct_high;
	const struct unwind_cache *cache = walk->cache;
	uint64_t generation = unwind_cache_generation(walk->view->generation);
	struct cached_frame frame = {.sp = walk->sp, .bp = walk->bp, .key = walk->ip + walk->exact};
	uint32_t first = count;
	uint64_t saved;
	int32_t how = -1;

	if (frame.sp < walk->direct_low || frame.sp > walk->direct_high || frame.sp & 7)
		return count;
	for (;; how = (int32_t)saved) {
		uint64_t hash, rule;

		if (!cursor.memo) {
			/* a walk without memory */
		} else if (unwind_memo_meets(&cursor, frame.sp, frame.bp, frame.key)) {
			unwind_memo_meet(&cursor, frame.key, how);
			count = follow_memo(&cursor, &frame, high, frames, count, maximum);
		} else {
			unwind_memo_note(&cursor, frame.sp, frame.bp, frame.key, how);
		}
		hash = unwind_cache_hash(frame.key);
		rule = unwind_cache_load(cache, hash);
		if (count == maximum ||
		    (rule ^ unwind_cache_tag(hash, generation)) >> UNWIND_RULE_BITS)
			break;
		if ((rule & UNWIND_COMPACT_OFFSET) == 0) {
			*ret_end = (rule >> UNWIND_COMPACT_BP_SHIFT & UNWIND_COMPACT_BP) ==
				   UNWIND_SPECIAL_OUTERMOST;
			break;
		}
		if (!cached_step(rule, &frame, high, &saved))
			break;
		frames[count++] = frame.key;
	}
	walk->memo = cursor;
	if (count == first)
		return count;
	walk->ip = frame.key;
	walk->sp = frame.sp;
	walk->bp = frame.bp;
	walk->exact = false;
	walk->age += count - first;
	walk->bx_known = false;
	return count;
}

/* What the program knows nothing of is taken out of the last frame, `index`. */
static enum unwind_detour_kind undo_detour(struct unwind_walk *walk, uint64_t *frames,
					   uint32_t index)
{
	const struct unwind_detours *detours =
		atomic_load_explicit(&unwind_detours, memory_order_relaxed);
	struct unwind_detour detour = {
		.ip = walk->ip, .sp = walk->sp, .exact = walk->exact, .place = walk->place};
	enum unwind_detour_kind kind = detours ? detours->undo(&detour) : UNWIND_DETOUR_NONE;

	if (kind == UNWIND_DETOUR_NONE)
		return kind;
	walk->ip = detour.ip;
	walk->sp = detour.sp;
	walk->exact = detour.exact;
	walk->place = detour.place;
	frames[index] = walk->ip + (walk->exact && index);
	return kind;
}

static uint32_t run(struct unwind_walk *walk, uint64_t *frames, uint32_t maximum)
{
	uint32_t count = 1;

	frames[0] = walk->ip;
	for (;;) {
		enum unwind_step result;
		enum unwind_detour_kind detour;
		bool outermost = false;

		if (walk->cache && !walk->track_bx)
			count = run_cached(walk, frames, count, maximum, &outermost);
		if (outermost) {
			walk->end = SPOOL_STACK_COMPLETE;
			return count;
		}
		detour = undo_detour(walk, frames, count - 1);
		if (detour == UNWIND_DETOUR_UNDONE)
			continue;
		result = step(walk);
		if (result == UNWIND_STEP_END) {
			/* The last frame was no code after all. */
			if (walk->end == SPOOL_STACK_BAD_PC && count > 1)
				count--;
			else if (walk->exact && count > 1)
				frames[count - 1] = walk->ip + 1;
			return count;
		}
		walk->exact = result == UNWIND_STEP_INTERRUPTED;
		if (walk->ip == 0) {
			walk->end = SPOOL_STACK_COMPLETE;
			return count;
		}
		if (walk->ip >> UNWIND_PC_BITS) {
			walk->end = SPOOL_STACK_BAD_PC;
			return count;
		}
		if (detour == UNWIND_DETOUR_HIDDEN)
			count--;
		if (count == maximum) {
			walk->end = SPOOL_STACK_DEPTH;
			return count;
		}
		frames[count] = walk->ip + (walk->exact && count);
		count++;
	}
}

static void start(struct unwind_walk *walk, const struct unwind_registers *registers)
{
	walk->ip = registers->ip;
	walk->sp = registers->sp;
	walk->bp = registers->bp;
	walk->gregs = registers->gregs;
	walk->bx = registers->gregs ? registers->gregs[REG_RBX] : 0;
	walk->bx_known = registers->gregs != NULL;
	walk->context = 0;
	walk->age = 0;
	walk->fetches = 0;
	walk->place = NULL;
	walk->exact = true;
	walk->wants_bx = false;
	walk->end = SPOOL_STACK_COMPLETE;
}

/* What is readable for sure: the stack from this very frame up when the handler runs on it, else
 * from the interrupted stack pointer up when that is the thread's own stack. */
static void set_direct(struct unwind_walk *walk, const struct unwind_bounds *bounds, uint64_t sp)
{
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);

	walk->direct_low = walk->direct_high = 0;
	if (here >= bounds->low && here < bounds->high)
		walk->direct_low = (here + 7) & ~(uint64_t)7;
	else if (sp >= bounds->low && sp < bounds->high)
		walk->direct_low = (sp + 7) & ~(uint64_t)7;
	else
		return;
	if (walk->direct_low + WALK_RED_ZONE < sp && sp < bounds->high)
		walk->direct_low = (sp - WALK_RED_ZONE) & ~(uint64_t)7;
	walk->direct_high = bounds->high & ~(uint64_t)7;
}

uint32_t unwind_stack(const struct unwind_view *view, struct unwind_cache *cache,
		      const struct unwind_registers *registers, const struct unwind_bounds *bounds,
		      struct unwind_scratch *scratch, uint64_t *frames, uint32_t maximum,
		      enum spool_stack_end *end)
{
	struct unwind_walk walk = {.view = view, .cache = cache, .scratch = scratch};
	uint32_t count;

	if (scratch)
		scratch->window_size = 0;
	set_direct(&walk, bounds, registers->sp);
	start(&walk, registers);
	if (scratch && cache && walk.direct_high)
		walk.memo = unwind_memo_begin(&scratch->memo, view->generation);
	count = run(&walk, frames, maximum);
	unwind_memo_end(&walk.memo);
	if (walk.wants_bx && !walk.track_bx) {
		walk.track_bx = true;
		start(&walk, registers);
		count = run(&walk, frames, maximum);
	}
	*end = walk.end;
	return count;
}
