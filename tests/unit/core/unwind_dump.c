/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Prints the compiled rule at file offsets read from standard input (hexadecimal, one a line), in
 * the notation of readelf --debug-dump=frames-interp. usage: unwind_dump FILE
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/unwind/table.h"
#include "core/unwind/unwind.h"

static const char *const names[DWARF_REGISTER_RIP + 1] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
							  "rbp", "rsp", "r8",  "r9",  "r10", "r11",
							  "r12", "r13", "r14", "r15", "rip"};

static void print_location(struct unwind_value_location location)
{
	switch (location.kind) {
	case UNWIND_LOCATION_AT_CFA_OFFSET:
		printf(" c%+d", location.value);
		break;
	case UNWIND_LOCATION_CFA_PLUS_OFFSET:
		printf(" v%+d", location.value);
		break;
	case UNWIND_LOCATION_REGISTER_PLUS_OFFSET:
		printf(" %s%+d", names[location.reg], location.value);
		break;
	case UNWIND_LOCATION_AT_EXPRESSION_RESULT:
		printf(" exp");
		break;
	case UNWIND_LOCATION_EXPRESSION_RESULT:
		printf(" vexp");
		break;
	case UNWIND_LOCATION_UCONTEXT:
		printf(" context");
		break;
	case UNWIND_LOCATION_UNSUPPORTED:
		printf(" unsupported");
		break;
	default: /* readelf writes u for both */
		printf(" u");
		break;
	}
}

int main(int count, char **arguments)
{
	const struct unwind_table *table;
	uint64_t offset;
	size_t size;
	bool cached;

	if (count != 2 || unwind_table_load_or_compile(NULL, NULL, 0, arguments[1], 0, 0, &table,
						       &size, &cached) != 0) {
		fprintf(stderr, "usage: unwind_dump FILE\n");
		return 2;
	}
	while (scanf("%" SCNx64, &offset) == 1) {
		const struct unwind_rule *rule = unwind_table_find_rule(table, offset);

		printf("%" PRIx64, offset);
		if (!rule) {
			printf(" none\n");
			continue;
		}
		print_location(rule->cfa);
		print_location(rule->ra);
		print_location(rule->bp);
		print_location(rule->bx);
		printf("\n");
	}
	return 0;
}
