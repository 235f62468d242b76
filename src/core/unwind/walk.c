/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The walk. Per frame, fast path: hash the pc, load one cache entry, add an offset to rsp or rbp,
 * load the return address and perhaps rbp; about 25 instructions, no call. Whatever the fast path
 * cannot do (first time at this pc, registers other than rsp and rbp, expressions, signal frames,
 * stacks outside the thread's own) goes through step_to_caller(), which looks the rule up in the
 * tables, or guesses where there is none.
 *
 * Trust: tables are validated when loaded, stack words are only read in [direct_read_low,
 * direct_read_high), which is mapped because the handler itself or the interrupted function runs on
 * it, or through process_vm_readv, which fails instead of faulting. The frame address must grow
 * with every frame except across a signal frame, so a walk ends; `maximum` bounds the rest.
 */
#include "core/unwind/walk.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/ucontext.h>
#include <sys/uio.h>

#include "common/syscalls.h"
#include "core/unwind/cache.h"

#define RED_ZONE_SIZE 128

const struct unwind_trampoline_callbacks *_Atomic unwind_trampoline_callbacks;

#ifdef KYMO_UNWIND_OUTSIDE
struct unwind_outside unwind_outside;

/* Nothing but the copy: what lies above it has changed since. */
static bool read_stack_bytes_into_window(struct unwind_walk *walk, uint64_t address)
{
	(void)walk;
	(void)address;
	return false;
}

static void set_directly_readable_stack(struct unwind_walk *walk,
					const struct unwind_stack_bounds *bounds, uint64_t sp)
{
	(void)sp;
	walk->direct_read_low = bounds->low;
	walk->direct_read_high = bounds->high;
}
#else
/* Fills the window from an address on; the rest of the stack lies above it. Not inlined, for the
 * sake of the stack that its callers take. */
__attribute__((noinline)) static bool read_stack_bytes_into_window(struct unwind_walk *walk,
								   uint64_t address)
{
	struct unwind_scratch *scratch = walk->scratch;
	uint64_t start = address & ~(uint64_t)7;
	struct iovec local, remote;
	long got;

	if (!scratch || walk->window_fetch_count == UNWIND_STACK_WINDOW_FETCHES_MAX ||
	    address >> 47 != 0)
		return false;
	walk->window_fetch_count++;
	local = (struct iovec){.iov_base = scratch->window, .iov_len = UNWIND_STACK_WINDOW_SIZE};
	remote = (struct iovec){.iov_base = (void *)(uintptr_t)start,
				.iov_len = UNWIND_STACK_WINDOW_SIZE};
	got = sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1, 0);
	scratch->window_address = start;
	scratch->window_valid_bytes = got > 0 ? (uint32_t)got : 0;
	return got >= 16;
}

/* What is readable for sure: the stack from this very frame up when the handler runs on it, else
 * from the interrupted stack pointer up when that is the thread's own stack. */
static void set_directly_readable_stack(struct unwind_walk *walk,
					const struct unwind_stack_bounds *bounds, uint64_t sp)
{
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);

	walk->direct_read_low = walk->direct_read_high = 0;
	if (here >= bounds->low && here < bounds->high)
		walk->direct_read_low = (here + 7) & ~(uint64_t)7;
	else if (sp >= bounds->low && sp < bounds->high)
		walk->direct_read_low = (sp + 7) & ~(uint64_t)7;
	else
		return;
	if (walk->direct_read_low + RED_ZONE_SIZE < sp && sp < bounds->high)
		walk->direct_read_low = (sp - RED_ZONE_SIZE) & ~(uint64_t)7;
	walk->direct_read_high = bounds->high & ~(uint64_t)7;
}
#endif

UNWIND_UNSANITIZED
bool unwind_read_stack_word(struct unwind_walk *walk, uint64_t address, uint64_t *ret)
{
	const struct unwind_scratch *scratch = walk->scratch;
	uint64_t inside;

	walk->end = SPOOL_STACK_BAD_READ;
	if (address & 7)
		return false;
	if (address >= walk->direct_read_low && address < walk->direct_read_high) {
		*ret = *unwind_get_stack_word_place(address);
		return true;
	}
	if (!scratch || address < scratch->window_address ||
	    address - scratch->window_address + 8 > scratch->window_valid_bytes) {
		if (!read_stack_bytes_into_window(walk, address))
			return false;
	}
	inside = address - scratch->window_address;
	__builtin_memcpy(ret, scratch->window + inside, 8);
	return true;
}

const struct unwind_module *unwind_view_find_module(const struct unwind_all_modules_view *view,
						    uint64_t address)
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
static const uint8_t gregs_by_dwarf_register[DWARF_REGISTER_RIP + 1] = {
	REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
	REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

/* Registers other than rip, rsp and rbp are those of the interrupted frame: exact there, and in its
 * nearest callers still right when nothing on the way changed them, which the checks of the CFA and
 * the return address that follow make sure of. rbx, r12 to r15 change all the time; of them, rbx
 * alone is recovered where it is asked for. */
static bool read_frame_register(struct unwind_walk *walk, uint8_t reg, uint64_t *ret)
{
	bool preserved = reg == DWARF_REGISTER_RBX ||
			 (reg >= DWARF_REGISTER_R12 && reg < DWARF_REGISTER_RIP);

	if (reg == DWARF_REGISTER_RSP)
		*ret = walk->sp;
	else if (reg == DWARF_REGISTER_RBP)
		*ret = walk->bp;
	else if (reg == DWARF_REGISTER_RIP)
		*ret = walk->ip;
	else if (reg == DWARF_REGISTER_RBX && walk->track_bx && walk->is_bx_known)
		*ret = walk->bx;
	else if (walk->interrupted_gregs &&
		 walk->frames_since_interrupted <=
			 (preserved ? 0 : UNWIND_VOLATILE_REGISTER_CALLERS_MAX))
		*ret = walk->interrupted_gregs[gregs_by_dwarf_register[reg]];
	else if (walk->context && walk->frames_since_interrupted <=
					  (preserved ? 0 : UNWIND_VOLATILE_REGISTER_CALLERS_MAX))
		return unwind_read_stack_word(
			walk, walk->context + 40 + 8 * (uint64_t)gregs_by_dwarf_register[reg], ret);
	else {
		walk->failed_without_bx = reg == DWARF_REGISTER_RBX;
		walk->end = SPOOL_STACK_UNSUPPORTED;
		return false;
	}
	return true;
}

/* Runs validated operations: neither codes nor stack depth are checked here. */
static bool evaluate_expression(struct unwind_walk *walk,
				const struct unwind_expression_operation *op, uint64_t cfa,
				uint64_t *ret)
{
	uint64_t stack[UNWIND_OPERAND_STACK_MAX];
	uint32_t depth = 0;

	for (; op->code != UNWIND_OP_END; op++) {
		if (op->code == UNWIND_OP_CONSTANT) {
			stack[depth++] = (uint64_t)op->operand;
		} else if (op->code == UNWIND_OP_CFA) {
			stack[depth++] = cfa;
		} else if (op->code == UNWIND_OP_REGISTER_PLUS_CONSTANT) {
			if (!read_frame_register(walk, op->reg, &stack[depth]))
				return false;
			stack[depth++] += (uint64_t)op->operand;
		} else if (op->code == UNWIND_OP_DEREF) {
			if (!unwind_read_stack_word(walk, stack[depth - 1], &stack[depth - 1]))
				return false;
		} else {
			depth = unwind_apply_op_to_operand_stack(op, stack, depth);
		}
	}
	*ret = stack[depth - 1];
	return true;
}

/* The caller's value at a location; `same` is the register's value now. */
static bool evaluate_location(struct unwind_walk *walk,
			      const struct unwind_value_location *location,
			      const struct unwind_expression_operation *ops, uint64_t cfa,
			      uint64_t same, uint64_t *ret)
{
	uint64_t address;

	switch (location->kind) {
	case UNWIND_LOCATION_SAME_REGISTER:
		*ret = same;
		return true;
	case UNWIND_LOCATION_AT_CFA_OFFSET:
		return unwind_read_stack_word(walk, cfa + (uint64_t)(int64_t)location->value, ret);
	case UNWIND_LOCATION_CFA_PLUS_OFFSET:
		*ret = cfa + (uint64_t)(int64_t)location->value;
		return true;
	case UNWIND_LOCATION_REGISTER_PLUS_OFFSET:
		if (!read_frame_register(walk, location->reg, ret))
			return false;
		*ret += (uint64_t)(int64_t)location->value;
		return true;
	case UNWIND_LOCATION_AT_EXPRESSION_RESULT:
		return evaluate_expression(walk, ops + location->value, cfa, &address) &&
		       unwind_read_stack_word(walk, address, ret);
	case UNWIND_LOCATION_EXPRESSION_RESULT:
		return evaluate_expression(walk, ops + location->value, cfa, ret);
	default:
		*ret = 0;
		return true;
	}
}

/* ---- frames ---- */

/* The compact form of a rule (cache.h), 0 when it has none. */
static uint32_t make_compact_rule(const struct unwind_rule *rule)
{
	uint32_t offset = (uint32_t)rule->cfa.value, saved = 0;

	if (rule->cfa.kind == UNWIND_LOCATION_UCONTEXT)
		return UNWIND_COMPACT_RULE_UCONTEXT << UNWIND_COMPACT_RBP_SLOT_SHIFT;
	if (rule->cfa.kind == UNWIND_LOCATION_UNDEFINED)
		return UNWIND_COMPACT_RULE_OUTERMOST << UNWIND_COMPACT_RBP_SLOT_SHIFT;
	if (rule->cfa.kind != UNWIND_LOCATION_REGISTER_PLUS_OFFSET || rule->cfa.value <= 0 ||
	    offset % 8 != 0 || offset / 8 > UNWIND_COMPACT_CFA_OFFSET_MASK ||
	    (rule->cfa.reg != DWARF_REGISTER_RSP && rule->cfa.reg != DWARF_REGISTER_RBP) ||
	    rule->ra.kind != UNWIND_LOCATION_AT_CFA_OFFSET || rule->ra.value != -8)
		return 0;
	if (rule->bp.kind == UNWIND_LOCATION_AT_CFA_OFFSET && rule->bp.value < 0 &&
	    rule->bp.value % 8 == 0 &&
	    rule->bp.value >= -8 * (int32_t)UNWIND_COMPACT_RBP_SLOT_MASK &&
	    -rule->bp.value <= rule->cfa.value)
		saved = (uint32_t)(-rule->bp.value / 8);
	else if (rule->bp.kind != UNWIND_LOCATION_SAME_REGISTER)
		return 0;
	return offset / 8 | saved << UNWIND_COMPACT_RBP_SLOT_SHIFT |
	       (rule->cfa.reg == DWARF_REGISTER_RBP ? UNWIND_COMPACT_CFA_FROM_RBP : 0);
}

static enum unwind_step_result end_walk_with_reason(struct unwind_walk *walk,
						    enum spool_stack_end end)
{
	walk->end = end;
	return UNWIND_STEP_END;
}

/* To the caller by a rule. */
static enum unwind_step_result step_by_rule(struct unwind_walk *walk,
					    const struct unwind_rule *rule,
					    const struct unwind_expression_operation *ops)
{
	uint64_t cfa, ip, bp, bx = 0;
	bool bx_known = false;

	if (rule->cfa.kind == UNWIND_LOCATION_UNDEFINED)
		return end_walk_with_reason(walk, SPOOL_STACK_COMPLETE);
	if (rule->cfa.kind == UNWIND_LOCATION_UCONTEXT)
		return unwind_step_by_ucontext(walk, walk->sp);
	if (rule->cfa.kind == UNWIND_LOCATION_UNSUPPORTED)
		return end_walk_with_reason(walk, SPOOL_STACK_UNSUPPORTED);
	if (!evaluate_location(walk, &rule->cfa, ops, 0, 0, &cfa))
		return UNWIND_STEP_END;
	/* vfork() keeps its return address in a register, with nothing on the stack. */
	if (cfa < walk->sp || cfa & 7 ||
	    (cfa == walk->sp && (walk->frames_since_interrupted ||
				 rule->ra.kind != UNWIND_LOCATION_REGISTER_PLUS_OFFSET)))
		return end_walk_with_reason(walk, SPOOL_STACK_BAD_CFA);
	if (!evaluate_location(walk, &rule->ra, ops, cfa, walk->ip, &ip) ||
	    !evaluate_location(walk, &rule->bp, ops, cfa, walk->bp, &bp))
		return UNWIND_STEP_END;
	if (rule->cfa.kind == UNWIND_LOCATION_REGISTER_PLUS_OFFSET &&
	    rule->cfa.reg != DWARF_REGISTER_RSP && rule->cfa.reg != DWARF_REGISTER_RBP &&
	    walk->frames_since_interrupted && !unwind_view_find_module(walk->modules_view, ip - 1))
		return end_walk_with_reason(walk, SPOOL_STACK_UNSUPPORTED);
	if (walk->track_bx)
		bx_known = (rule->bx.kind != UNWIND_LOCATION_SAME_REGISTER || walk->is_bx_known) &&
			   evaluate_location(walk, &rule->bx, ops, cfa, walk->bx, &bx);
	walk->ip = ip;
	walk->sp = cfa;
	walk->bp = bp;
	walk->bx = bx;
	walk->is_bx_known = bx_known;
	walk->frames_since_interrupted++;
	return UNWIND_STEP_CALLER;
}

const struct unwind_rule *unwind_module_find_rule(const struct unwind_module *module, uint64_t pc)
{
	if (!module || !module->table)
		return NULL;
	return unwind_table_find_rule(module->table, pc - module->bias);
}

/* From one frame to the next without the cache's help. */
static enum unwind_step_result step_to_caller(struct unwind_walk *walk)
{
	uint64_t pc = walk->ip - !walk->is_ip_exact;
	const struct unwind_module *module = unwind_view_find_module(walk->modules_view, pc);
	const struct unwind_rule *rule = unwind_module_find_rule(module, pc);
	uint32_t compact;

	walk->met_unknown_address |= !module;
	if (!rule)
		return unwind_guess_caller(walk);
	compact = make_compact_rule(rule);
	if (compact && walk->cache)
		unwind_cache_store_rule(
			walk->cache, pc + 1,
			unwind_cache_generation_to_tag_bits(walk->modules_view->generation),
			compact);
	return step_by_rule(walk, rule, unwind_table_find_arrays(module->table).expression_ops);
}

/* The registers that the fast path carries from frame to frame. */
struct fast_path_frame_registers {
	uint64_t sp, bp, key; /* key: pc to look up, plus one */
};

/* From a frame that the last walk was in, as many frames as are still the same. */
UNWIND_UNSANITIZED
static inline uint32_t
append_unchanged_frames_of_last_walk(struct unwind_frame_cache_cursor *cursor,
				     struct fast_path_frame_registers *frame, uint64_t high,
				     uint64_t *restrict frames, uint64_t *restrict stack_pointers,
				     uint32_t count, uint32_t maximum)
{
	const struct unwind_frame_cache_entry *entries = cursor->cache->frames;
	uint32_t at = cursor->at;

	for (; at + 1 < UNWIND_FRAME_CACHE_ENTRIES && count < maximum; at++) {
		const struct unwind_frame_cache_entry *next = &entries[at + 1];
		uint64_t how = next->key >> UNWIND_FRAME_CACHE_STEP_SHIFT;
		uint64_t ip = next->key & UNWIND_FRAME_CACHE_KEY_MASK;

		if (how == 0 || next->sp > high || next->sp <= entries[at].sp ||
		    *unwind_get_stack_word_place(next->sp - 8) != ip ||
		    (how > 1 && *unwind_get_stack_word_place(next->sp - 8 * (how - 1)) != next->bp))
			break;
		if (stack_pointers)
			stack_pointers[count] = next->sp;
		frames[count++] = ip;
	}
	*frame = (struct fast_path_frame_registers){.sp = entries[at].sp,
						    .bp = entries[at].bp,
						    .key = entries[at].key &
							   UNWIND_FRAME_CACHE_KEY_MASK};
	cursor->at = at + 1;
	if (at + 1 < UNWIND_FRAME_CACHE_ENTRIES)
		unwind_frame_cache_copy_tail_to_new(cursor, at + 1);
	return count;
}

/* One frame by the cache. False: it has no rule for it, or the rule leads out of the stack. *
 * Invariant: sp <= high, sp a multiple of 8, and what lies between is readable; then compact rules
 * read between sp and the CFA only, and one comparison with high is enough. */
UNWIND_UNSANITIZED
static inline bool step_by_compact_rule(uint64_t rule, struct fast_path_frame_registers *frame,
					uint64_t high, uint64_t *ret_saved)
{
	uint64_t cfa = frame->sp, ip, saved, kept, word;

	if (rule & UNWIND_COMPACT_CFA_FROM_RBP) {
		if (frame->bp - frame->sp > high - frame->sp || frame->bp & 7)
			return false;
		cfa = frame->bp;
	}
	cfa += 8 * (rule & UNWIND_COMPACT_CFA_OFFSET_MASK);
	if (cfa > high)
		return false;
	ip = *unwind_get_stack_word_place(cfa - 8);
	if ((ip - 1) >> UNWIND_CACHE_PC_BITS)
		return false;
	/* No branch: whether rbp was saved is as good as random along a stack. */
	saved = rule >> UNWIND_COMPACT_RBP_SLOT_SHIFT & UNWIND_COMPACT_RBP_SLOT_MASK;
	kept = (uint64_t)0 - !saved;
	word = *unwind_get_stack_word_place(cfa - 8 * (saved + !saved));
	frame->bp = (frame->bp & kept) | (word & ~kept);
	frame->key = ip;
	frame->sp = cfa;
	*ret_saved = saved;
	return true;
}

/* As many frames as the memo and the cache know and the thread's own stack holds; returns the new
 * count. *ret_end: the last one is the outermost. */
UNWIND_UNSANITIZED
static uint32_t walk_frames_by_cache(struct unwind_walk *walk, uint64_t *restrict frames,
				     uint32_t count, uint32_t maximum, bool *ret_end)
{
	struct unwind_frame_cache_cursor cursor = walk->frame_cache_cursor;
	uint64_t high = walk->direct_read_high, *restrict stack_pointers = walk->stack_pointers;
	const struct unwind_cache *cache = walk->cache;
	uint64_t generation = unwind_cache_generation_to_tag_bits(walk->modules_view->generation);
	struct fast_path_frame_registers frame = {
		.sp = walk->sp, .bp = walk->bp, .key = walk->ip + walk->is_ip_exact};
	uint32_t first = count;
	uint64_t saved;
	int32_t how = -1;

	if (frame.sp < walk->direct_read_low || frame.sp > walk->direct_read_high || frame.sp & 7)
		return count;
	for (;; how = (int32_t)saved) {
		uint64_t hash, rule;

		if (!cursor.cache) {
			/* a walk without memory */
		} else if (unwind_frame_cache_find_frame_onward(&cursor, frame.sp, frame.bp,
								frame.key)) {
			unwind_frame_cache_reuse_frame(&cursor, frame.key, how);
			count = append_unchanged_frames_of_last_walk(
				&cursor, &frame, high, frames, stack_pointers, count, maximum);
		} else {
			unwind_frame_cache_record_frame(&cursor, frame.sp, frame.bp, frame.key,
							how);
		}
		hash = unwind_cache_hash_key(frame.key);
		rule = unwind_cache_load_entry(cache, hash);
		if (count == maximum ||
		    (rule ^ unwind_cache_compute_tag(hash, generation)) >> UNWIND_CACHE_RULE_BITS)
			break;
		if ((rule & UNWIND_COMPACT_CFA_OFFSET_MASK) == 0) {
			*ret_end = (rule >> UNWIND_COMPACT_RBP_SLOT_SHIFT &
				    UNWIND_COMPACT_RBP_SLOT_MASK) == UNWIND_COMPACT_RULE_OUTERMOST;
			break;
		}
		if (!step_by_compact_rule(rule, &frame, high, &saved))
			break;
		if (stack_pointers)
			stack_pointers[count] = frame.sp;
		frames[count++] = frame.key;
	}
	walk->frame_cache_cursor = cursor;
	if (count == first)
		return count;
	walk->ip = frame.key;
	walk->sp = frame.sp;
	walk->bp = frame.bp;
	walk->is_ip_exact = false;
	walk->frames_since_interrupted += count - first;
	walk->is_bx_known = false;
	return count;
}

/* The frame that the walk has arrived in. */
static void note_frame(const struct unwind_walk *walk, uint64_t *frames, uint32_t index)
{
	frames[index] = walk->ip + (walk->is_ip_exact && index);
	if (walk->stack_pointers)
		walk->stack_pointers[index] = walk->sp;
}

/* What the program knows nothing of is taken out of the last frame, `index`. */
static enum unwind_trampoline_kind undo_trampoline_frame(struct unwind_walk *walk, uint64_t *frames,
							 uint32_t index)
{
	const struct unwind_trampoline_callbacks *trampoline_ops =
		atomic_load_explicit(&unwind_trampoline_callbacks, memory_order_relaxed);
	struct unwind_trampoline_frame_info trampoline = {.ip = walk->ip,
							  .sp = walk->sp,
							  .is_ip_exact = walk->is_ip_exact,
							  .place = walk->place};
	enum unwind_trampoline_kind kind =
		trampoline_ops ? trampoline_ops->undo(&trampoline) : UNWIND_TRAMPOLINE_NONE;

	if (kind == UNWIND_TRAMPOLINE_NONE)
		return kind;
	walk->ip = trampoline.ip;
	walk->sp = trampoline.sp;
	walk->is_ip_exact = trampoline.is_ip_exact;
	walk->place = trampoline.place;
	note_frame(walk, frames, index);
	return kind;
}

static uint32_t walk_frames(struct unwind_walk *walk, uint64_t *frames, uint32_t maximum)
{
	uint32_t count = 1;

	note_frame(walk, frames, 0);
	for (;;) {
		enum unwind_step_result result;
		enum unwind_trampoline_kind trampoline;
		bool outermost = false;

		if (walk->cache && !walk->track_bx)
			count = walk_frames_by_cache(walk, frames, count, maximum, &outermost);
		if (outermost) {
			walk->end = SPOOL_STACK_COMPLETE;
			return count;
		}
		trampoline = undo_trampoline_frame(walk, frames, count - 1);
		if (trampoline == UNWIND_TRAMPOLINE_UNDONE)
			continue;
		result = step_to_caller(walk);
		if (result == UNWIND_STEP_END) {
			/* The last frame was no code after all. */
			if (walk->end == SPOOL_STACK_BAD_PC && count > 1)
				count--;
			else if (walk->is_ip_exact && count > 1)
				frames[count - 1] = walk->ip + 1;
			return count;
		}
		walk->is_ip_exact = result == UNWIND_STEP_INTERRUPTED;
		walk->met_interrupted_frame |= walk->is_ip_exact;
		if (walk->ip == 0) {
			walk->end = SPOOL_STACK_COMPLETE;
			return count;
		}
		if (walk->ip >> UNWIND_CACHE_PC_BITS) {
			walk->end = SPOOL_STACK_BAD_PC;
			return count;
		}
		if (trampoline == UNWIND_TRAMPOLINE_HIDDEN)
			count--;
		if (count == maximum) {
			walk->end = SPOOL_STACK_DEPTH;
			return count;
		}
		note_frame(walk, frames, count);
		count++;
	}
}

static void init_walk(struct unwind_walk *walk, const struct unwind_start_registers *registers)
{
	walk->ip = registers->ip;
	walk->sp = registers->sp;
	walk->bp = registers->bp;
	walk->interrupted_gregs = registers->gregs;
	walk->bx = registers->gregs ? registers->gregs[REG_RBX] : 0;
	walk->is_bx_known = registers->gregs != NULL;
	walk->context = 0;
	walk->frames_since_interrupted = 0;
	walk->window_fetch_count = 0;
	walk->place = NULL;
	walk->is_ip_exact = true;
	walk->failed_without_bx = false;
	walk->end = SPOOL_STACK_COMPLETE;
}

uint32_t unwind_walk_stack(const struct unwind_all_modules_view *view, struct unwind_cache *cache,
			   const struct unwind_start_registers *registers,
			   const struct unwind_stack_bounds *bounds, struct unwind_scratch *scratch,
			   uint64_t *frames, uint32_t maximum, enum spool_stack_end *end)
{
	struct unwind_walk walk = {.modules_view = view, .cache = cache, .scratch = scratch};
	uint32_t count;

	if (scratch) {
		scratch->window_valid_bytes = 0;
		walk.stack_pointers = scratch->stack_pointers;
	}
	set_directly_readable_stack(&walk, bounds, registers->sp);
	init_walk(&walk, registers);
	if (scratch && cache && walk.direct_read_high)
		walk.frame_cache_cursor =
			unwind_frame_cache_begin_walk(&scratch->frame_cache, view->generation);
	count = walk_frames(&walk, frames, maximum);
	unwind_frame_cache_save_walk(&walk.frame_cache_cursor);
	if (walk.failed_without_bx && !walk.track_bx) {
		walk.track_bx = true;
		init_walk(&walk, registers);
		count = walk_frames(&walk, frames, maximum);
	}
	if (scratch) {
		scratch->met_unknown_address = walk.met_unknown_address;
		scratch->met_interrupted_frame = walk.met_interrupted_frame;
	}
	*end = walk.end;
	return count;
}
