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

/* Fourteen prefixes, then opcode (3), ModRM, SIB, displacement (4), immediate (8). */
#define READ_MAX 32u

#define NOT_BEFORE_VECTOR                                                                          \
	(INSTRUCTION_PREFIX_66 | INSTRUCTION_PREFIX_F2 | INSTRUCTION_PREFIX_F3 |                   \
	 INSTRUCTION_PREFIX_LOCK)

/* What is known of an instruction while it is being read. */
struct decoding {
	const uint8_t *at;
	uint8_t prefixes, rex, map, opcode, shape, modrm;
	bool vex;
};

/* Column of instruction_immediate_size. */
static unsigned operand_size(const struct decoding *decoding)
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
 * stand before them. `at` is behind the first byte. */
static bool read_vector_prefix(struct decoding *decoding, unsigned escape)
{
	const uint8_t *at = decoding->at;

	if (decoding->rex || (decoding->prefixes & NOT_BEFORE_VECTOR))
		return false;
	decoding->vex = true;
	switch (escape) {
	case SHAPE_VEX2:
		decoding->map = 1;
		at += 1;
		break;
	case SHAPE_EVEX:
		decoding->map = at[0] & 0x0f;
		if (!(at[1] & 4) || decoding->map > 6)
			return false;
		at += 3;
		break;
	case SHAPE_VEX3:
		decoding->map = at[0] & 0x1f;
		if (decoding->map > 3)
			return false;
		at += 2;
		break;
	default:
		decoding->map = at[0] & 0x1f;
		at += 2;
		break;
	}
	decoding->opcode = *at++;
	decoding->at = at;
	return set_vector_shape(decoding);
}

/* The opcode's first byte leads elsewhere: to another map, or it is none. */
static bool read_escape(struct decoding *decoding)
{
	switch (decoding->shape) {
	case SHAPE_ESCAPE:
		decoding->opcode = *decoding->at++;
		decoding->map = 1;
		decoding->shape = instruction_two_byte[decoding->opcode];
		if (decoding->shape == SHAPE_ESCAPE_38 || decoding->shape == SHAPE_ESCAPE_3A) {
			bool third = decoding->shape == SHAPE_ESCAPE_3A;
			decoding->map = third ? 3 : 2;
			decoding->shape = third ? SHAPE_MODRM | SHAPE_I8 : SHAPE_MODRM;
			decoding->opcode = *decoding->at++;
		}
		return !(decoding->shape & SHAPE_BAD);
	case SHAPE_VEX2:
	case SHAPE_VEX3:
	case SHAPE_EVEX:
		return read_vector_prefix(decoding, decoding->shape);
	case SHAPE_XOP: /* pop, whose ModRM has 0 where XOP has a map of at least 8 */
		if ((*decoding->at & 0x1f) >= 8)
			return read_vector_prefix(decoding, SHAPE_XOP);
		decoding->shape = SHAPE_MODRM;
		return !(*decoding->at & 0x38);
	default:
		return false;
	}
}

/* Prefixes and opcode. A REX prefix that is not the last of all is ignored. */
static bool read_opcode(struct decoding *decoding, const uint8_t *bytes)
{
	const uint8_t *at = bytes;
	unsigned byte = *at++;
	unsigned shape = instruction_one_byte[byte];

	while ((shape & (SHAPE_PREFIX | SHAPE_BAD)) == SHAPE_PREFIX) {
		if (shape == SHAPE_REX) {
			decoding->rex = (uint8_t)byte;
		} else {
			decoding->rex = 0;
			decoding->prefixes |= (uint8_t)((1u << (shape & SHAPE_KIND)) >> 1);
		}
		if (at == bytes + INSTRUCTION_LENGTH_MAX)
			return false;
		byte = *at++;
		shape = instruction_one_byte[byte];
	}
	decoding->at = at;
	decoding->opcode = (uint8_t)byte;
	decoding->shape = (uint8_t)shape;
	return !(shape & SHAPE_BAD) || read_escape(decoding);
}

/* Groups whose member (the reg field) decides. */
static bool refine_one_byte(struct decoding *decoding, struct instruction *ret)
{
	unsigned member = decoding->modrm >> 3 & 7;

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
			ret->flow = INSTRUCTION_BRANCH;
		return !member || decoding->modrm == 0xf8;
	case 0xfe:
		return member < 2;
	case 0xff:
		if (member == 2 || member == 3)
			ret->flow = INSTRUCTION_CALL_INDIRECT;
		else if (member == 4 || member == 5)
			ret->flow = INSTRUCTION_JUMP_INDIRECT;
		/* Far ones take their target from memory alone. */
		return member != 7 && ((member != 3 && member != 5) || decoding->modrm < 0xc0);
	default:
		ret->flow = instruction_one_byte_flow(decoding->opcode);
		return true;
	}
}

static bool refine_two_byte(struct decoding *decoding, struct instruction *ret)
{
	switch (decoding->opcode) {
	case 0x01: /* f3 0f 01 ec: uiret */
		if (decoding->modrm == 0xec && decoding->prefixes & INSTRUCTION_PREFIX_F3)
			ret->flow = INSTRUCTION_RETURN;
		return true;
	case 0x07: /* sysret */
	case 0x35: /* sysexit */
	case 0xaa: /* rsm */
		ret->flow = INSTRUCTION_RETURN;
		return true;
	case 0x0b: /* ud2 */
	case 0xb9: /* ud1 */
	case 0xff: /* ud0 */
		ret->flow = INSTRUCTION_STOP;
		return true;
	case 0x78: /* vmread; with a prefix extrq and insertq, which have two immediates */
		if (decoding->prefixes & (INSTRUCTION_PREFIX_66 | INSTRUCTION_PREFIX_F2))
			decoding->shape = SHAPE_I16;
		return true;
	case 0xb8: /* popcnt */
		return decoding->prefixes & INSTRUCTION_PREFIX_F3;
	default:
		ret->flow = INSTRUCTION_BRANCH;
		return true;
	}
}

/* ModRM, SIB and displacement. */
static void read_modrm(struct decoding *decoding, const uint8_t *bytes, struct instruction *ret)
{
	const uint8_t *at = decoding->at;
	unsigned modrm = *at++;
	unsigned size = instruction_modrm_size[(modrm >> 3 & 0x18) | (modrm & 7)];

	decoding->modrm = ret->modrm = (uint8_t)modrm;
	ret->has_modrm = true;
	if ((decoding->shape & SHAPE_KIND) == SHAPE_REGISTERS)
		size = 0;
	if (size & MODRM_SIB) {
		/* Base 5 without displacement means a displacement without base. */
		size = modrm < 0x40 && (*at & 7) == 5 ? 4 : size & MODRM_DISPLACEMENT;
		at++;
	}
	if (size) {
		ret->rip_relative = (modrm & 0xc7) == 5;
		ret->displacement_at = (uint8_t)(at - bytes);
		ret->displacement_size = (uint8_t)size;
		at += size;
	}
	decoding->at = at;
}

static int64_t signed_value(const uint8_t *at, unsigned size)
{
	int16_t half;
	int32_t word;

	if (size == 1)
		return (int8_t)*at;
	if (size == 2) {
		memcpy(&half, at, 2);
		return half;
	}
	memcpy(&word, at, 4);
	return word;
}

static void set_target(const uint8_t *bytes, uint64_t address, struct instruction *ret)
{
	uint64_t next = address + ret->length;

	if (ret->rip_relative) {
		ret->target = next + (uint64_t)signed_value(bytes + ret->displacement_at, 4);
		if (ret->prefixes & INSTRUCTION_PREFIX_67)
			ret->target = (uint32_t)ret->target;
	} else if (ret->flow == INSTRUCTION_JUMP || ret->flow == INSTRUCTION_BRANCH ||
		   ret->flow == INSTRUCTION_CALL) {
		ret->target = next + (uint64_t)signed_value(bytes + ret->immediate_at,
							    ret->immediate_size);
	}
}

static bool decode(const uint8_t *bytes, uint64_t address, struct instruction *ret)
{
	struct decoding decoding = {0};
	unsigned size;

	memset(ret, 0, sizeof(*ret));
	if (!read_opcode(&decoding, bytes))
		return false;
	if (decoding.shape & SHAPE_MODRM)
		read_modrm(&decoding, bytes, ret);
	if (decoding.shape & SHAPE_REFINE) {
		bool known = decoding.map ? refine_two_byte(&decoding, ret)
					  : refine_one_byte(&decoding, ret);
		if (!known)
			return false;
	}
	ret->opcode = decoding.opcode;
	ret->map = decoding.map;
	ret->vex = decoding.vex;
	ret->prefixes = decoding.prefixes;
	ret->rex = decoding.rex;
	size = instruction_immediate_size[decoding.shape & SHAPE_KIND][operand_size(&decoding)];
	if ((decoding.shape & SHAPE_KIND) == SHAPE_OFFSET &&
	    decoding.prefixes & INSTRUCTION_PREFIX_67)
		size = 4;
	if (size) {
		ret->immediate_at = (uint8_t)(decoding.at - bytes);
		ret->immediate_size = (uint8_t)size;
	}
	size += (unsigned)(decoding.at - bytes);
	ret->length = (uint8_t)size;
	set_target(bytes, address, ret);
	return size <= INSTRUCTION_LENGTH_MAX;
}

bool instruction_decode(const uint8_t *bytes, size_t size, uint64_t address,
			struct instruction *ret)
{
	uint8_t copy[READ_MAX] = {0};

	if (size >= READ_MAX)
		return decode(bytes, address, ret);
	memcpy(copy, bytes, size);
	return decode(copy, address, ret) && ret->length <= size;
}
