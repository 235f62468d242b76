/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of kernels in device code, whole and damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

static const char names[] = "\0nop\0device_function\0_Z3addPfS_";

struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	Elf64_Sym symbols[4];
	char strings[sizeof(names)];
};

static void fill(struct image *image)
{
	const unsigned char entry = 0x10;

	memset(image, 0, sizeof(*image));
	memcpy(image->header.e_ident, ELFMAG, SELFMAG);
	image->header.e_ident[EI_CLASS] = ELFCLASS64;
	image->header.e_ident[EI_DATA] = ELFDATA2LSB;
	image->header.e_shoff = offsetof(struct image, sections);
	image->header.e_shnum = 3;
	image->header.e_shentsize = sizeof(Elf64_Shdr);
	image->sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					  .sh_offset = offsetof(struct image, symbols),
					  .sh_size = sizeof(image->symbols),
					  .sh_link = 2};
	image->sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
					  .sh_offset = offsetof(struct image, strings),
					  .sh_size = sizeof(image->strings)};
	image->symbols[1] = (Elf64_Sym){
		.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = entry};
	image->symbols[2] =
		(Elf64_Sym){.st_name = 5, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
	image->symbols[3] = (Elf64_Sym){
		.st_name = 21, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = entry};
	memcpy(image->strings, names, sizeof(names));
}

static unsigned found;
static char all[256];

static void note(void *context, const char *name)
{
	(void)context;
	found++;
	strncat(all, name, sizeof(all) - strlen(all) - 2);
	strcat(all, " ");
}

static unsigned look(const void *bytes, size_t size)
{
	void *copy = malloc(size + !size); /* a sanitizer sees what is read behind it */

	memcpy(copy, bytes, size);
	found = 0;
	all[0] = '\0';
	cubin_for_each_kernel(copy, size, note, NULL);
	free(copy);
	return found;
}

static void entries_are_found(void **state)
{
	struct image image;

	(void)state;
	fill(&image);
	assert_int_equal(look(&image, sizeof(image)), 2);
	assert_string_equal(all, "nop _Z3addPfS_ ");
}

static void any_length_is_survived(void **state)
{
	struct image image;

	(void)state;
	fill(&image);
	for (size_t size = 0; size < sizeof(image); size++)
		assert_true(look(&image, size) <= 2);
}

static void wild_numbers_find_nothing(void **state)
{
	struct image image;

	(void)state;
	fill(&image);
	image.header.e_shoff = UINT64_MAX - 8;
	assert_int_equal(look(&image, sizeof(image)), 0);
	fill(&image);
	image.sections[1].sh_offset = UINT64_MAX - 4;
	assert_int_equal(look(&image, sizeof(image)), 0);
	fill(&image);
	image.sections[2].sh_size = UINT64_MAX;
	assert_int_equal(look(&image, sizeof(image)), 0);
	fill(&image);
	image.sections[1].sh_link = 99;
	assert_int_equal(look(&image, sizeof(image)), 0);
	fill(&image);
	image.symbols[1].st_name = image.symbols[3].st_name = UINT32_MAX;
	assert_int_equal(look(&image, sizeof(image)), 0);
	fill(&image);
	memset(image.strings + 20, 'x', sizeof(image.strings) - 20); /* no end */
	assert_int_equal(look(&image, sizeof(image)), 1);
	fill(&image);
	image.header.e_ident[0] = 0;
	assert_int_equal(look(&image, sizeof(image)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found),
		cmocka_unit_test(any_length_is_survived),
		cmocka_unit_test(wild_numbers_find_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
