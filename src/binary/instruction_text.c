/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "binary/instruction_text.h"

#ifdef KYMO_HAVE_ZYDIS
#include <Zydis/Zydis.h>

bool instruction_text_is_built_in(void)
{
	return true;
}

uint32_t instruction_to_text(const uint8_t *bytes, size_t size, uint64_t address,
			     char ret[INSTRUCTION_TEXT_BYTES])
{
	ZydisDisassembledInstruction instruction;
	_Static_assert(sizeof(instruction.text) <= INSTRUCTION_TEXT_BYTES, "text of Zydis");

	if (!ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, address, bytes, size,
						&instruction)))
		return 0;
	__builtin_memcpy(ret, instruction.text, sizeof(instruction.text));
	return instruction.info.length;
}
#else
bool instruction_text_is_built_in(void)
{
	return false;
}

uint32_t instruction_to_text(const uint8_t *bytes, size_t size, uint64_t address,
			     char ret[INSTRUCTION_TEXT_BYTES])
{
	(void)bytes;
	(void)size;
	(void)address;
	(void)ret;
	return 0;
}
#endif
