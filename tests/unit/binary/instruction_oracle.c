/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The decoder beside Zydis: over all executable sections of files, and over random bytes that both
 * accept. Compared are length, places of displacement and immediate, whether it is RIP-relative,
 * how control goes on, and targets. In sections what Zydis accepts has to be accepted.
 *
 * usage: instruction_oracle RANDOM-COUNT FILE...      (directories: all files below)
 */
#include <Zydis/Zydis.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binary/elf.h"
#include "binary/instruction.h"

#define SHOWN 20

struct oracle {
	ZydisDecoder zydis;
	uint64_t compared, differences, rejected, extra; /* extra: random bytes we alone accept */
};

static struct oracle oracle;
static unsigned test_number, failures;

static void report(const char *what, const uint8_t *bytes, uint64_t address,
		   const ZydisDecodedInstruction *expected, const struct instruction *found)
{
	if (oracle.differences++ >= SHOWN)
		return;
	printf("# %" PRIx64 ": %s: %s, length %u and %u:", address, what,
	       ZydisMnemonicGetString(expected->mnemonic), expected->length, found->length);
	for (unsigned i = 0; i < INSTRUCTION_LENGTH_MAX; i++)
		printf(" %02x", bytes[i]);
	printf("\n");
}

static enum instruction_flow branch_flow(const ZydisDecodedInstruction *expected)
{
	bool direct = expected->raw.imm[0].is_relative;

	if (expected->meta.category == ZYDIS_CATEGORY_CALL)
		return direct ? INSTRUCTION_CALL : INSTRUCTION_CALL_INDIRECT;
	return direct ? INSTRUCTION_JUMP : INSTRUCTION_JUMP_INDIRECT;
}

static enum instruction_flow expected_flow(const ZydisDecodedInstruction *expected)
{
	switch (expected->mnemonic) {
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return INSTRUCTION_STOP;
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_RSM:
	case ZYDIS_MNEMONIC_UIRET:
		return INSTRUCTION_RETURN;
	case ZYDIS_MNEMONIC_XBEGIN:
		return INSTRUCTION_BRANCH;
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
		return INSTRUCTION_NEXT;
	default:
		break;
	}
	switch (expected->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_UNCOND_BR:
		return expected->mnemonic == ZYDIS_MNEMONIC_XABORT ? INSTRUCTION_NEXT
								   : branch_flow(expected);
	case ZYDIS_CATEGORY_COND_BR:
		return expected->raw.imm[0].is_relative ? INSTRUCTION_BRANCH : INSTRUCTION_NEXT;
	case ZYDIS_CATEGORY_RET:
		return INSTRUCTION_RETURN;
	default:
		return INSTRUCTION_NEXT;
	}
}

static bool is_absolute_move(const ZydisDecodedInstruction *expected)
{
	return expected->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
	       (expected->opcode & 0xfc) == 0xa0;
}

static const char *compare_fields(const ZydisDecodedInstruction *expected, uint64_t address,
				  const struct instruction *found)
{
	unsigned immediate = expected->raw.imm[0].size + expected->raw.imm[1].size;
	bool has_modrm = expected->attributes & ZYDIS_ATTRIB_HAS_MODRM;
	bool relative = has_modrm && expected->raw.modrm.mod == 0 && expected->raw.modrm.rm == 5 &&
			expected->raw.disp.size;
	uint64_t next = address + expected->length;

	if (found->length != expected->length)
		return "length";
	if (found->has_modrm != has_modrm)
		return "ModRM";
	if (is_absolute_move(expected)) /* its address is a displacement to Zydis */
		return found->immediate_size * 8u != expected->raw.disp.size ? "address" : NULL;
	if (found->displacement_size * 8u != expected->raw.disp.size ||
	    (found->displacement_size && found->displacement_offset != expected->raw.disp.offset))
		return "displacement";
	/* The byte that ends a 3DNow! instruction is opcode to Zydis. */
	if (found->immediate_size * 8u != immediate &&
	    expected->encoding != ZYDIS_INSTRUCTION_ENCODING_3DNOW)
		return "immediate";
	if (immediate && found->immediate_offset != expected->raw.imm[0].offset)
		return "place of immediate";
	if (found->is_rip_relative != relative)
		return "RIP-relative";
	if (found->flow != expected_flow(expected))
		return "flow";
	if (expected->raw.imm[0].is_relative &&
	    found->target != next + (uint64_t)expected->raw.imm[0].value.s)
		return "branch target";
	if (relative && expected->address_width == 64 &&
	    found->target != next + (uint64_t)expected->raw.disp.value)
		return "operand";
	return NULL;
}

/* Length by Zydis, 0: it says that these bytes are no instruction. */
static unsigned compare(const uint8_t *bytes, size_t size, uint64_t address, bool all)
{
	ZydisDecodedInstruction expected;
	struct instruction found;
	bool accepted = instruction_decode(bytes, size, address, &found);
	const char *difference;
	ZyanStatus status =
		ZydisDecoderDecodeInstruction(&oracle.zydis, NULL, bytes, size, &expected);

	/* Branches that only the first Xeon Phi had are none. */
	if (!ZYAN_SUCCESS(status) || expected.meta.isa_set == ZYDIS_ISA_SET_KNCJKBR) {
		oracle.extra += accepted;
		return 0;
	}
	oracle.compared++;
	if (!accepted) {
		oracle.rejected++;
		if (all)
			report("rejected", bytes, address, &expected, &found);
		return expected.length;
	}
	difference = compare_fields(&expected, address, &found);
	if (difference)
		report(difference, bytes, address, &expected, &found);
	return expected.length;
}

static void finish_point(const char *name)
{
	bool good = !oracle.differences;

	printf("%sok %u - %s: %" PRIu64 " instructions, %" PRIu64 " differences",
	       good ? "" : "not ", ++test_number, name, oracle.compared, oracle.differences);
	printf(", %" PRIu64 " rejected by kymo, %" PRIu64 " by Zydis\n", oracle.rejected,
	       oracle.extra);
	fflush(stdout);
	failures += !good;
	oracle.compared = oracle.differences = oracle.rejected = oracle.extra = 0;
}

static void compare_section(const struct elf_section *section, const struct elf_section_data *data)
{
	for (size_t at = 0; at < data->size;) {
		unsigned length =
			compare(data->bytes + at, data->size - at, section->address + at, true);
		at += length ? length : 1;
	}
}

static int compare_file(const char *path)
{
	struct elf_file *file;
	struct problem problem;

	if (elf_open(path, &file, &problem))
		return -1;
	for (size_t i = 0; i < file->section_count; i++) {
		const struct elf_section *section = &file->sections[i];
		struct elf_section_data data;
		if (!(section->flags & SHF_EXECINSTR) || elf_section_read(file, section, &data))
			continue;
		compare_section(section, &data);
		elf_section_data_deinit(&data);
	}
	elf_close(file);
	finish_point(path);
	return 0;
}

static int visit(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)place;
	if (kind == FTW_F && S_ISREG(status->st_mode))
		compare_file(path);
	return 0;
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Random bytes, more often than by chance behind prefixes and escapes. */
static void compare_random(uint64_t count)
{
	static const uint8_t heads[] = {0x0f, 0x62, 0x66, 0xc4, 0xc5, 0xf2, 0xf3, 0x8f,
					0x48, 0x41, 0x67, 0xff, 0x64, 0x2e, 0xf0, 0xc7};
	uint64_t state = 88172645463325252u;

	for (uint64_t i = 0; i < count; i++) {
		uint8_t bytes[32];
		uint64_t choice = random_next(&state);
		size_t at = 0;
		for (size_t k = 0; k < sizeof(bytes); k += 8) {
			uint64_t word = random_next(&state);
			memcpy(bytes + k, &word, 8);
		}
		for (; choice & 1 && at < 4; choice >>= 8)
			bytes[at++] = heads[choice >> 1 & 15];
		compare(bytes, 1 + (choice >> 1 & 31), 0x7f0000001000u, false);
	}
	finish_point("random bytes");
}

int main(int count, char **arguments)
{
	if (count < 2)
		return 2;
	ZydisDecoderInit(&oracle.zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	compare_random(strtoull(arguments[1], NULL, 10));
	for (int i = 2; i < count; i++) {
		char *path = realpath(arguments[i], NULL);
		if (path)
			nftw(path, visit, 16, FTW_PHYS);
		free(path);
	}
	printf("1..%u\n", test_number);
	return failures != 0;
}
