/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Jump tables and loops of functions whose names say what they hold (sample_blocks.c), as gcc and
 * clang make them at every level; and blocks of small pieces of code.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "binary/elf.h"
#include "binary/functions/blocks.h"
#include "binary/symbols/symbols.h"

#define RANGES_MAX 16

struct image {
	struct loaded_byte_range ranges[RANGES_MAX];
	struct elf_section_data sections[RANGES_MAX];
	struct blocks_analysis_input image;
};

static void read_image(const struct elf_file *file, struct image *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->image.ranges = ret->ranges;
	for (size_t i = 0; i < file->section_count; i++) {
		const struct elf_section *section = &file->sections[i];
		size_t count = ret->image.range_count;
		if (!(section->flags & SHF_ALLOC) || section->type == SHT_NOBITS ||
		    count == RANGES_MAX || elf_section_read(file, section, &ret->sections[count]))
			continue;
		ret->ranges[count] = (struct loaded_byte_range){section->address, section->size,
								ret->sections[count].bytes};
		ret->image.range_count++;
		if (!strcmp(section->name, ".text")) {
			ret->image.code_low = section->address;
			ret->image.code_high = section->address + section->size;
		}
	}
}

static void free_image(struct image *image)
{
	for (size_t i = 0; i < image->image.range_count; i++)
		elf_section_data_deinit(&image->sections[i]);
}

static const uint8_t *bytes_at(const struct image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->image.range_count; i++) {
		const struct loaded_byte_range *range = &image->ranges[i];
		if (vaddr - range->vaddr < range->size)
			return range->bytes + (vaddr - range->vaddr);
	}
	return NULL;
}

static unsigned distinct_targets(const struct basic_blocks *blocks, const struct symbol *symbol,
				 unsigned *inside)
{
	unsigned count = 0;

	*inside = 0;

	for (uint32_t i = 0; i < blocks->table_target_count; i++) {
		bool again = false;
		for (uint32_t k = 0; k < i; k++)
			again |= blocks->table_targets[k] == blocks->table_targets[i];
		count += !again;
		*inside += !again && blocks->table_targets[i] - symbol->address < symbol->size;
	}
	return count;
}

/* What holds for every function. */
static void check_shape(const struct basic_blocks *blocks, uint32_t size)
{
	uint32_t at = 0, instructions = 0;

	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct basic_block *block = &blocks->list[i];
		assert_int_equal(block->start, at);
		assert_true(block->instructions > 0);
		at += block->size;
		instructions += block->instructions;
		for (uint32_t k = 0; k < block->successor_count; k++)
			assert_true(blocks->successors[block->first_successor + k] < blocks->count);
	}
	assert_int_equal(at, blocks->decoded_bytes);
	assert_int_equal(instructions, blocks->instructions);
	assert_true(blocks->decoded_bytes <= size);
}

static unsigned check_function(struct basic_blocks *blocks, const struct image *image,
			       const char *path, const struct symbol *symbol)
{
	unsigned cases, loops, found, inside, most;

	if (sscanf(symbol->name, "cases_%u_loops_%u", &cases, &loops) != 2 ||
	    strstr(symbol->name, ".cold"))
		return 0;
	assert_int_equal(blocks_find_in_function(blocks, &image->image,
						 bytes_at(image, symbol->address), symbol->address,
						 (uint32_t)symbol->size),
			 0);
	check_shape(blocks, (uint32_t)symbol->size);
	found = distinct_targets(blocks, symbol, &inside);
	/* Holes and values beyond the cases lead to one more place, the comparison may lead to one
	 * of them. Where none says how long the table is (_open), it goes on for too long. */
	most = strstr(symbol->name, "_open") ? UINT32_MAX : cases + 2;
	if (found + 1 < cases || inside > most || (!cases && inside) || blocks->loops != loops ||
	    blocks->unknown_table_jump_count || blocks->decoded_bytes != symbol->size)
		fail_msg("%s: %s: %u targets, %u inside, %u loops, %u jumps not understood", path,
			 symbol->name, found, inside, blocks->loops,
			 blocks->unknown_table_jump_count);
	return 1;
}

static unsigned check_file(const char *path)
{
	struct elf_file *file;
	struct problem problem;
	struct symbol_table *symbols;
	struct basic_blocks blocks;
	struct image image;
	unsigned checked = 0;

	assert_int_equal(elf_open(path, &file, &problem), 0);
	assert_int_equal(symbols_create(&symbols), 0);
	assert_int_equal(symbols_add_file(symbols, file), 0);
	assert_int_equal(symbols_sort_and_flatten(symbols), 0);
	assert_int_equal(blocks_init(&blocks), 0);
	read_image(file, &image);
	for (size_t i = 0; i < symbols_get_count(symbols); i++)
		checked += check_function(&blocks, &image, path, symbols_get_nth(symbols, i));
	free_image(&image);
	blocks_deinit(&blocks);
	symbols_destroy(symbols);
	elf_close(file);
	return checked;
}

static void test_compilers(void **state)
{
	const char *directory = getenv("BLOCK_SAMPLES");
	DIR *files;
	struct dirent *entry;
	unsigned checked = 0;

	(void)state;
	if (!directory)
		skip();
	files = opendir(directory);
	assert_non_null(files);
	while ((entry = readdir(files))) {
		char path[4096];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		checked += check_file(path);
	}
	closedir(files);
	assert_true(checked >= 15 * 16);
}

#define VADDR 0x401000ul

static void find(struct basic_blocks *blocks, const uint8_t *code, uint32_t size)
{
	static const struct blocks_analysis_input image = {.code_low = VADDR,
							   .code_high = VADDR + 4096};

	assert_int_equal(blocks_find_in_function(blocks, &image, code, VADDR, size), 0);
	check_shape(blocks, size);
}

static void test_edges(void **state)
{
	/* 0 test; 2 je 8; 4 dec; 6 jmp 0; 8 call 16; 13 ret; 14 ud2; 16 pop; 17 jmp outside */
	static const uint8_t code[] = {0x85, 0xff, 0x74, 0x04, 0xff, 0xcf, 0xeb, 0xf8, 0xe8, 3, 0,
				       0,    0,    0xc3, 0x0f, 0x0b, 0x58, 0xe9, 0,    1,    0, 0};
	struct basic_blocks blocks;

	(void)state;
	assert_int_equal(blocks_init(&blocks), 0);
	find(&blocks, code, sizeof(code));
	assert_int_equal(blocks.count, 5);
	assert_int_equal(blocks.loops, 1);
	assert_true(blocks.list[0].is_loop_head);
	assert_true(blocks.list[0].is_root);
	assert_int_equal(blocks.list[0].successor_count, 2);
	assert_int_equal(blocks.successors[blocks.list[0].first_successor], 2);
	assert_int_equal(blocks.successors[blocks.list[0].first_successor + 1], 1);
	assert_int_equal(blocks.list[1].successor_count, 1);
	assert_int_equal(blocks.list[2].successor_count, 0);
	assert_int_equal(blocks.list[2].instructions, 2);
	assert_true(blocks.list[3].is_root);
	assert_int_equal(blocks.list[3].flow, INSTRUCTION_STOP);
	assert_true(blocks.has_return);
	assert_true(blocks.has_tail_jump);
	assert_false(blocks.has_indirect_call);
	assert_int_equal(blocks.instructions, 9);
	blocks_deinit(&blocks);
}

/* A loop that a landing pad goes back into is a loop all the same; one with two entries is none. */
static void test_dominance(void **state)
{
	/* 0 nop; 1 nop; 2 dec; 4 jnz 1; 6 ret; 7 pop (pad); 8 jmp 2 */
	static const uint8_t pad[] = {0x90, 0x90, 0xff, 0xcf, 0x75, 0xfb, 0xc3, 0x58, 0xeb, 0xf8};
	/* 0 je 3; 2 nop; 3 dec; 5 jnz 2; 7 ret */
	static const uint8_t two[] = {0x74, 0x01, 0x90, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
	struct basic_blocks blocks;

	(void)state;
	assert_int_equal(blocks_init(&blocks), 0);
	find(&blocks, pad, sizeof(pad));
	assert_int_equal(blocks.loops, 1);
	find(&blocks, two, sizeof(two));
	assert_int_equal(blocks.loops, 0);
	blocks_deinit(&blocks);
}

/* ---- loops of any graph, beside what they are by definition ---- */

#define GRAPH_MAX 24u

struct random_graph {
	uint32_t count;
	uint32_t part[GRAPH_MAX]; /* the first block that leads to it, as the walk would find out */
	uint8_t code[GRAPH_MAX * 6];
};

static uint32_t draw(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % below;
}

/* Each block is one je, jmp or ret. */
static uint32_t make_graph(struct random_graph *graph, uint32_t *seed)
{
	uint8_t kinds[GRAPH_MAX];
	uint32_t at[GRAPH_MAX + 1] = {0};

	graph->count = 2 + draw(seed, GRAPH_MAX - 2);
	for (uint32_t i = 0; i < graph->count; i++) {
		kinds[i] = (uint8_t)draw(seed, 10);
		at[i + 1] = at[i] + (kinds[i] == 0 ? 1 : kinds[i] < 4 ? 5 : 6);
	}
	for (uint32_t i = 0; i < graph->count; i++) {
		uint32_t distance = at[draw(seed, graph->count)] - at[i + 1];
		uint8_t *code = graph->code + at[i];

		memcpy(code,
		       kinds[i] == 0  ? "\xc3"
		       : kinds[i] < 4 ? "\xe9"
				      : "\x0f\x84",
		       at[i + 1] - at[i] > 5 ? 2 : 1);
		if (kinds[i])
			memcpy(graph->code + at[i + 1] - 4, &distance, 4);
	}
	return at[graph->count];
}

/* Marks what `from` leads to within its part (or in none yet), not through `without`. */
static void reach(const struct basic_blocks *blocks, const uint32_t *part, uint32_t within,
		  uint32_t from, uint32_t without, bool *reached)
{
	const struct basic_block *block = &blocks->list[from];

	if (from == without || reached[from] || part[from] != within)
		return;
	reached[from] = true;
	for (uint32_t k = 0; k < block->successor_count; k++)
		reach(blocks, part, within, blocks->successors[block->first_successor + k], without,
		      reached);
}

static bool is_head(const struct basic_blocks *blocks, const struct random_graph *graph,
		    uint32_t head)
{
	const uint32_t root = graph->part[head];
	bool reached[GRAPH_MAX] = {false};

	reach(blocks, graph->part, root, root, head, reached);
	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct basic_block *block = &blocks->list[i];
		for (uint32_t k = 0; k < block->successor_count; k++) {
			if (blocks->successors[block->first_successor + k] == head &&
			    graph->part[i] == root && !reached[i])
				return true;
		}
	}
	return false;
}

static void find_parts(const struct basic_blocks *blocks, struct random_graph *graph)
{
	memset(graph->part, 0xff, sizeof(graph->part));
	for (uint32_t i = 0; i < blocks->count; i++) {
		bool reached[GRAPH_MAX] = {false};

		assert_int_equal(blocks->list[i].is_root, graph->part[i] == UINT32_MAX);
		if (graph->part[i] != UINT32_MAX)
			continue;
		reach(blocks, graph->part, UINT32_MAX, i, UINT32_MAX, reached);
		for (uint32_t k = 0; k < blocks->count; k++)
			graph->part[k] = reached[k] ? i : graph->part[k];
	}
}

static void test_random_graphs(void **state)
{
	struct random_graph graph;
	struct basic_blocks blocks;
	uint32_t seed = 1;

	(void)state;
	assert_int_equal(blocks_init(&blocks), 0);
	for (unsigned round = 0; round < 20000; round++) {
		uint32_t loops = 0;

		find(&blocks, graph.code, make_graph(&graph, &seed));
		assert_int_equal(blocks.count, graph.count);
		find_parts(&blocks, &graph);
		for (uint32_t i = 0; i < blocks.count; i++) {
			assert_int_equal(blocks.list[i].is_loop_head, is_head(&blocks, &graph, i));
			loops += blocks.list[i].is_loop_head;
		}
		assert_int_equal(blocks.loops, loops);
	}
	blocks_deinit(&blocks);
}

static void test_damaged(void **state)
{
	/* A branch behind the lock prefix, and a byte that is no instruction. */
	static const uint8_t middle[] = {0x74, 0x01, 0xf0, 0x0f, 0xb1, 0x0f, 0xc3};
	static const uint8_t bad[] = {0x90, 0x74, 0x02, 0x06, 0xc3};
	struct basic_blocks blocks;

	(void)state;
	assert_int_equal(blocks_init(&blocks), 0);
	find(&blocks, middle, sizeof(middle));
	assert_true(blocks.has_target_inside_instruction);
	find(&blocks, bad, sizeof(bad));
	assert_int_equal(blocks.decoded_bytes, 3);
	find(&blocks, bad + 3, 1);
	assert_int_equal(blocks.count, 0);
	find(&blocks, bad, 0);
	assert_int_equal(blocks.count, 0);
	blocks_deinit(&blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),         cmocka_unit_test(test_dominance),
		cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_compilers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
