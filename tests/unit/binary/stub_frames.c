/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Unwind tables of stubs, read as unwinders read them: every stub is found, and at each instruction
 * the frame is where the stub's pushes have put it; displaced instructions have the function's own
 * rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "binary/functions/frames.h"
#include "binary/plan/plan.h"
#include "common/array.h"

struct sample {
	struct elf_file *file;
	struct plan plan;
	struct eh_frame_table own;   /* of the file */
	struct eh_frame_table stubs; /* one FDE at a time */
	struct eh_frame_fde frame;
	const uint8_t *tables; /* .eh_frame_hdr and .eh_frame, of that many bytes */
	size_t size;
};

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void open_sample(struct sample *sample, const char *name)
{
	static struct eh_frame_cie common;
	const struct plan_options options = {0};
	struct problem problem;
	char path[4096];

	memset(sample, 0, sizeof(*sample));
	snprintf(path, sizeof(path), "%s/%s", getenv("FUNCTION_SAMPLES"), name);
	assert_int_equal(elf_open(path, &sample->file, &problem), 0);
	assert_int_equal(plan_load_or_build(sample->file, NULL, &options, &sample->plan, &problem),
			 0);
	assert_int_equal(eh_frame_table_read(sample->file, &sample->own), 0);
	sample->tables = (const uint8_t *)sample->plan.header + sample->plan.header->frames.offset;
	sample->size = sample->plan.header->frames.count;
	assert_true(sample->size > 12);
	/* LSB Core, 10.6.2: version, encodings, count */
	assert_memory_equal(sample->tables, ((const uint8_t[]){1, 0x1b, 0x03, 0x3b}), 4);
	/* The CIE is where the header says: "zR", addresses by their distance. */
	const uint8_t *entry = sample->tables + 4 + word(sample->tables + 4);
	assert_int_equal(word(entry + 4), 0);
	assert_memory_equal(entry + 8, ((const uint8_t[]){1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b}),
			    9);
	common =
		(struct eh_frame_cie){.offset = (uint32_t)(entry - sample->tables),
				      .cfa_program_offset = (uint32_t)(entry + 17 - sample->tables),
				      .cfa_program_size = word(entry) - 13,
				      .code_align = 1,
				      .data_align = -8,
				      .pointer_encoding = 0x1b,
				      .return_register = 16,
				      .has_augmentation_size = true};
	sample->stubs = (struct eh_frame_table){.bytes = (uint8_t *)sample->tables,
						.size = sample->size,
						.list = &sample->frame,
						.count = 1,
						.cies = &common,
						.cie_count = 1};
}

static void close_sample(struct sample *sample)
{
	eh_frame_table_deinit(&sample->own);
	plan_close(&sample->plan);
	elf_close(sample->file);
}

/* Row `number` of the table, as a frame whose addresses are offsets in the arena. */
static void take(struct sample *sample, uint32_t number)
{
	uint32_t header = PLAN_STUBS + (uint32_t)(sample->plan.header->frames.offset -
						  sample->plan.header->stubs.offset);
	const uint8_t *row = sample->tables + 12 + 8 * (size_t)number, *entry;
	uint32_t start = header + word(row);

	assert_in_range(word(row + 4), 12, sample->size - 17);
	entry = sample->tables + word(row + 4);
	assert_in_range(word(entry), 13, sample->size - word(row + 4) - 4);
	assert_int_equal(word(entry + 4),
			 entry + 4 - sample->tables - sample->stubs.cies[0].offset);
	assert_int_equal(header + (uint32_t)(entry + 8 - sample->tables) + word(entry + 8), start);
	assert_int_equal(entry[16], 0);
	sample->frame =
		(struct eh_frame_fde){.vaddr = start,
				      .size = word(entry + 12),
				      .cfa_program_offset = (uint32_t)(entry + 17 - sample->tables),
				      .cfa_program_size = word(entry) - 13};
}

static const struct plan_function *function_of(const struct sample *sample, uint64_t stub)
{
	const struct plan_function *functions = plan_get_functions(&sample->plan);

	for (size_t i = 0; i < sample->plan.header->functions.count; i++)
		if (functions[i].reason == PLAN_PATCHABLE && functions[i].stub == stub)
			return &functions[i];
	return NULL;
}

static void check_stub(const struct sample *sample)
{
	/* words above rsp; -1: an expression, see binary/plan/stub_frames.c */
	static const struct {
		uint8_t offset;
		int8_t words;
	} rows[] = {{0, 1},  {4, 1},  {5, 2},   {11, 2},  {12, 1},  {32, 1},  {33, 2},  {42, 2},
		    {43, 0}, {46, 0}, {47, -1}, {48, -1}, {53, -1}, {58, -1}, {62, -1}, {63, 2},
		    {67, 2}, {68, 1}, {69, 2},  {73, 2},  {74, 1},  {133, 1}};
	struct cfa_walk_state walk;

	cfa_walk_begin_at_frame(&walk, &sample->stubs, &sample->frame);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cfa_walk_to_address(&walk, sample->frame.vaddr + rows[i].offset);
		assert_int_equal(walk.row.known, rows[i].words >= 0);
		if (rows[i].words < 0)
			continue;
		assert_int_equal(walk.row.base, EH_FRAME_REGISTER_RSP);
		assert_int_equal(walk.row.offset, 8 * rows[i].words);
	}
	assert_false(walk.cursor.failed);
}

/* The rows of displaced instructions are those of the originals. Returns how many of them are not
 * those of the first. */
static unsigned check_moves(const struct sample *sample, const struct plan_function *function)
{
	const struct plan_site *site = &plan_get_sites(&sample->plan)[function->site];
	const struct plan_move *moves = &plan_get_moves(&sample->plan)[site->first_move];
	const struct eh_frame_fde *frame = NULL;
	struct cfa_walk_state walk, original;
	unsigned others = 0;

	for (size_t i = 0; i < sample->own.count; i++)
		if (site->vaddr - sample->own.list[i].vaddr < sample->own.list[i].size)
			frame = &sample->own.list[i];
	if (!frame)
		return 0;
	cfa_walk_begin_at_frame(&walk, &sample->stubs, &sample->frame);
	cfa_walk_begin_at_frame(&original, &sample->own, frame);
	for (uint32_t i = 0; i < site->move_count; i++) {
		cfa_walk_to_address(&walk, moves[i].to);
		cfa_walk_to_address(&original, site->vaddr + moves[i].from);
		if (!original.row.known)
			continue;
		assert_true(walk.row.known);
		assert_int_equal(walk.row.base, original.row.base);
		assert_int_equal(walk.row.offset, original.row.offset);
		others += walk.row.offset != 8 || walk.row.base != EH_FRAME_REGISTER_RSP;
	}
	return others;
}

static void test_all(void **state)
{
	struct sample sample;
	unsigned found = 0, others = 0;
	uint64_t end = 0;

	(void)state;
	open_sample(&sample, "functions.so");
	for (uint32_t i = 0; i < word(sample.tables + 8); i++) {
		const struct plan_function *function;

		take(&sample, i);
		/* sorted, and nothing is in two */
		assert_true(sample.frame.vaddr >= end);
		end = sample.frame.vaddr + sample.frame.size;
		function = function_of(&sample, sample.frame.vaddr);
		assert_non_null(function);
		assert_true(sample.frame.size > PLAN_STUB_BODY);
		check_stub(&sample);
		others += check_moves(&sample, function);
		found++;
	}
	assert_int_equal(found, sample.plan.header->sites.count);
	assert_true(others > 3);
	close_sample(&sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
