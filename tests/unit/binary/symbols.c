/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which name an address gets, on symbol tables made by hand and on a real program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <limits.h>

#include "binary/symbols/symbols.h"
#include "elf_image.h"

#define FUNCTION STT_FUNC, STB_GLOBAL, 0
#define LOCAL    STT_FUNC, STB_LOCAL, 0
#define LABEL    STT_NOTYPE, STB_LOCAL, 0

static const char *sample_path(const char *name)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", getenv("SAMPLES"), name);
	return path;
}

struct table {
	uint8_t *image;
	struct elf_file *file;
	struct symbol_table *symbols;
};

static void table_add(struct table *table, const struct image_symbol *symbols, size_t count)
{
	size_t size;
	table->image = elf_image(symbols, count, &size);
	assert_int_equal(elf_open_memory(table->image, size, "image", &table->file, NULL), 0);
	assert_int_equal(symbols_create(&table->symbols), 0);
	assert_int_equal(symbols_add_file(table->symbols, table->file), 0);
	assert_int_equal(symbols_sort_and_flatten(table->symbols), 0);
}

static void table_free(struct table *table)
{
	symbols_destroy(table->symbols);
	elf_close(table->file);
	free(table->image);
}

static const char *name_at(const struct table *table, uint64_t address)
{
	const struct symbol *symbol = symbols_find_at_address(table->symbols, address);
	return symbol ? symbol->name : "-";
}

static void gaps_have_no_name(void **state)
{
	(void)state;
	struct table table;
	table_add(&table,
		  (struct image_symbol[]){{"first", 0x1010, 0x10, FUNCTION},
					  {"second", 0x1030, 0x10, FUNCTION}},
		  2);
	assert_string_equal(name_at(&table, 0x100f), "-");
	assert_string_equal(name_at(&table, 0x1010), "first");
	assert_string_equal(name_at(&table, 0x101f), "first");
	assert_string_equal(name_at(&table, 0x1020), "-");
	assert_string_equal(name_at(&table, 0x102f), "-");
	assert_string_equal(name_at(&table, 0x1030), "second");
	assert_string_equal(name_at(&table, 0x1040), "-");
	assert_string_equal(name_at(&table, UINT64_MAX), "-");
	table_free(&table);
}

static void unsized_reach_to_the_next(void **state)
{
	(void)state;
	struct table table;
	table_add(&table,
		  (struct image_symbol[]){{"entry", 0x1000, 0, LABEL},
					  {"sized", 0x1100, 0x10, FUNCTION},
					  {"inside", 0x1108, 0, LABEL},
					  {"tail", 0x1f00, 0, FUNCTION}},
		  4);
	assert_string_equal(name_at(&table, 0x10ff), "entry");
	assert_string_equal(name_at(&table, 0x1109), "sized"); /* a label is no function */
	assert_string_equal(name_at(&table, 0x1110), "-");
	assert_string_equal(name_at(&table, 0x1fff), "tail"); /* to the end of the section */
	assert_string_equal(name_at(&table, 0x2000), "-");
	table_free(&table);
}

static void inner_function_counts_while_it_lasts(void **state)
{
	(void)state;
	struct table table;
	table_add(&table,
		  (struct image_symbol[]){{"outer", 0x1000, 0x100, FUNCTION},
					  {"inner", 0x1040, 0x20, FUNCTION},
					  {"overhang", 0x10f0, 0x20, FUNCTION}},
		  3);
	assert_string_equal(name_at(&table, 0x103f), "outer");
	assert_string_equal(name_at(&table, 0x1040), "inner");
	assert_string_equal(name_at(&table, 0x1060), "outer");
	assert_string_equal(name_at(&table, 0x10f0), "overhang");
	assert_string_equal(name_at(&table, 0x110f), "overhang");
	assert_string_equal(name_at(&table, 0x1110), "-");
	table_free(&table);
}

static void best_name_of_aliases(void **state)
{
	(void)state;
	struct table table;
	table_add(&table,
		  (struct image_symbol[]){{"__libc_malloc", 0x1000, 0x10, FUNCTION},
					  {"malloc@@GLIBC_2.2.5", 0x1000, 0x10, FUNCTION},
					  {"__GI_malloc", 0x1000, 0x10, LOCAL},
					  {"label", 0x1000, 0, LABEL},
					  {"work.cold", 0x1100, 0x10, LOCAL},
					  {"work_slow", 0x1100, 0x10, LOCAL},
					  {"_ZN1aC2Ev", 0x1200, 0x10, FUNCTION},
					  {"_ZN1aC1Ev", 0x1200, 0x10, FUNCTION},
					  {"only.part.0", 0x1300, 0x10, LOCAL}},
		  9);
	assert_string_equal(name_at(&table, 0x1001), "malloc");
	assert_string_equal(name_at(&table, 0x1101), "work_slow");
	assert_string_equal(name_at(&table, 0x1201), "_ZN1aC1Ev");
	assert_string_equal(name_at(&table, 0x1301), "only.part.0");
	table_free(&table);
}

static void what_is_no_function_is_left_out(void **state)
{
	(void)state;
	struct table table;
	table_add(&table,
		  (struct image_symbol[]){{"object", 0x1000, 0x10, STT_OBJECT, STB_GLOBAL, 0},
					  {"_etext", 0x2000, 0, STT_NOTYPE, STB_GLOBAL, 0},
					  {"$x", 0x1100, 0, LABEL},
					  {"far", 0x9000, 0x10, FUNCTION},
					  {"elsewhere", 0x1200, 0x10, STT_FUNC, STB_GLOBAL, 3},
					  {"bad", 0x1300, 0x10, STT_FUNC, STB_GLOBAL, 77},
					  {"long", 0x1400, UINT64_MAX, FUNCTION}},
		  7);
	assert_int_equal(symbols_get_count(table.symbols), 1);
	assert_string_equal(name_at(&table, 0x1fff), "long");
	assert_string_equal(name_at(&table, 0x2000), "-");
	table_free(&table);
}

static void program_has_plt_names(void **state)
{
	(void)state;
	struct elf_file *file;
	struct symbol_table *symbols;
	assert_int_equal(elf_open(sample_path("sample"), &file, NULL), 0);
	assert_int_equal(symbols_create(&symbols), 0);
	assert_int_equal(symbols_add_file(symbols, file), 0);
	assert_int_equal(symbols_sort_and_flatten(symbols), 0);
	assert_int_equal(symbols_get_origin(symbols), SYMBOLS_FROM_SYMTAB);
	bool found = false, alias = false;
	for (size_t i = 0; i < symbols_get_count(symbols); i++) {
		const struct symbol *symbol = symbols_get_nth(symbols, i);
		found |= strcmp(symbol->name, "puts@plt") == 0 && symbol->size > 0;
		alias |= strcmp(symbol->name, "__outermost_alias") == 0;
	}
	assert_true(found);
	assert_false(alias);
	symbols_destroy(symbols);
	elf_close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps_have_no_name),
		cmocka_unit_test(unsized_reach_to_the_next),
		cmocka_unit_test(inner_function_counts_while_it_lasts),
		cmocka_unit_test(best_name_of_aliases),
		cmocka_unit_test(what_is_no_function_is_left_out),
		cmocka_unit_test(program_has_plt_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
