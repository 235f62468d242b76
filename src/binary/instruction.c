/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The decoder: prefixes, opcode, ModRM, SIB, displacement, immediate, in this order. What an opcode
 * is followed by stands in a table of one byte each (instruction_tables.h); the few opcodes for
 * which that is not enough, branches among them, are refined once their ModRM byte is known.
 */
#include "binary/instruction.h"

#include <string.h>

#include "binary/instruction_tables.h"

/* Bytes that are read of one instruction at most: fifteen prefixes, and behind them eight bytes. */
#define INSTRUCTION_READ_BYTES_MAX 32u
/* The same where there are few prefixes, as always: a distance may be a byte at offset 14, and is
 * read as four. */
#define INSTRUCTION_USUAL_READ_BYTES_MAX 18u
#define USUAL_PREFIXES_MAX               8u

#define PREFIXES_FORBIDDEN_BEFORE_VEX                                                              \
	(INSTRUCTION_PREFIX_66 | INSTRUCTION_PREFIX_F2 | INSTRUCTION_PREFIX_F3 |                   \
	 INSTRUCTION_PREFIX_LOCK)

/* What is known of an instruction while it is being read. Opcode, ModRM and SIB are taken from one
 * word: loads one after the other would cost more than all the rest. */
struct instruction_decoder_state {
	uint64_t next_bytes; /* the bytes from `at` on */
	unsigned at;
	unsigned prefix_bits, rex, opcode_map, opcode, opcode_shape, modrm;
	bool has_vector_prefix;
};

static inline unsigned read_next_byte(struct instruction_decoder_state *decoding)
{
	unsigned byte = decoding->next_bytes & 0xff;

	decoding->next_bytes >>= 8;
	decoding->at++;
	return byte;
}

/* Column of immediate_bytes_by_shape. */
static inline unsigned get_operand_size_column(const struct instruction_decoder_state *decoding)
{
	if (decoding->rex & INSTRUCTION_REX_W)
		return 2;
	return decoding->prefix_bits & INSTRUCTION_PREFIX_66;
}

/* Maps 1 to 3 of VEX and EVEX are laid out as their legacy ancestors; 5 and 6 are of AVX512-FP16,
 * 8 to 10 of XOP. */
static bool set_vector_opcode_shape(struct instruction_decoder_state *decoding)
{
	switch (decoding->opcode_map) {
	case 1:
		decoding->opcode_shape = two_byte_opcode_shapes[decoding->opcode] &
					 (SHAPE_IMMEDIATE_MASK | SHAPE_MODRM);
		if (decoding->opcode == 0x77) /* vzeroupper */
			return true;
		if ((decoding->opcode & 0xf0) == 0x80) /* branches of the first Xeon Phi */
			return false;
		if (decoding->opcode_shape != (SHAPE_MODRM | SHAPE_I8))
			decoding->opcode_shape = SHAPE_MODRM;
		return true;
	case 2:
	case 5:
	case 6:
	case 9:
		decoding->opcode_shape = SHAPE_MODRM;
		return true;
	case 3:
	case 8:
		decoding->opcode_shape = SHAPE_MODRM | SHAPE_I8;
		return true;
	case 10:
		decoding->opcode_shape = SHAPE_MODRM | SHAPE_I32;
		return true;
	default:
		return false;
	}
}

/* VEX, EVEX and XOP. Their payload has taken the place of 66, f2, f3, f0 and REX, which may not
 * stand before them. `escape` is the shape of the first byte, which was read. */
static bool read_vector_prefix_and_opcode(struct instruction_decoder_state *decoding,
					  unsigned escape)
{
	unsigned first = read_next_byte(decoding);

	if (decoding->rex || (decoding->prefix_bits & PREFIXES_FORBIDDEN_BEFORE_VEX))
		return false;
	decoding->has_vector_prefix = true;
	decoding->opcode_map = first & 0x1f;
	switch (escape) {
	case SHAPE_VEX2:
		decoding->opcode_map = 1;
		break;
	case SHAPE_EVEX:
		decoding->opcode_map = first & 0x0f;
		if (!(read_next_byte(decoding) & 4) || decoding->opcode_map > 6)
			return false;
		read_next_byte(decoding);
		break;
	default:
		if (escape == SHAPE_VEX3 && decoding->opcode_map > 3)
			return false;
		read_next_byte(decoding);
		break;
	}
	decoding->opcode = read_next_byte(decoding);
	return set_vector_opcode_shape(decoding);
}

static inline bool read_opcode_after_0f(struct instruction_decoder_state *decoding)
{
	decoding->opcode = read_next_byte(decoding);
	decoding->opcode_map = 1;
	decoding->opcode_shape = two_byte_opcode_shapes[decoding->opcode];
	if (!(decoding->opcode_shape & SHAPE_INVALID_OR_ESCAPE))
		return true;
	if (decoding->opcode_shape != SHAPE_ESCAPE_38 && decoding->opcode_shape != SHAPE_ESCAPE_3A)
		return false;
	decoding->opcode_map = decoding->opcode_shape == SHAPE_ESCAPE_38 ? 2 : 3;
	decoding->opcode_shape = decoding->opcode_map == 2 ? SHAPE_MODRM : SHAPE_MODRM | SHAPE_I8;
	decoding->opcode = read_next_byte(decoding);
	return true;
}

/* The opcode's first byte leads elsewhere: to another map, or it is none. */
static inline bool read_opcode_after_escape_byte(struct instruction_decoder_state *decoding)
{
	if (decoding->opcode_shape == SHAPE_ESCAPE_0F)
		return read_opcode_after_0f(decoding);
	if (decoding->opcode_shape == SHAPE_INVALID_OR_ESCAPE)
		return false;
	/* pop has the same first byte as XOP, and 0 where XOP has a map of at least 8 */
	if (decoding->opcode_shape == SHAPE_XOP && (decoding->next_bytes & 0x1f) < 8) {
		decoding->opcode_shape = SHAPE_MODRM;
		return !(decoding->next_bytes & 0x38);
	}
	return read_vector_prefix_and_opcode(decoding, decoding->opcode_shape);
}

static inline bool is_legacy_prefix_shape(unsigned shape)
{
	return (shape & (SHAPE_INVALID_OR_ESCAPE | SHAPE_PREFIX | SHAPE_REFINED_BY_MODRM)) ==
	       SHAPE_PREFIX;
}

/* Prefixes and opcode, at most `limit` prefixes. A REX prefix that is not the last of all is
 * ignored. */
static inline bool read_prefixes_and_opcode(struct instruction_decoder_state *decoding,
					    const uint8_t *bytes, unsigned limit)
{
	unsigned at = 0, shape = one_byte_opcode_shapes[bytes[0]], is_rex;

	do {
		while (is_legacy_prefix_shape(shape)) {
			decoding->prefix_bits |= (1u << (shape & SHAPE_IMMEDIATE_MASK)) >> 1;
			if (++at >= limit)
				return false;
			shape = one_byte_opcode_shapes[bytes[at]];
		}
		if (at >= limit)
			return false;
		memcpy(&decoding->next_bytes, bytes + at, sizeof(decoding->next_bytes));
		is_rex = (decoding->next_bytes & 0xf0) == 0x40;
		decoding->rex = is_rex ? decoding->next_bytes & 0xff : 0;
		decoding->next_bytes >>= 8 * is_rex;
		at += is_rex;
		shape = one_byte_opcode_shapes[decoding->next_bytes & 0xff];
	} while (__builtin_expect(shape & SHAPE_PREFIX, 0));
	decoding->at = at;
	decoding->opcode_shape = shape;
	decoding->opcode = read_next_byte(decoding);
	return !(shape & SHAPE_INVALID_OR_ESCAPE) || read_opcode_after_escape_byte(decoding);
}

/* Groups whose member (the reg field) decides. */
static bool refine_one_byte_opcode(struct instruction_decoder_state *decoding)
{
	unsigned member = decoding->modrm >> 3 & 7, flow = INSTRUCTION_NEXT;

	switch (decoding->opcode) {
	case 0xf6:
		decoding->opcode_shape = member < 2 ? SHAPE_I8 : 0;
		return true;
	case 0xf7:
		decoding->opcode_shape = member < 2 ? SHAPE_IZ : 0;
		return true;
	case 0xc6: /* mov, xabort */
		return !member || decoding->modrm == 0xf8;
	case 0xc7: /* mov, xbegin */
		if (decoding->modrm == 0xf8)
			decoding->opcode_shape |= INSTRUCTION_BRANCH << SHAPE_FLOW_SHIFT;
		return !member || decoding->modrm == 0xf8;
	case 0xfe:
		return member < 2;
	default: /* ff */
		if (member == 2 || member == 3)
			flow = INSTRUCTION_CALL_INDIRECT;
		else if (member == 4 || member == 5)
			flow = INSTRUCTION_JUMP_INDIRECT;
		decoding->opcode_shape |= flow << SHAPE_FLOW_SHIFT;
		/* Far ones take their target from memory alone. */
		return member != 7 && ((member != 3 && member != 5) || decoding->modrm < 0xc0);
	}
}

static bool refine_two_byte_opcode(struct instruction_decoder_state *decoding)
{
	switch (decoding->opcode) {
	case 0x01: /* f3 0f 01 ec: uiret */
		if (decoding->modrm == 0xec && decoding->prefix_bits & INSTRUCTION_PREFIX_F3)
			decoding->opcode_shape |= INSTRUCTION_RETURN << SHAPE_FLOW_SHIFT;
		return true;
	case 0x78: /* vmread; with a prefix extrq and insertq, which have two immediates */
		if (decoding->prefix_bits & (INSTRUCTION_PREFIX_66 | INSTRUCTION_PREFIX_F2))
			decoding->opcode_shape = SHAPE_I16;
		return true;
	default: /* popcnt */
		return decoding->prefix_bits & INSTRUCTION_PREFIX_F3;
	}
}

/* ModRM, SIB and displacement, without branches: in what compilers mix here is no pattern. */
static inline void read_modrm_and_displacement(struct instruction_decoder_state *decoding,
					       struct instruction *ret)
{
	unsigned has = (decoding->opcode_shape & SHAPE_MODRM) != 0;
	unsigned modrm = decoding->next_bytes & 0xff, base = decoding->next_bytes >> 8 & 7;
	unsigned size = displacement_and_sib_by_modrm[(modrm >> 3 & 0x18) | (modrm & 7)];
	unsigned sib, at;

	if ((decoding->opcode_shape & SHAPE_IMMEDIATE_MASK) == SHAPE_MODRM_REGISTERS)
		size = 0;
	size = has ? size : 0;
	sib = size / MODRM_SIB_FLAG;
	/* Base 5 without displacement means a displacement without base. */
	size = size == MODRM_SIB_FLAG && base == 5 ? 4 : size & MODRM_DISPLACEMENT_MASK;
	at = decoding->at + has + sib;
	decoding->modrm = has ? modrm : 0;
	decoding->at = at + size;
	ret->modrm = (uint8_t)decoding->modrm;
	ret->has_modrm = has;
	ret->is_rip_relative = size && (decoding->modrm & 0xc7) == 5;
	ret->displacement_offset = (uint8_t)(size ? at : 0);
	ret->displacement_size = (uint8_t)size;
}

/* The distance of a branch or of a RIP-relative operand, added up; again without branches. */
static inline void set_relative_target(const uint8_t *bytes, uint64_t address,
				       struct instruction *ret)
{
	bool is_operand = ret->is_rip_relative;
	bool is_branch =
		(unsigned)ret->flow - INSTRUCTION_JUMP <= INSTRUCTION_CALL - INSTRUCTION_JUMP;
	unsigned at = is_operand ? ret->displacement_offset : ret->immediate_offset;
	unsigned size = is_operand ? 4 : ret->immediate_size;
	unsigned spare = size & 4 ? 0 : 32 - 8 * size;
	uint32_t distance;
	uint64_t target;

	memcpy(&distance, bytes + at, sizeof(distance));
	target = address + ret->length +
		 (uint64_t)(int64_t)((int32_t)(distance << (spare & 31)) >> (spare & 31));
	ret->target = (is_operand | is_branch) ? target : 0;
	if (is_operand && ret->prefix_bits & INSTRUCTION_PREFIX_67)
		ret->target = (uint32_t)ret->target;
}

static inline bool decode_with_prefix_limit(const uint8_t *bytes, unsigned limit, uint64_t address,
					    struct instruction *ret)
{
	struct instruction_decoder_state decoding = {0};
	unsigned kind, size;

	if (!read_prefixes_and_opcode(&decoding, bytes, limit))
		return false;
	read_modrm_and_displacement(&decoding, ret);
	if (decoding.opcode_shape & SHAPE_REFINED_BY_MODRM &&
	    !(decoding.opcode_map ? refine_two_byte_opcode(&decoding)
				  : refine_one_byte_opcode(&decoding)))
		return false;
	kind = decoding.opcode_shape & SHAPE_IMMEDIATE_MASK;
	size = immediate_bytes_by_shape[kind][get_operand_size_column(&decoding)];
	if (kind == SHAPE_ABSOLUTE_ADDRESS && decoding.prefix_bits & INSTRUCTION_PREFIX_67)
		size = 4;
	ret->length = (uint8_t)(decoding.at + size);
	ret->flow = (uint8_t)(decoding.opcode_shape >> SHAPE_FLOW_SHIFT);
	ret->opcode = (uint8_t)decoding.opcode;
	ret->opcode_map = (uint8_t)decoding.opcode_map;
	ret->has_vector_prefix = decoding.has_vector_prefix;
	ret->prefix_bits = (uint8_t)decoding.prefix_bits;
	ret->rex = (uint8_t)decoding.rex;
	ret->immediate_offset = (uint8_t)(size ? decoding.at : 0);
	ret->immediate_size = (uint8_t)size;
	if (ret->length > INSTRUCTION_LENGTH_MAX)
		return false;
	set_relative_target(bytes, address, ret);
	return true;
}

/* Near the end of the bytes, and with more prefixes than usual. */
static __attribute__((noinline)) bool decode_from_padded_copy(const uint8_t *bytes, size_t size,
							      uint64_t address,
							      struct instruction *ret)
{
	uint8_t copy[INSTRUCTION_READ_BYTES_MAX] = {0};

	memcpy(copy, bytes, size < INSTRUCTION_LENGTH_MAX ? size : INSTRUCTION_LENGTH_MAX);
	return decode_with_prefix_limit(copy, INSTRUCTION_LENGTH_MAX, address, ret) &&
	       ret->length <= size;
}

bool instruction_decode(const uint8_t *bytes, size_t size, uint64_t address,
			struct instruction *ret)
{
	if (size >= INSTRUCTION_USUAL_READ_BYTES_MAX &&
	    decode_with_prefix_limit(bytes, USUAL_PREFIXES_MAX, address, ret))
		return true;
	return decode_from_padded_copy(bytes, size, address, ret);
}
