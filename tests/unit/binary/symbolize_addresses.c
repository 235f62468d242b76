/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * addr2line by kymo's symbolizer, for the comparison in peers.py: link-time addresses in ascending
 * order on standard input; for each a line with the address, then for each frame, innermost first,
 * a line with the function and one with file:line, then an empty line.
 * Usage: symbolize_addresses FILE [names]
 */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/symbols/symbols.h"
#include "binary/elf.h"

#define ADDRESSES_MAX 1000000u

static size_t read_offsets(const struct elf_file *file, uint64_t *offsets)
{
	size_t count = 0;
	char line[64];
	while (count < ADDRESSES_MAX && fgets(line, sizeof(line), stdin)) {
		if (elf_vaddr_to_offset(file, strtoull(line, NULL, 16), &offsets[count]))
			count++;
	}
	return count;
}

static void print_chain(const struct symbolizer_request_result *result,
			const struct symbolizer_frame_chain *chain)
{
	printf("0x%llx\n", (unsigned long long)chain->vaddr);
	for (uint32_t i = 0; i < chain->count; i++) {
		const struct symbolizer_frame *frame = &result->frames[chain->first + i];
		printf("%s\n%s:%u\n", frame->function, frame->file ? frame->file : "??",
		       frame->line);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	static uint64_t offsets[ADDRESSES_MAX];
	struct elf_file *file;
	struct problem problem;
	struct symbolizer_request_result result;
	if (argc < 2 || elf_open(argv[1], &file, &problem)) {
		fprintf(stderr, "%s\n",
			argc < 2 ? "usage: symbolize_addresses FILE [names]" : problem.text);
		return 2;
	}
	struct symbolizer_request request = {.path = argv[1],
					     .offsets = offsets,
					     .count = read_offsets(file, offsets),
					     .with_inlines = argc == 2,
					     .symbol_cache_directory = ""};
	elf_close(file);
	if (symbolize_module(&request, &result, &problem)) {
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	for (size_t i = 0; i < result.chain_count; i++)
		print_chain(&result, &result.chains[i]);
	symbolizer_result_deinit(&result);
	return 0;
}
