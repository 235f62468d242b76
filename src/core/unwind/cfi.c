/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Call frame information as DWARF 5, 6.4 and LSB Core, 10.6 describe it, reduced to what a stack
 * walk on x86-64 needs: CFA, return address, rbp, and rbx (the only other register that code of
 * libc, ld.so's lazy binding trampoline, keeps its CFA in across calls).
 */
#include "core/unwind/cfi.h"

#include <errno.h>

#include "core/unwind/dwarf.h"

#define CFI_REMEMBERED_STATES_MAX 32

enum {
	DW_CFA_NOP = 0x00,
	DW_CFA_SET_LOC = 0x01,
	DW_CFA_ADVANCE_LOC1 = 0x02,
	DW_CFA_ADVANCE_LOC2 = 0x03,
	DW_CFA_ADVANCE_LOC4 = 0x04,
	DW_CFA_OFFSET_EXTENDED = 0x05,
	DW_CFA_RESTORE_EXTENDED = 0x06,
	DW_CFA_UNDEFINED = 0x07,
	DW_CFA_SAME_VALUE = 0x08,
	DW_CFA_REGISTER = 0x09,
	DW_CFA_REMEMBER_STATE = 0x0a,
	DW_CFA_RESTORE_STATE = 0x0b,
	DW_CFA_DEF_CFA = 0x0c,
	DW_CFA_DEF_CFA_REGISTER = 0x0d,
	DW_CFA_DEF_CFA_OFFSET = 0x0e,
	DW_CFA_DEF_CFA_EXPRESSION = 0x0f,
	DW_CFA_EXPRESSION = 0x10,
	DW_CFA_OFFSET_EXTENDED_SF = 0x11,
	DW_CFA_DEF_CFA_SF = 0x12,
	DW_CFA_DEF_CFA_OFFSET_SF = 0x13,
	DW_CFA_VAL_OFFSET = 0x14,
	DW_CFA_VAL_OFFSET_SF = 0x15,
	DW_CFA_VAL_EXPRESSION = 0x16,
	DW_CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	DW_CFA_GNU_WINDOW_SAVE = 0x2d,
	DW_CFA_GNU_ARGS_SIZE = 0x2e,
	DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f
};

uint64_t dwarf_read_encoded_pointer(struct dwarf_cursor *cursor, uint8_t encoding, uint64_t address,
				    uint64_t data, bool skip)
{
	uint64_t value;

	if (encoding == DWARF_PE_OMIT)
		return 0;
	if ((encoding & 0x70) == DWARF_PE_ALIGNED) {
		dwarf_skip_bytes(cursor, (8 - (address & 7)) & 7);
		return dwarf_read_unsigned(cursor, 8);
	}
	switch (encoding & 0x0f) {
	case DWARF_PE_ABSOLUTE:
	case DWARF_PE_UDATA8:
	case DWARF_PE_SIGNED:
	case DWARF_PE_SDATA8:
		value = dwarf_read_unsigned(cursor, 8);
		break;
	case DWARF_PE_ULEB:
		value = dwarf_read_uleb(cursor);
		break;
	case DWARF_PE_UDATA2:
		value = dwarf_read_unsigned(cursor, 2);
		break;
	case DWARF_PE_UDATA4:
		value = dwarf_read_unsigned(cursor, 4);
		break;
	case DWARF_PE_SLEB:
		value = (uint64_t)dwarf_read_sleb(cursor);
		break;
	case DWARF_PE_SDATA2:
		value = (uint64_t)dwarf_read_signed(cursor, 2);
		break;
	case DWARF_PE_SDATA4:
		value = (uint64_t)dwarf_read_signed(cursor, 4);
		break;
	default:
		cursor->bad = true;
		return 0;
	}
	if (skip)
		return 0;
	if (encoding & DWARF_PE_INDIRECT)
		cursor->bad = true;
	if ((encoding & 0x70) == DWARF_PE_PCREL)
		return address + value;
	if ((encoding & 0x70) == DWARF_PE_DATAREL)
		return data + value;
	if ((encoding & 0x70) != 0)
		cursor->bad = true;
	return value;
}

static uint64_t cfi_get_cursor_position(const struct cfi_section *section,
					const struct dwarf_cursor *cursor)
{
	return (uint64_t)(cursor->at - section->bytes);
}

bool cfi_parse_entry_at(const struct cfi_section *section, uint64_t position, struct cfi_entry *ret)
{
	struct dwarf_cursor cursor;
	uint64_t length;
	unsigned size = 4;

	if (position >= section->size)
		return false;
	cursor = dwarf_cursor_init(section->bytes + position, section->size - position);
	length = dwarf_read_unsigned(&cursor, 4);
	if (length == 0xffffffff) {
		size = 8;
		length = dwarf_read_unsigned(&cursor, 8);
	}
	if (cursor.bad || length < size || length > dwarf_count_bytes_left(&cursor))
		return false;
	ret->position = position;
	ret->id_position = cfi_get_cursor_position(section, &cursor);
	ret->end = ret->id_position + length;
	ret->id = dwarf_read_unsigned(&cursor, size);
	ret->body_position = cfi_get_cursor_position(section, &cursor);
	return true;
}

/* The augmentation string's letters and their data (LSB Core, 10.6.1.1.1). */
static int cfi_read_augmentation(const struct cfi_section *section, struct dwarf_cursor *cursor,
				 const uint8_t *letters, struct cfi_cie *cie)
{
	const uint8_t *end;
	uint64_t length;

	if (letters[0] == 0)
		return 0;
	if (letters[0] != 'z')
		return -ENOTSUP;
	cie->has_augmentation = true;
	length = dwarf_read_uleb(cursor);
	if (cursor->bad || length > dwarf_count_bytes_left(cursor))
		return -EINVAL;
	end = cursor->at + length;
	for (letters++; *letters; letters++) {
		uint64_t address = section->address + cfi_get_cursor_position(section, cursor);

		if (*letters == 'R') {
			cie->fde_pointer_encoding = (uint8_t)dwarf_read_unsigned(cursor, 1);
		} else if (*letters == 'P') {
			uint8_t encoding = (uint8_t)dwarf_read_unsigned(cursor, 1);

			dwarf_read_encoded_pointer(cursor, encoding, address + 1, 0, true);
		} else if (*letters == 'L') {
			dwarf_skip_bytes(cursor, 1);
		} else if (*letters == 'S') {
			cie->signal = true;
		} else {
			break;
		}
	}
	if (cursor->bad || cursor->at > end)
		return -EINVAL;
	cursor->at = end;
	return 0;
}

/* State of one program. */
struct cfi_program_state {
	struct cfi_section *section;
	const struct cfi_cie *cie;
	const struct cfi_row_sink *row_sink; /* NULL: the CIE's own program */
	uint64_t location, end;
	struct unwind_rule current_frame_rule;
	struct unwind_rule remembered_rules[CFI_REMEMBERED_STATES_MAX];
	uint32_t remembered_rule_count;
	bool no_memory;
};

static const struct unwind_value_location cfi_undefined_location_value = {
	.kind = UNWIND_LOCATION_UNDEFINED};

static struct unwind_value_location *cfi_get_location_field_of_register(struct unwind_rule *rule,
									uint64_t reg)
{
	if (reg == DWARF_REGISTER_RBP)
		return &rule->bp;
	if (reg == DWARF_REGISTER_RBX)
		return &rule->bx;
	if (reg == DWARF_REGISTER_RIP)
		return &rule->ra;
	return NULL;
}

static void cfi_set_register_rule(struct cfi_program_state *run, uint64_t reg,
				  enum unwind_location_kind kind, int64_t value)
{
	struct unwind_value_location *location =
		cfi_get_location_field_of_register(&run->current_frame_rule, reg);

	if (!location)
		return;
	*location = cfi_undefined_location_value;
	location->kind = (uint8_t)(value == (int32_t)value ? kind : UNWIND_LOCATION_UNSUPPORTED);
	location->value = (int32_t)value;
}

static void cfi_set_cfa_register_plus_offset(struct cfi_program_state *run, uint64_t reg,
					     int64_t offset)
{
	struct unwind_value_location *cfa = &run->current_frame_rule.cfa;

	*cfa = cfi_undefined_location_value;
	cfa->kind = UNWIND_LOCATION_UNSUPPORTED;
	if (reg >= DWARF_REGISTER_RIP || offset != (int32_t)offset)
		return;
	cfa->kind = UNWIND_LOCATION_REGISTER_PLUS_OFFSET;
	cfa->reg = (uint8_t)reg;
	cfa->value = (int32_t)offset;
}

static void cfi_restore_initial_register_rule(struct cfi_program_state *run, uint64_t reg)
{
	struct unwind_rule initial = run->cie->initial_rule;
	struct unwind_value_location *location =
		cfi_get_location_field_of_register(&run->current_frame_rule, reg);

	if (location)
		*location = *cfi_get_location_field_of_register(&initial, reg);
}

static void cfi_read_and_set_expression(struct cfi_program_state *run, struct dwarf_cursor *cursor,
					struct unwind_value_location *location,
					enum unwind_location_kind kind, bool push_cfa)
{
	uint64_t size = dwarf_read_uleb(cursor);
	const uint8_t *bytes = cursor->at;
	uint32_t index;

	dwarf_skip_bytes(cursor, size);
	if (cursor->bad || !location)
		return;
	*location = cfi_undefined_location_value;
	location->kind = UNWIND_LOCATION_UNSUPPORTED;
	if (cfi_translate_expression(run->section, bytes, size, push_cfa, &index)) {
		location->kind = (uint8_t)kind;
		location->value = (int32_t)index;
	}
}

/* glibc's __restore_rt describes the frame of a signal by expressions on the ucontext at rsp, whose
 * saved rsp lies at 160 and rip at 168 (asm/ucontext.h, asm/sigcontext.h): recognised, so that the
 * walker takes all registers from there. */
static bool cfi_frame_is_signal_context(const struct cfi_program_state *run)
{
	const struct unwind_expression_operation *ops = run->section->expression_ops.data;

	if (!run->cie->signal ||
	    run->current_frame_rule.cfa.kind != UNWIND_LOCATION_EXPRESSION_RESULT)
		return false;
	ops += run->current_frame_rule.cfa.value;
	return ops[0].code == UNWIND_OP_REGISTER_PLUS_CONSTANT &&
	       ops[0].reg == DWARF_REGISTER_RSP && ops[0].operand == 160 &&
	       ops[1].code == UNWIND_OP_DEREF && ops[2].code == UNWIND_OP_END;
}

/* One spelling for rules that mean the same to the walker. */
static struct unwind_rule cfi_build_canonical_rule(const struct cfi_program_state *run)
{
	struct unwind_rule rule = run->current_frame_rule;
	const struct unwind_rule none = {.cfa = cfi_undefined_location_value};

	if (rule.ra.kind == UNWIND_LOCATION_UNDEFINED)
		return none;
	if (cfi_frame_is_signal_context(run)) {
		rule = none;
		rule.cfa.kind = UNWIND_LOCATION_UCONTEXT;
		return rule;
	}
	if (rule.cfa.kind == UNWIND_LOCATION_UNSUPPORTED ||
	    rule.cfa.kind == UNWIND_LOCATION_UNDEFINED ||
	    rule.ra.kind == UNWIND_LOCATION_UNSUPPORTED ||
	    rule.ra.kind == UNWIND_LOCATION_SAME_REGISTER) {
		rule = none;
		rule.cfa.kind = UNWIND_LOCATION_UNSUPPORTED;
		return rule;
	}
	if (rule.bp.kind == UNWIND_LOCATION_UNSUPPORTED)
		rule.bp = cfi_undefined_location_value;
	if (rule.bx.kind == UNWIND_LOCATION_UNSUPPORTED)
		rule.bx = cfi_undefined_location_value;
	return rule;
}

static bool cfi_emit_row(struct cfi_program_state *run)
{
	struct unwind_rule rule;

	if (!run->row_sink || run->location >= run->end)
		return true;
	rule = cfi_build_canonical_rule(run);
	if (run->row_sink->row(run->row_sink->context, run->location, &rule))
		return true;
	run->no_memory = true;
	return false;
}

/* False: the program ends here (past the function, or out of memory). */
static bool cfi_emit_row_and_advance_to(struct cfi_program_state *run, uint64_t location)
{
	if (location == run->location)
		return true;
	if (!cfi_emit_row(run))
		return false;
	if (location < run->location || location >= run->end) {
		run->location = run->end;
		return run->row_sink == NULL;
	}
	run->location = location;
	return true;
}

static bool cfi_advance_by_delta(struct cfi_program_state *run, uint64_t delta)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(delta, run->cie->code_alignment_factor, &bytes) ||
	    __builtin_add_overflow(run->location, bytes, &bytes))
		bytes = run->end;
	return cfi_emit_row_and_advance_to(run, bytes);
}

/* Instructions that move the location or save the state. *ret_done: it was one of these. */
static bool cfi_apply_location_or_state_instruction(struct cfi_program_state *run,
						    struct dwarf_cursor *cursor, uint8_t operation,
						    bool *ret_done)
{
	uint64_t address;

	*ret_done = true;
	if (operation >> 6 == 1)
		return cfi_advance_by_delta(run, operation & 63);
	switch (operation) {
	case DW_CFA_NOP:
	case DW_CFA_GNU_WINDOW_SAVE:
		return true;
	case DW_CFA_SET_LOC:
		address = run->section->address + cfi_get_cursor_position(run->section, cursor);
		address =
			dwarf_read_encoded_pointer(cursor, run->cie->fde_pointer_encoding, address,
						   run->section->eh_frame_hdr_address, false);
		return !cursor->bad && cfi_emit_row_and_advance_to(run, address);
	case DW_CFA_ADVANCE_LOC1:
		return cfi_advance_by_delta(run, dwarf_read_unsigned(cursor, 1));
	case DW_CFA_ADVANCE_LOC2:
		return cfi_advance_by_delta(run, dwarf_read_unsigned(cursor, 2));
	case DW_CFA_ADVANCE_LOC4:
		return cfi_advance_by_delta(run, dwarf_read_unsigned(cursor, 4));
	case DW_CFA_MIPS_ADVANCE_LOC8:
		return cfi_advance_by_delta(run, dwarf_read_unsigned(cursor, 8));
	case DW_CFA_REMEMBER_STATE:
		if (run->remembered_rule_count == CFI_REMEMBERED_STATES_MAX)
			return false;
		run->remembered_rules[run->remembered_rule_count++] = run->current_frame_rule;
		return true;
	case DW_CFA_RESTORE_STATE:
		if (run->remembered_rule_count == 0)
			return false;
		run->current_frame_rule = run->remembered_rules[--run->remembered_rule_count];
		return true;
	default:
		*ret_done = false;
		return true;
	}
}

/* Instructions that define the CFA. False: not one of these. */
static bool cfi_apply_cfa_instruction(struct cfi_program_state *run, struct dwarf_cursor *cursor,
				      uint8_t operation)
{
	struct unwind_value_location *cfa = &run->current_frame_rule.cfa;
	uint64_t reg = cfa->kind == UNWIND_LOCATION_REGISTER_PLUS_OFFSET ? cfa->reg : UINT64_MAX;
	int64_t scale = run->cie->data_alignment_factor;

	switch (operation) {
	case DW_CFA_DEF_CFA:
		reg = dwarf_read_uleb(cursor);
		cfi_set_cfa_register_plus_offset(run, reg, (int64_t)dwarf_read_uleb(cursor));
		return true;
	case DW_CFA_DEF_CFA_SF:
		reg = dwarf_read_uleb(cursor);
		cfi_set_cfa_register_plus_offset(
			run, reg, (int64_t)((uint64_t)dwarf_read_sleb(cursor) * (uint64_t)scale));
		return true;
	case DW_CFA_DEF_CFA_REGISTER:
		reg = cfa->kind == UNWIND_LOCATION_REGISTER_PLUS_OFFSET ? dwarf_read_uleb(cursor)
									: UINT64_MAX;
		cfi_set_cfa_register_plus_offset(run, reg, cfa->value);
		return true;
	case DW_CFA_DEF_CFA_OFFSET:
		cfi_set_cfa_register_plus_offset(run, reg, (int64_t)dwarf_read_uleb(cursor));
		return true;
	case DW_CFA_DEF_CFA_OFFSET_SF:
		cfi_set_cfa_register_plus_offset(
			run, reg, (int64_t)((uint64_t)dwarf_read_sleb(cursor) * (uint64_t)scale));
		return true;
	case DW_CFA_DEF_CFA_EXPRESSION:
		cfi_read_and_set_expression(run, cursor, cfa, UNWIND_LOCATION_EXPRESSION_RESULT,
					    false);
		return true;
	default:
		return false;
	}
}

/* Instructions that say where a register is. False: unknown instruction. */
static bool cfi_apply_register_instruction(struct cfi_program_state *run,
					   struct dwarf_cursor *cursor, uint8_t operation)
{
	uint64_t scale = (uint64_t)run->cie->data_alignment_factor;
	uint64_t reg = operation >> 6 ? operation & 63 : dwarf_read_uleb(cursor);
	uint64_t other;

	switch (operation >> 6 ? operation & 0xc0 : operation) {
	case 0x80: /* DW_CFA_offset */
	case DW_CFA_OFFSET_EXTENDED:
		cfi_set_register_rule(run, reg, UNWIND_LOCATION_AT_CFA_OFFSET,
				      (int64_t)(dwarf_read_uleb(cursor) * scale));
		return true;
	case DW_CFA_OFFSET_EXTENDED_SF:
		cfi_set_register_rule(run, reg, UNWIND_LOCATION_AT_CFA_OFFSET,
				      (int64_t)((uint64_t)dwarf_read_sleb(cursor) * scale));
		return true;
	case DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		cfi_set_register_rule(run, reg, UNWIND_LOCATION_AT_CFA_OFFSET,
				      (int64_t)(0 - dwarf_read_uleb(cursor) * scale));
		return true;
	case DW_CFA_VAL_OFFSET:
		cfi_set_register_rule(run, reg, UNWIND_LOCATION_CFA_PLUS_OFFSET,
				      (int64_t)(dwarf_read_uleb(cursor) * scale));
		return true;
	case DW_CFA_VAL_OFFSET_SF:
		cfi_set_register_rule(run, reg, UNWIND_LOCATION_CFA_PLUS_OFFSET,
				      (int64_t)((uint64_t)dwarf_read_sleb(cursor) * scale));
		return true;
	case 0xc0: /* DW_CFA_restore */
	case DW_CFA_RESTORE_EXTENDED:
		cfi_restore_initial_register_rule(run, reg);
		return true;
	case DW_CFA_UNDEFINED:
		cfi_set_register_rule(run, reg, UNWIND_LOCATION_UNDEFINED, 0);
		return true;
	case DW_CFA_SAME_VALUE:
		cfi_set_register_rule(run, reg, UNWIND_LOCATION_SAME_REGISTER, 0);
		return true;
	case DW_CFA_REGISTER:
		other = dwarf_read_uleb(cursor);
		cfi_set_register_rule(run, reg,
				      other <= DWARF_REGISTER_RIP
					      ? UNWIND_LOCATION_REGISTER_PLUS_OFFSET
					      : UNWIND_LOCATION_UNSUPPORTED,
				      0);
		if (other <= DWARF_REGISTER_RIP &&
		    cfi_get_location_field_of_register(&run->current_frame_rule, reg))
			cfi_get_location_field_of_register(&run->current_frame_rule, reg)->reg =
				(uint8_t)other;
		return true;
	case DW_CFA_EXPRESSION:
		cfi_read_and_set_expression(
			run, cursor,
			cfi_get_location_field_of_register(&run->current_frame_rule, reg),
			UNWIND_LOCATION_AT_EXPRESSION_RESULT, true);
		return true;
	case DW_CFA_VAL_EXPRESSION:
		cfi_read_and_set_expression(
			run, cursor,
			cfi_get_location_field_of_register(&run->current_frame_rule, reg),
			UNWIND_LOCATION_EXPRESSION_RESULT, true);
		return true;
	default:
		return false;
	}
}

static int cfi_run_instructions(struct cfi_program_state *run, uint64_t position, uint64_t end)
{
	struct dwarf_cursor cursor =
		dwarf_cursor_init(run->section->bytes + position, end - position);

	while (cursor.at < cursor.end) {
		uint8_t operation = *cursor.at++;
		bool done, ok;

		if (run->section->budget-- == 0) {
			run->section->budget = 0;
			return -E2BIG;
		}
		ok = cfi_apply_location_or_state_instruction(run, &cursor, operation, &done);
		if (run->no_memory)
			return -ENOMEM;
		if (ok && !done) {
			if (operation == DW_CFA_GNU_ARGS_SIZE)
				dwarf_read_uleb(&cursor);
			else
				ok = cfi_apply_cfa_instruction(run, &cursor, operation) ||
				     cfi_apply_register_instruction(run, &cursor, operation);
		}
		if (run->location == run->end && run->row_sink)
			return 0;
		if (!ok || cursor.bad)
			run->current_frame_rule.cfa.kind = UNWIND_LOCATION_UNSUPPORTED;
		if (!ok || cursor.bad)
			break;
	}
	return cfi_emit_row(run) ? 0 : -ENOMEM;
}

int cfi_cie_parse(struct cfi_section *section, uint64_t position, struct cfi_cie *ret)
{
	struct cfi_program_state run = {.section = section, .cie = ret, .end = UINT64_MAX};
	struct dwarf_cursor cursor;
	const uint8_t *letters;
	struct cfi_entry entry;
	uint64_t version;
	int status;

	if (!cfi_parse_entry_at(section, position, &entry) || entry.id != 0)
		return -EINVAL;
	*ret = (struct cfi_cie){.position = position, .fde_pointer_encoding = DWARF_PE_ABSOLUTE};
	cursor = dwarf_cursor_init(section->bytes + entry.body_position,
				   entry.end - entry.body_position);
	version = dwarf_read_unsigned(&cursor, 1);
	letters = cursor.at;
	while (cursor.at < cursor.end && *cursor.at)
		cursor.at++;
	dwarf_skip_bytes(&cursor, 1);
	if (version == 4) /* address size and segment selector size */
		dwarf_skip_bytes(&cursor, 2);
	ret->code_alignment_factor = dwarf_read_uleb(&cursor);
	ret->data_alignment_factor = dwarf_read_sleb(&cursor);
	if ((version == 1 ? dwarf_read_unsigned(&cursor, 1) : dwarf_read_uleb(&cursor)) !=
		    DWARF_REGISTER_RIP ||
	    cursor.bad || (version != 1 && version != 3 && version != 4))
		return -EINVAL;
	status = cfi_read_augmentation(section, &cursor, letters, ret);
	if (status)
		return status;
	ret->program = cfi_get_cursor_position(section, &cursor);
	ret->program_end = entry.end;
	run.current_frame_rule.ra.kind = run.current_frame_rule.bp.kind =
		run.current_frame_rule.bx.kind = UNWIND_LOCATION_SAME_REGISTER;
	run.current_frame_rule.cfa.kind = UNWIND_LOCATION_UNSUPPORTED;
	ret->initial_rule = run.current_frame_rule;
	status = cfi_run_instructions(&run, ret->program, ret->program_end);
	ret->initial_rule = run.current_frame_rule;
	return status;
}

int cfi_fde_parse(const struct cfi_section *section, const struct cfi_entry *entry,
		  const struct cfi_cie *cie, struct cfi_fde *ret)
{
	struct dwarf_cursor cursor = dwarf_cursor_init(section->bytes + entry->body_position,
						       entry->end - entry->body_position);

	ret->cie = cie->position;
	ret->begin = dwarf_read_encoded_pointer(&cursor, cie->fde_pointer_encoding,
						section->address + entry->body_position,
						section->eh_frame_hdr_address, false);
	ret->range =
		dwarf_read_encoded_pointer(&cursor, cie->fde_pointer_encoding & 0x0f, 0, 0, false);
	if (cie->has_augmentation)
		dwarf_skip_bytes(&cursor, dwarf_read_uleb(&cursor));
	if (cursor.bad || ret->begin + ret->range < ret->begin)
		return -EINVAL;
	ret->program = cfi_get_cursor_position(section, &cursor);
	ret->program_end = entry->end;
	return 0;
}

int cfi_fde_emit_rows(struct cfi_section *section, const struct cfi_cie *cie,
		      const struct cfi_fde *fde, const struct cfi_row_sink *sink)
{
	struct cfi_program_state run = {
		.section = section,
		.cie = cie,
		.row_sink = sink,
		.location = fde->begin,
		.end = fde->begin + fde->range,
		.current_frame_rule = cie->initial_rule,
	};

	return cfi_run_instructions(&run, fde->program, fde->program_end);
}
