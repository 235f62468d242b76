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

/* Of one instruction no more than this is read: fifteen prefixes, and behind them eight bytes. */
#define READ_MAX 32u
/* The same where there are few prefixes, as always: a distance may be a byte at offset 14, and is
 * read as four. */
#define READ_USUAL     18u
#define PREFIXES_USUAL 8u

#define NOT_BEFORE_VECTOR                                                                          \
	(INSTRUCTION_PREFIX_66 | INSTRUCTION_PREFIX_F2 | INSTRUCTION_PREFIX_F3 |                   \
	 INSTRUCTION_PREFIX_LOCK)

/* What is known of an instruction while it is being read. Opcode, ModRM and SIB are taken from one
 * word: loads one after the other would cost more than all the rest. */
struct decoding {
	uint64_t word; /* the bytes from `at` on */
	unsigned at;
	unsigned prefixes, rex, map, opcode, shape, modrm;
	bool vex;
};

static inline unsigned next_byte(struct decoding *decoding)
{
	unsigned byte = decoding->word & 0xff;

	decoding->word >>= 8;
	decoding->at++;
	return byte;
}

/* Column of instruction_immediate_size. */
static inline unsigned operand_size(const struct decoding *decoding)
{
	if (decoding->rex & INSTRUCTION_REX_W)
		return 2;
	return decoding->prefixes & INSTRUCTION_PREFIX_66;
}

/* Maps 1 to 3 of VEX and EVEX are laid out as their legacy ancestors; 5 and 6 are of AVX512-FP16,
 * 8 to 10 of XOP. */
static bool set_vector_shape(struct decoding *decoding)
{
	switch (decoding->map) {
	case 1:
		decoding->shape =
			instruction_two_byte[decoding->opcode] & (SHAPE_KIND | SHAPE_MODRM);
		if (decoding->opcode == 0x77) /* vzeroupper */
			return true;
		if ((decoding->opcode & 0xf0) == 0x80) /* branches of the first Xeon Phi */
			return false;
		if (decoding->shape != (SHAPE_MODRM | SHAPE_I8))
			decoding->shape = SHAPE_MODRM;
		return true;
	case 2:
	case 5:
	case 6:
	case 9:
		decoding->shape = SHAPE_MODRM;
		return true;
	case 3:
	case 8:
		decoding->shape = SHAPE_MODRM | SHAPE_I8;
		return true;
	case 10:
		decoding->shape = SHAPE_MODRM | SHAPE_I32;
		return true;
	default:
		return false;
	}
}

/* VEX, EVEX and XOP. Their payload has taken the place of 66, f2, f3, f0 and REX, which may not
 * stand before them. `escape` is the shape of the first byte, which was read. */
static bool read_vector_prefix(struct decoding *decoding, unsigned escape)
{
	unsigned first = next_byte(decoding);

	if (decoding->rex || (decoding->prefixes & NOT_BEFORE_VECTOR))
		return false;
	decoding->vex = true;
	decoding->map = first & 0x1f;
	switch (escape) {
	case SHAPE_VEX2:
		decoding->map = 1;
		break;
	case SHAPE_EVEX:
		decoding->map = first & 0x0f;
		if (!(next_byte(decoding) & 4) || decoding->map > 6)
			return false;
		next_byte(decoding);
		break;
	default:
		if (escape == SHAPE_VEX3 && decoding->map > 3)
			return false;
		next_byte(decoding);
		break;
	}
	decoding->opcode = next_byte(decoding);
	return set_vector_shape(decoding);
}

static inline bool read_two_byte(struct decoding *decoding)
{
	decoding->opcode = next_byte(decoding);
	decoding->map = 1;
	decoding->shape = instruction_two_byte[decoding->opcode];
	if (!(decoding->shape & SHAPE_BAD))
		return true;
	if (decoding->shape != SHAPE_ESCAPE_38 && decoding->shape != SHAPE_ESCAPE_3A)
		return false;
	decoding->map = decoding->shape == SHAPE_ESCAPE_38 ? 2 : 3;
	decoding->shape = decoding->map == 2 ? SHAPE_MODRM : SHAPE_MODRM | SHAPE_I8;
	decoding->opcode = next_byte(decoding);
	return true;
}

/* The opcode's first byte leads elsewhere: to another map, or it is none. */
static inline bool read_escape(struct decoding *decoding)
{
	if (decoding->shape == SHAPE_ESCAPE)
		return read_two_byte(decoding);
	if (decoding->shape == SHAPE_BAD)
		return false;
	/* pop has the same first byte as XOP, and 0 where XOP has a map of at least 8 */
	if (decoding->shape == SHAPE_XOP && (decoding->word & 0x1f) < 8) {
		decoding->shape = SHAPE_MODRM;
		return !(decoding->word & 0x38);
	}
	return read_vector_prefix(decoding, decoding->shape);
}

static inline bool is_legacy_prefix(unsigned shape)
{
	return (shape & (SHAPE_BAD | SHAPE_PREFIX | SHAPE_REFINE)) == SHAPE_PREFIX;
}

/* Prefixes and opcode, at most `limit` prefixes. A REX prefix that is not the last of all is
 * ignored. */
static inline bool read_opcode(struct decoding *decoding, const uint8_t *bytes, unsigned limit)
{
	unsigned at = 0, shape = instruction_one_byte[bytes[0]], is_rex;

	do {
		while (is_legacy_prefix(shape)) {
			decoding->prefixes |= (1u << (shape & SHAPE_KIND)) >> 1;
			if (++at >= limit)
				return false;
			shape = instruction_one_byte[bytes[at]];
		}
		if (at >= limit)
			return false;
		memcpy(&decoding->word, bytes + at, sizeof(decoding->word));
		is_rex = (decoding->word & 0xf0) == 0x40;
		decoding->rex = is_rex ? decoding->word & 0xff : 0;
		decoding->word >>= 8 * is_rex;
		at += is_rex;
		shape = instruction_one_byte[decoding->word & 0xff];
	} while (__builtin_expect(shape & SHAPE_PREFIX, 0));
	decoding->at = at;
	decoding->shape = shape;
	decoding->opcode = next_byte(decoding);
	return !(shape & SHAPE_BAD) || read_escape(decoding);
}

/* Groups whose member (the reg field) decides. */
static bool refine_one_byte(struct decoding *decoding)
{
	unsigned member = decoding->modrm >> 3 & 7, flow = INSTRUCTION_NEXT;

	switch (decoding->opcode) {
	case 0xf6:
		decoding->shape = member < 2 ? SHAPE_I8 : 0;
		return true;
	case 0xf7:
		decoding->shape = member < 2 ? SHAPE_IZ : 0;
		return true;
	case 0xc6: /* mov, xabort */
		return !member || decoding->modrm == 0xf8;
	case 0xc7: /* mov, xbegin */
		if (decoding->modrm == 0xf8)
			decoding->shape |= INSTRUCTION_BRANCH << SHAPE_FLOW;
		return !member || decoding->modrm == 0xf8;
	case 0xfe:
		return member < 2;
	default: /* ff */
		if (member == 2 || member == 3)
			flow = INSTRUCTION_CALL_INDIRECT;
		else if (member == 4 || member == 5)
			flow = INSTRUCTION_JUMP_INDIRECT;
		decoding->shape |= flow << SHAPE_FLOW;
		/* Far ones take their target from memory alone. */
		return member != 7 && ((member != 3 && member != 5) || decoding->modrm < 0xc0);
	}
}

static bool refine_two_byte(struct decoding *decoding)
{
	switch (decoding->opcode) {
	case 0x01: /* f3 0f 01 ec: uiret */
		if (decoding->modrm == 0xec && decoding->prefixes & INSTRUCTION_PREFIX_F3)
			decoding->shape |= INSTRUCTION_RETURN << SHAPE_FLOW;
		return true;
	case 0x78: /* vmread; with a prefix extrq and insertq, which have two immediates */
		if (decoding->prefixes & (INSTRUCTION_PREFIX_66 | INSTRUCTION_PREFIX_F2))
			decoding->shape = SHAPE_I16;
		return true;
	default: /* popcnt */
		return decoding->prefixes & INSTRUCTION_PREFIX_F3;
	}
}

/* ModRM, SIB and displacement, without branches: in what compilers mix here is no pattern. */
static inline void read_modrm(struct decoding *decoding, struct instruction *ret)
{
	unsigned has = (decoding->shape & SHAPE_MODRM) != 0;
	unsigned modrm = decoding->word & 0xff, base = decoding->word >> 8 & 7;
	unsigned size = instruction_modrm_size[(modrm >> 3 & 0x18) | (modrm & 7)];
	unsigned sib, at;

	if ((decoding->shape & SHAPE_KIND) == SHAPE_REGISTERS)
		size = 0;
	size = has ? size : 0;
	sib = size / MODRM_SIB;
	/* Base 5 without displacement means a displacement without base. */
	size = size == MODRM_SIB && base == 5 ? 4 : size & MODRM_DISPLACEMENT;
	at = decoding->at + has + sib;
	decoding->modrm = has ? modrm : 0;
	decoding->at = at + size;
	ret->modrm = (uint8_t)decoding->modrm;
	ret->has_modrm = has;
	ret->rip_relative = size && (decoding->modrm & 0xc7) == 5;
	ret->displacement_at = (uint8_t)(size ? at : 0);
	ret->displacement_size = (uint8_t)size;
}

/* The distance of a branch or of a RIP-relative operand, added up; again without branches. */
static inline void set_target(const uint8_t *bytes, uint64_t address, struct instruction *ret)
{
	bool is_operand = ret->rip_relative;
	bool is_branch =
		(unsigned)ret->flow - INSTRUCTION_JUMP <= INSTRUCTION_CALL - INSTRUCTION_JUMP;
	unsigned at = is_operand ? ret->displacement_at : ret->immediate_at;
	unsigned size = is_operand ? 4 : ret->immediate_size;
	unsigned spare = size & 4 ? 0 : 32 - 8 * size;
	uint32_t distance;
	uint64_t target;

	memcpy(&distance, bytes + at, sizeof(distance));
	target = address + ret->length +
		 (uint64_t)(int64_t)((int32_t)(distance << (spare & 31)) >> (spare & 31));
	ret->target = (is_operand | is_branch) ? target : 0;
	if (is_operand && ret->prefixes & INSTRUCTION_PREFIX_67)
		ret->target = (uint32_t)ret->target;
}

static inline bool decode(const uint8_t *bytes, unsigned limit, uint64_t address,
			  struct instruction *ret)
{
	struct decoding decoding = {0};
	unsigned kind, size;

	if (!read_opcode(&decoding, bytes, limit))
		return false;
	read_modrm(&decoding, ret);
	if (decoding.shape & SHAPE_REFINE &&
	    !(decoding.map ? refine_two_byte(&decoding) : refine_one_byte(&decoding)))
		return false;
	kind = decoding.shape & SHAPE_KIND;
	size = instruction_immediate_size[kind][operand_size(&decoding)];
	if (kind == SHAPE_OFFSET && decoding.prefixes & INSTRUCTION_PREFIX_67)
		size = 4;
	ret->length = (uint8_t)(decoding.at + size);
	ret->flow = (uint8_t)(decoding.shape >> SHAPE_FLOW);
	ret->opcode = (uint8_t)decoding.opcode;
	ret->map = (uint8_t)decoding.map;
	ret->vex = decoding.vex;
	ret->prefixes = (uint8_t)decoding.prefixes;
	ret->rex = (uint8_t)decoding.rex;
	ret->immediate_at = (uint8_t)(size ? decoding.at : 0);
	ret->immediate_size = (uint8_t)size;
	if (ret->length > INSTRUCTION_LENGTH_MAX)
		return false;
	set_target(bytes, address, ret);
	return true;
}

/* Near the end of the bytes, and with more prefixes than usual. */
static __attribute__((noinline)) bool decode_copy(const uint8_t *bytes, size_t size,
						  uint64_t address, struct instruction *ret)
{
	uint8_t copy[READ_MAX] = {0};

	memcpy(copy, bytes, size < INSTRUCTION_LENGTH_MAX ? size : INSTRUCTION_LENGTH_MAX);
	return decode(copy, INSTRUCTION_LENGTH_MAX, address, ret) && ret->length <= size;
}

bool instruction_decode(const uint8_t *bytes, size_t size, uint64_t address,
			struct instruction *ret)
{
	if (size >= READ_USUAL && decode(bytes, PREFIXES_USUAL, address, ret))
		return true;
	return decode_copy(bytes, size, address, ret);
}
