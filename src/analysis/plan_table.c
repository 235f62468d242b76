/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See plan_table.h.
 */
#include "analysis/plan_table.h"
#include "common/foreign_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAN_SECTION_NAME ".kymo.plan"

static int read_exactly(int file, void *buffer, size_t size, uint64_t offset)
{
	size_t done = 0;

	if (offset > INT64_MAX - size)
		return -EBADMSG;
	while (done < size) {
		ssize_t got =
			pread(file, (char *)buffer + done, size - done, (off_t)(offset + done));

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0)
			return -EBADMSG;
		if (got > 0)
			done += (size_t)got;
	}
	return 0;
}

/* ---- a plan in an ELF file ---- */

static bool section_has_plan_name(int file, const Elf64_Shdr *names, const Elf64_Shdr *section)
{
	char name[sizeof(PLAN_SECTION_NAME)];

	return names->sh_offset < INT64_MAX / 2 &&
	       read_exactly(file, name, sizeof(name), names->sh_offset + section->sh_name) == 0 &&
	       memcmp(name, PLAN_SECTION_NAME, sizeof(name)) == 0;
}

static int find_elf_section_with_plan(int file, uint64_t *ret)
{
	Elf64_Ehdr header;
	Elf64_Shdr names, section;
	int result = read_exactly(file, &header, sizeof(header), 0);

	if (result < 0 || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_shentsize != sizeof(section) || header.e_shstrndx >= header.e_shnum)
		return result < 0 ? result : -ENOEXEC;
	result = read_exactly(file, &names, sizeof(names),
			      header.e_shoff + header.e_shstrndx * sizeof(names));
	for (unsigned i = 0; result == 0 && i < header.e_shnum; i++) {
		result = read_exactly(file, &section, sizeof(section),
				      header.e_shoff + i * sizeof(section));
		if (result == 0 && section_has_plan_name(file, &names, &section)) {
			*ret = section.sh_offset;
			return 0;
		}
	}
	return result < 0 ? result : -ENOEXEC;
}

/* ---- the table ---- */

static bool function_addresses_are_plausible(const struct plan_functions *functions)
{
	for (uint32_t i = 0; i < functions->count; i++) {
		if (functions->list[i].vaddr > INT64_MAX)
			return false;
	}
	return true;
}

static int read_plan_table(int file, uint64_t at, struct plan_functions *ret)
{
	struct plan_header header;
	int result = read_exactly(file, &header, sizeof(header), at);

	if (result < 0)
		return result;
	if (memcmp(header.magic, PLAN_MAGIC, sizeof(header.magic)) != 0)
		return -ENOEXEC;
	if (header.version != PLAN_VERSION || header.functions.count > PLAN_ID_MAX ||
	    header.functions.offset > INT64_MAX - at ||
	    header.build_id_size > sizeof(header.build_id))
		return -EBADMSG;
	ret->count = (uint32_t)header.functions.count;
	ret->build_id_size = header.build_id_size;
	memcpy(ret->build_id, header.build_id, sizeof(ret->build_id));
	ret->list = calloc((size_t)ret->count + 1, sizeof(*ret->list));
	if (!ret->list)
		return -ENOMEM;
	result = read_exactly(file, ret->list, ret->count * sizeof(*ret->list),
			      at + header.functions.offset);
	return result < 0 || function_addresses_are_plausible(ret) ? result : -EBADMSG;
}

int plan_functions_read(const char *path, struct plan_functions *ret)
{
	int file = foreign_open_file(&foreign_policy_of_result_files, path, NULL), result;
	uint64_t at = 0;

	*ret = (struct plan_functions){0};
	if (file < 0)
		return file;
	result = read_plan_table(file, 0, ret);
	if (result == -ENOEXEC) {
		result = find_elf_section_with_plan(file, &at);
		if (result == 0)
			result = read_plan_table(file, at, ret);
	}
	close(file);
	if (result < 0)
		plan_functions_deinit(ret);
	return result;
}

void plan_functions_deinit(struct plan_functions *functions)
{
	free(functions->list);
	*functions = (struct plan_functions){0};
}
