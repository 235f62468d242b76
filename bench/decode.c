/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What decoding costs, beside Zydis, and what finding blocks, jump tables and loops of all
 * functions costs; ns an instruction, least of three rounds.
 *
 * usage: decode [FILE...]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef BENCH_ZYDIS
#include <Zydis/Zydis.h>
#endif

#include "binary/elf.h"
#include "binary/functions/blocks.h"
#include "binary/instruction.h"
#include "common/array.h"

#define ROUNDS     3
#define RANGES_MAX 64

struct code {
	uint64_t vaddr;
	uint32_t size;
	const uint8_t *bytes;
};

struct input {
	struct code *functions;
	size_t count;
	struct loaded_byte_range ranges[RANGES_MAX];
	size_t range_count;
	struct elf_section_data sections[RANGES_MAX];
	uint64_t low, high; /* of code */
	uint64_t bytes;     /* of functions */
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static const uint8_t *bytes_at(const struct input *input, uint64_t vaddr, uint64_t size)
{
	for (size_t i = 0; i < input->range_count; i++) {
		const struct loaded_byte_range *range = &input->ranges[i];
		if (vaddr - range->vaddr < range->size &&
		    range->size - (vaddr - range->vaddr) >= size)
			return range->bytes + (vaddr - range->vaddr);
	}
	return NULL;
}

static int32_t word_at(const struct input *input, uint64_t vaddr)
{
	const uint8_t *at = bytes_at(input, vaddr, 4);
	int32_t value = 0;

	if (at)
		memcpy(&value, at, 4);
	return value;
}

/* Functions by the sorted table of .eh_frame_hdr; every linker writes the same encodings. */
static int read_functions(struct input *input, uint64_t header)
{
	uint32_t count = (uint32_t)word_at(input, header + 8);

	input->functions = calloc((size_t)count + 1, sizeof(*input->functions));
	if (!input->functions)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		struct code *code = &input->functions[input->count];
		uint64_t entry = header + 12 + (uint64_t)i * 8;
		uint64_t description = header + (uint64_t)(int64_t)word_at(input, entry + 4);
		code->vaddr = header + (uint64_t)(int64_t)word_at(input, entry);
		code->size = (uint32_t)word_at(input, description + 12);
		code->bytes = bytes_at(input, code->vaddr, code->size);
		input->count += code->bytes != NULL;
		input->bytes += code->bytes ? code->size : 0;
	}
	return 0;
}

static int read_input(const char *path, struct input *input)
{
	struct elf_file *file;
	struct problem problem;
	uint64_t header = 0;

	if (elf_open(path, &file, &problem))
		return -1;
	input->low = UINT64_MAX;
	for (size_t i = 0; i < file->section_count && input->range_count < RANGES_MAX; i++) {
		const struct elf_section *section = &file->sections[i];
		struct elf_section_data *data = &input->sections[input->range_count];
		if (!(section->flags & SHF_ALLOC) || section->type == SHT_NOBITS ||
		    elf_section_read(file, section, data))
			continue;
		input->ranges[input->range_count++] =
			(struct loaded_byte_range){section->address, data->size, data->bytes};
		if (!strcmp(section->name, ".eh_frame_hdr"))
			header = section->address;
		if (!(section->flags & SHF_EXECINSTR))
			continue;
		input->low = section->address < input->low ? section->address : input->low;
		if (section->address + section->size > input->high)
			input->high = section->address + section->size;
	}
	elf_close(file);
	return header ? read_functions(input, header) : -1;
}

static void free_input(struct input *input)
{
	for (size_t i = 0; i < input->range_count; i++)
		elf_section_data_deinit(&input->sections[i]);
	free(input->functions);
}

static uint64_t decode_all(const struct input *input)
{
	uint64_t count = 0;

	for (size_t i = 0; i < input->count; i++) {
		const struct code *code = &input->functions[i];
		struct instruction instruction;
		for (uint32_t at = 0; at < code->size; at += instruction.length, count++) {
			if (!instruction_decode(code->bytes + at, code->size - at, code->vaddr + at,
						&instruction))
				break;
		}
	}
	return count;
}

#ifdef BENCH_ZYDIS
static uint64_t decode_all_zydis(const struct input *input)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction instruction;
	uint64_t count = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < input->count; i++) {
		const struct code *code = &input->functions[i];
		for (uint32_t at = 0; at < code->size; at += instruction.length, count++) {
			if (!ZYAN_SUCCESS(
				    ZydisDecoderDecodeInstruction(&decoder, NULL, code->bytes + at,
								  code->size - at, &instruction)))
				break;
		}
	}
	return count;
}
#endif

struct totals {
	uint64_t blocks, loops, tables, unknown, undecoded;
};

static struct totals totals;

static uint64_t find_all_blocks(const struct input *input)
{
	struct blocks_analysis_input image = {.ranges = input->ranges,
					      .range_count = input->range_count,
					      .code_low = input->low,
					      .code_high = input->high};
	struct basic_blocks blocks;
	uint64_t count = 0;

	totals = (struct totals){0};
	if (blocks_init(&blocks))
		return 0;
	for (size_t i = 0; i < input->count; i++) {
		const struct code *code = &input->functions[i];
		if (blocks_find_in_function(&blocks, &image, code->bytes, code->vaddr, code->size))
			break;
		count += blocks.instructions;
		totals.blocks += blocks.count;
		totals.loops += blocks.loops;
		totals.tables += blocks.tables;
		totals.unknown += blocks.unknown_table_jump_count;
		totals.undecoded += blocks.decoded_bytes != code->size;
		if (getenv("BENCH_UNKNOWN") && blocks.unknown_table_jump_count)
			printf("unknown: %" PRIx64 " +%x: %u of %u\n", code->vaddr, code->size,
			       blocks.unknown_table_jump_count, blocks.tables);
	}
	blocks_deinit(&blocks);
	return count;
}

static double measure(uint64_t (*run)(const struct input *), const struct input *input,
		      uint64_t *count)
{
	double least = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double begin = now(), taken;
		*count = run(input);
		taken = (now() - begin) / (double)(*count ? *count : 1);
		if (!i || taken < least)
			least = taken;
	}
	return least;
}

static void print_row(const char *path)
{
	struct input input = {0};
	uint64_t count;
	double own, zydis = 0, blocks;

	if (read_input(path, &input) == 0) {
		own = measure(decode_all, &input, &count);
#ifdef BENCH_ZYDIS
		zydis = measure(decode_all_zydis, &input, &count);
#endif
		blocks = measure(find_all_blocks, &input, &count);
		printf("%-28s %7zu %9" PRIu64 " %6.1f %6.1f %6.1f %8.1f %8" PRIu64 " %7" PRIu64
		       " %6" PRIu64 " %5" PRIu64 " %3" PRIu64 "\n",
		       strrchr(path, '/') ? strrchr(path, '/') + 1 : path, input.count, count, own,
		       zydis, blocks, blocks * (double)count / 1e6, totals.blocks, totals.loops,
		       totals.tables, totals.unknown, totals.undecoded);
	}
	free_input(&input);
}

int main(int count, char **arguments)
{
	static const char *const usual[] = {"/usr/bin/python3",
					    "/usr/bin/perl",
					    "/usr/bin/gdb",
					    "/usr/lib/x86_64-linux-gnu/libc.so.6",
					    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
					    "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"};

	printf("%-28s %7s %9s %6s %6s %6s %8s %8s %7s %6s %5s %3s\n", "ns an instruction", "funcs",
	       "instr", "kymo", "Zydis", "blocks", "ms", "blocks", "loops", "tables", "open",
	       "bad");
	for (int i = 1; i < count; i++)
		print_row(arguments[i]);
	for (size_t i = 0; count == 1 && i < ARRAY_SIZE(usual); i++)
		print_row(usual[i]);
	return 0;
}
