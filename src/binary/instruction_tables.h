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

enum opcode_shape_bit {
	/* Low four bits: the immediate, or, of a prefix, 1 + its bit. */
	SHAPE_NO_IMMEDIATE,
	SHAPE_I8,
	SHAPE_I16,
	SHAPE_I24, /* enter: 16 and 8 bits */
	SHAPE_I32,
	SHAPE_IZ,               /* 16 bits with 66, else 32 */
	SHAPE_IV,               /* as IZ, but 64 with REX.W */
	SHAPE_ABSOLUTE_ADDRESS, /* an address: 64 bits, 32 with 67 */
	SHAPE_MODRM_REGISTERS,  /* ModRM names registers whatever its mod field says */
	SHAPE_IMMEDIATE_MASK = 0x0f,
	SHAPE_MODRM = 0x10,
	SHAPE_REFINED_BY_MODRM = 0x20, /* see refine_one_byte, refine_two_byte */
	SHAPE_PREFIX = 0x40,
	SHAPE_REX = 0x60,
	SHAPE_FLOW_SHIFT = 8,           /* flows are shifted left by that */
	SHAPE_INVALID_OR_ESCAPE = 0x80, /* none, or one of: */
	SHAPE_ESCAPE_0F = 0x81,
	SHAPE_ESCAPE_38,
	SHAPE_ESCAPE_3A,
	SHAPE_VEX2,
	SHAPE_VEX3,
	SHAPE_EVEX,
	SHAPE_XOP
};

#define OP_NONE             SHAPE_NO_IMMEDIATE
#define OP_I8               SHAPE_I8
#define OP_I16              SHAPE_I16
#define OP_I24              SHAPE_I24
#define OP_IZ               SHAPE_IZ
#define OP_IV               SHAPE_IV
#define OP_ABSOLUTE_ADDRESS SHAPE_ABSOLUTE_ADDRESS
#define OP_MRM              SHAPE_MODRM
#define OP_MRM_I8           (SHAPE_MODRM | SHAPE_I8)
#define OP_MRM_IZ           (SHAPE_MODRM | SHAPE_IZ)
#define OP_MRM_REG          (SHAPE_MODRM | SHAPE_MODRM_REGISTERS)
#define OP_MRM_REFINED      (SHAPE_REFINED_BY_MODRM | SHAPE_MODRM)
#define OP_MRM_I8_REFINED   (SHAPE_REFINED_BY_MODRM | OP_MRM_I8)
#define OP_MRM_IZ_REFINED   (SHAPE_REFINED_BY_MODRM | OP_MRM_IZ)
#define OP_WITH_FLOW(flow)  (INSTRUCTION_##flow << SHAPE_FLOW_SHIFT)
#define OP_JCC8             (OP_WITH_FLOW(BRANCH) | SHAPE_I8)
#define OP_JCC32            (OP_WITH_FLOW(BRANCH) | SHAPE_I32)
#define OP_JMP8             (OP_WITH_FLOW(JUMP) | SHAPE_I8)
#define OP_JMP32            (OP_WITH_FLOW(JUMP) | SHAPE_I32)
#define OP_CALL32           (OP_WITH_FLOW(CALL) | SHAPE_I32)
#define OP_RET_I16          (OP_WITH_FLOW(RETURN) | SHAPE_I16)
#define OP_RET              OP_WITH_FLOW(RETURN)
#define OP_STOP             OP_WITH_FLOW(STOP)
#define OP_MRM_FLOW_STOP    (OP_WITH_FLOW(STOP) | SHAPE_MODRM)
#define OP_INVALID          SHAPE_INVALID_OR_ESCAPE
#define OP_REX_PREFIX       SHAPE_REX
#define OP_PREFIX(bit)      (SHAPE_PREFIX | (bit))

/* clang-format off */
static const uint16_t one_byte_opcode_shapes[256] = {
	/* 00 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_I8,      OP_IZ,      OP_INVALID,     OP_INVALID,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_I8,      OP_IZ,      OP_INVALID,     SHAPE_ESCAPE_0F,
	/* 10 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_I8,      OP_IZ,      OP_INVALID,     OP_INVALID,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_I8,      OP_IZ,      OP_INVALID,     OP_INVALID,
	/* 20 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_I8,      OP_IZ,      OP_PREFIX(0),OP_INVALID,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_I8,      OP_IZ,      OP_PREFIX(0),OP_INVALID,
	/* 30 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_I8,      OP_IZ,      OP_PREFIX(0),OP_INVALID,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_I8,      OP_IZ,      OP_PREFIX(0),OP_INVALID,
	/* 40 */ OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,
	         OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,        OP_REX_PREFIX,
	/* 50 */ OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,
	         OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,
	/* 60 */ OP_INVALID,     OP_INVALID,     SHAPE_EVEX, OP_MRM,     OP_PREFIX(4),OP_PREFIX(5),OP_PREFIX(1),OP_PREFIX(6),
	         OP_IZ,      OP_MRM_IZ,  OP_I8,      OP_MRM_I8,  OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,
	/* 70 */ OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,
	         OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,
	/* 80 */ OP_MRM_I8,  OP_MRM_IZ,  OP_INVALID,     OP_MRM_I8,  OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     SHAPE_XOP,
	/* 90 */ OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,
	         OP_NONE,    OP_NONE,    OP_INVALID,     OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,
	/* a0 */ OP_ABSOLUTE_ADDRESS,    OP_ABSOLUTE_ADDRESS,    OP_ABSOLUTE_ADDRESS,    OP_ABSOLUTE_ADDRESS,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,
	         OP_I8,      OP_IZ,      OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,
	/* b0 */ OP_I8,      OP_I8,      OP_I8,      OP_I8,      OP_I8,      OP_I8,      OP_I8,      OP_I8,
	         OP_IV,      OP_IV,      OP_IV,      OP_IV,      OP_IV,      OP_IV,      OP_IV,      OP_IV,
	/* c0 */ OP_MRM_I8,  OP_MRM_I8,  OP_RET_I16, OP_RET,     SHAPE_VEX3, SHAPE_VEX2, OP_MRM_I8_REFINED,  OP_MRM_IZ_REFINED,
	         OP_I24,     OP_NONE,    OP_RET_I16, OP_RET,     OP_STOP,    OP_I8,      OP_INVALID,     OP_RET,
	/* d0 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_INVALID,     OP_INVALID,     OP_INVALID,     OP_NONE,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* e0 */ OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_JCC8,    OP_I8,      OP_I8,      OP_I8,      OP_I8,
	         OP_CALL32,  OP_JMP32,   OP_INVALID,     OP_JMP8,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,
	/* f0 */ OP_PREFIX(7),OP_NONE,    OP_PREFIX(2),OP_PREFIX(3),OP_STOP,    OP_NONE,    OP_MRM_REFINED,     OP_MRM_REFINED,
	         OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_MRM_REFINED,     OP_MRM_REFINED,
};

static const uint16_t two_byte_opcode_shapes[256] = {
	/* 00 */ OP_MRM,     OP_MRM_REFINED,     OP_MRM,     OP_MRM,     OP_INVALID,     OP_NONE,    OP_NONE,    OP_RET,
	         OP_NONE,    OP_NONE,    OP_INVALID,     OP_STOP,    OP_INVALID,     OP_MRM,     OP_NONE,    OP_MRM_I8,
	/* 10 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* 20 */ OP_MRM_REG, OP_MRM_REG, OP_MRM_REG, OP_MRM_REG, OP_INVALID,     OP_INVALID,     OP_INVALID,     OP_INVALID,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* 30 */ OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_RET,     OP_INVALID,     OP_NONE,
	         SHAPE_ESCAPE_38,OP_INVALID,     SHAPE_ESCAPE_3A,OP_INVALID,     OP_INVALID,     OP_INVALID,     OP_INVALID,     OP_INVALID,
	/* 40 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* 50 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* 60 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* 70 */ OP_MRM_I8,  OP_MRM_I8,  OP_MRM_I8,  OP_MRM_I8,  OP_MRM,     OP_MRM,     OP_MRM,     OP_NONE,
	         OP_MRM_REFINED,     OP_MRM,     OP_INVALID,     OP_INVALID,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* 80 */ OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,
	         OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,   OP_JCC32,
	/* 90 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* a0 */ OP_NONE,    OP_NONE,    OP_NONE,    OP_MRM,     OP_MRM_I8,  OP_MRM,     OP_MRM,     OP_MRM,
	         OP_NONE,    OP_NONE,    OP_RET,     OP_MRM,     OP_MRM_I8,  OP_MRM,     OP_MRM,     OP_MRM,
	/* b0 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM_REFINED,     OP_MRM_FLOW_STOP,OP_MRM_I8,  OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* c0 */ OP_MRM,     OP_MRM,     OP_MRM_I8,  OP_MRM,     OP_MRM_I8,  OP_MRM_I8,  OP_MRM_I8,  OP_MRM,
	         OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,    OP_NONE,
	/* d0 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* e0 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	/* f0 */ OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,
	         OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM,     OP_MRM_FLOW_STOP,
};

/* Bytes of an immediate: with 32, 16 and 64-bit operands. */
static const uint8_t immediate_bytes_by_shape[16][3] = {
	[SHAPE_I8] = {1, 1, 1}, [SHAPE_I16] = {2, 2, 2}, [SHAPE_I24] = {3, 3, 3},
	[SHAPE_I32] = {4, 4, 4}, [SHAPE_IZ] = {4, 2, 4}, [SHAPE_IV] = {4, 2, 8},
	[SHAPE_ABSOLUTE_ADDRESS] = {8, 8, 8},
};
/* clang-format on */

/* By the mod and rm fields of ModRM: bytes of displacement, and whether a SIB byte follows. */
#define MODRM_DISPLACEMENT_MASK 0x0fu
#define MODRM_SIB_FLAG          0x10u
static const uint8_t displacement_and_sib_by_modrm[32] = {
	0,
	0,
	0,
	0,
	MODRM_SIB_FLAG,
	4,
	0,
	0,
	1,
	1,
	1,
	1,
	MODRM_SIB_FLAG | 1,
	1,
	1,
	1,
	4,
	4,
	4,
	4,
	MODRM_SIB_FLAG | 4,
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

#undef OP_NONE
#undef OP_I8
#undef OP_I16
#undef OP_I24
#undef OP_IZ
#undef OP_IV
#undef OP_ABSOLUTE_ADDRESS
#undef OP_MRM
#undef OP_MRM_I8
#undef OP_MRM_IZ
#undef OP_MRM_REG
#undef OP_MRM_REFINED
#undef OP_MRM_I8_REFINED
#undef OP_MRM_IZ_REFINED
#undef OP_WITH_FLOW
#undef OP_JCC8
#undef OP_JCC32
#undef OP_JMP8
#undef OP_JMP32
#undef OP_CALL32
#undef OP_RET_I16
#undef OP_RET
#undef OP_STOP
#undef OP_MRM_FLOW_STOP
#undef OP_INVALID
#undef OP_REX_PREFIX
#undef OP_PREFIX

#endif
