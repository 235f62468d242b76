/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What follows an opcode and where control goes after it: an entry for each of the one-byte and
 * two-byte (0f) opcodes of 64-bit mode.
 * Intel SDM volume 2, appendix A, tables; AMD APM volume 3, appendix A.
 */
#ifndef KYMO_BINARY_INSTRUCTION_TABLES_H
#define KYMO_BINARY_INSTRUCTION_TABLES_H

#include "binary/instruction.h"

enum instruction_shape {
	/* Low four bits: the immediate, or, of a prefix, 1 + its bit. */
	SHAPE_NONE,
	SHAPE_I8,
	SHAPE_I16,
	SHAPE_I24, /* enter: 16 and 8 bits */
	SHAPE_I32,
	SHAPE_IZ,        /* 16 bits with 66, else 32 */
	SHAPE_IV,        /* as IZ, but 64 with REX.W */
	SHAPE_OFFSET,    /* an address: 64 bits, 32 with 67 */
	SHAPE_REGISTERS, /* ModRM names registers whatever its mod field says */
	SHAPE_KIND = 0x0f,
	SHAPE_MODRM = 0x10,
	SHAPE_REFINE = 0x20, /* see refine_one_byte, refine_two_byte */
	SHAPE_PREFIX = 0x40,
	SHAPE_REX = 0x60,
	SHAPE_FLOW = 8,   /* flows are shifted left by that */
	SHAPE_BAD = 0x80, /* none, or one of: */
	SHAPE_ESCAPE = 0x81,
	SHAPE_ESCAPE_38,
	SHAPE_ESCAPE_3A,
	SHAPE_VEX2,
	SHAPE_VEX3,
	SHAPE_EVEX,
	SHAPE_XOP
};

#define o__        SHAPE_NONE
#define oB         SHAPE_I8
#define oW         SHAPE_I16
#define oE         SHAPE_I24
#define oZ         SHAPE_IZ
#define oV         SHAPE_IV
#define oO         SHAPE_OFFSET
#define oM         SHAPE_MODRM
#define MB         (SHAPE_MODRM | SHAPE_I8)
#define MZ         (SHAPE_MODRM | SHAPE_IZ)
#define MR         (SHAPE_MODRM | SHAPE_REGISTERS)
#define gM         (SHAPE_REFINE | SHAPE_MODRM)
#define gB         (SHAPE_REFINE | MB)
#define gZ         (SHAPE_REFINE | MZ)
#define FLOW(flow) (INSTRUCTION_##flow << SHAPE_FLOW)
#define j8         (FLOW(BRANCH) | SHAPE_I8)
#define jZ         (FLOW(BRANCH) | SHAPE_I32)
#define JB         (FLOW(JUMP) | SHAPE_I8)
#define JZ         (FLOW(JUMP) | SHAPE_I32)
#define CZ         (FLOW(CALL) | SHAPE_I32)
#define RW         (FLOW(RETURN) | SHAPE_I16)
#define R__        FLOW(RETURN)
#define s__        FLOW(STOP)
#define sM         (FLOW(STOP) | SHAPE_MODRM)
#define BAD        SHAPE_BAD
#define REX        SHAPE_REX
#define P(bit)     (SHAPE_PREFIX | (bit))

/* clang-format off */
static const uint16_t instruction_one_byte[256] = {
	/* 00 */ oM, oM, oM, oM, oB, oZ, BAD, BAD, oM, oM, oM, oM, oB, oZ, BAD, SHAPE_ESCAPE,
	/* 10 */ oM, oM, oM, oM, oB, oZ, BAD, BAD, oM, oM, oM, oM, oB, oZ, BAD, BAD,
	/* 20 */ oM, oM, oM, oM, oB, oZ, P(0), BAD, oM, oM, oM, oM, oB, oZ, P(0), BAD,
	/* 30 */ oM, oM, oM, oM, oB, oZ, P(0), BAD, oM, oM, oM, oM, oB, oZ, P(0), BAD,
	/* 40 */ REX, REX, REX, REX, REX, REX, REX, REX, REX, REX, REX, REX, REX, REX, REX, REX,
	/* 50 */ o__, o__, o__, o__, o__, o__, o__, o__, o__, o__, o__, o__, o__, o__, o__, o__,
	/* 60 */ BAD, BAD, SHAPE_EVEX, oM, P(4), P(5), P(1), P(6), oZ, MZ, oB, MB, o__, o__, o__, o__,
	/* 70 */ j8, j8, j8, j8, j8, j8, j8, j8, j8, j8, j8, j8, j8, j8, j8, j8,
	/* 80 */ MB, MZ, BAD, MB, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, SHAPE_XOP,
	/* 90 */ o__, o__, o__, o__, o__, o__, o__, o__, o__, o__, BAD, o__, o__, o__, o__, o__,
	/* a0 */ oO, oO, oO, oO, o__, o__, o__, o__, oB, oZ, o__, o__, o__, o__, o__, o__,
	/* b0 */ oB, oB, oB, oB, oB, oB, oB, oB, oV, oV, oV, oV, oV, oV, oV, oV,
	/* c0 */ MB, MB, RW, R__, SHAPE_VEX3, SHAPE_VEX2, gB, gZ, oE, o__, RW, R__, s__, oB, BAD, R__,
	/* d0 */ oM, oM, oM, oM, BAD, BAD, BAD, o__, oM, oM, oM, oM, oM, oM, oM, oM,
	/* e0 */ j8, j8, j8, j8, oB, oB, oB, oB, CZ, JZ, BAD, JB, o__, o__, o__, o__,
	/* f0 */ P(7), o__, P(2), P(3), s__, o__, gM, gM, o__, o__, o__, o__, o__, o__, gM, gM,
};

static const uint16_t instruction_two_byte[256] = {
	/* 00 */ oM, gM, oM, oM, BAD, o__, o__, R__, o__, o__, BAD, s__, BAD, oM, o__, MB,
	/* 10 */ oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM,
	/* 20 */ MR, MR, MR, MR, BAD, BAD, BAD, BAD, oM, oM, oM, oM, oM, oM, oM, oM,
	/* 30 */ o__, o__, o__, o__, o__, R__, BAD, o__, SHAPE_ESCAPE_38, BAD, SHAPE_ESCAPE_3A, BAD, BAD, BAD, BAD, BAD,
	/* 40 */ oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM,
	/* 50 */ oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM,
	/* 60 */ oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM,
	/* 70 */ MB, MB, MB, MB, oM, oM, oM, o__, gM, oM, BAD, BAD, oM, oM, oM, oM,
	/* 80 */ jZ, jZ, jZ, jZ, jZ, jZ, jZ, jZ, jZ, jZ, jZ, jZ, jZ, jZ, jZ, jZ,
	/* 90 */ oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM,
	/* a0 */ o__, o__, o__, oM, MB, oM, oM, oM, o__, o__, R__, oM, MB, oM, oM, oM,
	/* b0 */ oM, oM, oM, oM, oM, oM, oM, oM, gM, sM, MB, oM, oM, oM, oM, oM,
	/* c0 */ oM, oM, MB, oM, MB, MB, MB, oM, o__, o__, o__, o__, o__, o__, o__, o__,
	/* d0 */ oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM,
	/* e0 */ oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM,
	/* f0 */ oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, oM, sM,
};

/* Bytes of an immediate: with 32, 16 and 64-bit operands. */
static const uint8_t instruction_immediate_size[16][3] = {
	[SHAPE_I8] = {1, 1, 1}, [SHAPE_I16] = {2, 2, 2}, [SHAPE_I24] = {3, 3, 3},
	[SHAPE_I32] = {4, 4, 4}, [SHAPE_IZ] = {4, 2, 4}, [SHAPE_IV] = {4, 2, 8},
	[SHAPE_OFFSET] = {8, 8, 8},
};
/* clang-format on */

/* By the mod and rm fields of ModRM: bytes of displacement, and whether a SIB byte follows. */
#define MODRM_DISPLACEMENT 0x0fu
#define MODRM_SIB          0x10u
static const uint8_t instruction_modrm_size[32] = {
	0,
	0,
	0,
	0,
	MODRM_SIB,
	4,
	0,
	0,
	1,
	1,
	1,
	1,
	MODRM_SIB | 1,
	1,
	1,
	1,
	4,
	4,
	4,
	4,
	MODRM_SIB | 4,
	4,
	4,
	4,
	0,
	0,
	0,
	0,
	0,
	0,
	0,
	0,
};

#undef o__
#undef oB
#undef oW
#undef oE
#undef oZ
#undef oV
#undef oO
#undef oM
#undef MB
#undef MZ
#undef MR
#undef gM
#undef gB
#undef gZ
#undef FLOW
#undef j8
#undef jZ
#undef JB
#undef JZ
#undef CZ
#undef RW
#undef R__
#undef s__
#undef sM
#undef BAD
#undef REX
#undef P

#endif
