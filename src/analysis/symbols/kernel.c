/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of the kernel's functions and of its modules', from /proc/kallsyms of the boot that ran:
 * the kernel's code must begin where it was recorded to begin.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/symbols/private.h"
#include "kymo/spool.h"

#define NAME_BYTES 96

struct kernel_symbol {
	uint64_t address;
	char name[NAME_BYTES];
};

struct kernel_symbols {
	struct kernel_symbol *list;
	size_t count, capacity;
};

static int compare_symbols(const void *left, const void *right)
{
	const struct kernel_symbol *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* "address type name [module]"; -ESTALE where the code begins elsewhere. */
static int read_kernel_symbols(uint64_t start, struct kernel_symbols *ret)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	bool same_boot = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		struct kernel_symbol symbol;
		unsigned long long address;
		char type;

		if (sscanf(line, "%llx %c %95s", &address, &type, symbol.name) != 3 ||
		    !strchr("tTwW", type))
			continue;
		symbol.address = address & ~SPOOL_KERNEL_FRAME_LOST_BIT;
		same_boot |= symbol.address == start && !strcmp(symbol.name, "_stext");
		if (array_reserve_one_more((void **)&ret->list, &ret->capacity, ret->count,
					   sizeof(symbol)) < 0)
			break;
		ret->list[ret->count++] = symbol;
	}
	if (file)
		fclose(file);
	if (!same_boot)
		return -ESTALE;
	qsort(ret->list, ret->count, sizeof(*ret->list), compare_symbols);
	return 0;
}

static const struct kernel_symbol *find_symbol(const struct kernel_symbols *symbols,
					       uint64_t address)
{
	size_t low = 0, high = symbols->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->list[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &symbols->list[low - 1] : NULL;
}

static int append_chain(struct symbolizer_result_builder *builder,
			const struct kernel_symbol *symbol, struct symbolizer_frame_chain *chain)
{
	struct symbolizer_frame frame = {.function = NULL};
	int error = symbolizer_builder_set_frame_name(builder, symbol->name, &frame);

	if (!error)
		error = symbolizer_find_or_add_function_id(builder, frame.function, 0,
							   symbol->address, &frame.function_id);
	chain->first = (uint32_t)builder->result.frame_count;
	if (!error)
		error = symbolizer_builder_append_frame(builder, &frame);
	chain->count = !error;
	return error;
}

int symbolize_kernel(const struct symbolizer_request *request,
		     struct symbolizer_request_result *ret)
{
	struct kernel_symbols symbols = {.list = NULL};
	struct symbolizer_result_builder builder;
	int stale = read_kernel_symbols(request->mapping_start, &symbols);
	int error = symbolizer_builder_init(&builder, request->count);

	for (size_t i = 0; !error && i < request->count; i++) {
		const struct kernel_symbol *symbol =
			stale ? NULL
			      : find_symbol(&symbols, request->offsets[i] + request->mapping_start);

		builder.result.chains[i].vaddr = request->offsets[i];
		if (symbol)
			error = append_chain(&builder, symbol, &builder.result.chains[i]);
	}
	free(symbols.list);
	if (error) {
		symbolizer_builder_deinit(&builder);
		return error;
	}
	builder.result.status = stale ? SYMBOLIZER_FILE_REPLACED : SYMBOLIZER_NAMES_ONLY;
	symbolizer_builder_finish(&builder, ret);
	return 0;
}
