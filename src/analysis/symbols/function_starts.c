/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See function_starts.h; the layout is in the LSB Core specification, "The .eh_frame_hdr section".
 * Linkers write one encoding of it only, and others are not read.
 */
#include "analysis/symbols/function_starts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "binary/elf.h"

#define EH_FRAME_HDR_SIZE           12
#define EH_FRAME_HDR_ENTRY_SIZE     8
#define FDE_COUNT_ENCODING          0x03 /* DW_EH_PE_udata4 */
#define EH_FRAME_HDR_TABLE_ENCODING 0x3b /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define EH_FRAME_POINTER_ENCODING   0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */

static int compare_addresses(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static void read_eh_frame_hdr_table(struct function_starts *starts, const uint8_t *bytes,
				    size_t size, uint64_t base)
{
	uint32_t count;

	if (size < EH_FRAME_HDR_SIZE || bytes[0] != 1 || bytes[1] != EH_FRAME_POINTER_ENCODING ||
	    bytes[2] != FDE_COUNT_ENCODING || bytes[3] != EH_FRAME_HDR_TABLE_ENCODING)
		return;
	memcpy(&count, bytes + 8, sizeof(count));
	if (count == 0 || count > (size - EH_FRAME_HDR_SIZE) / EH_FRAME_HDR_ENTRY_SIZE)
		return;
	starts->addresses = calloc(count, sizeof(*starts->addresses));
	if (!starts->addresses)
		return;
	for (uint32_t i = 0; i < count; i++) {
		int32_t offset;

		memcpy(&offset, bytes + EH_FRAME_HDR_SIZE + (size_t)i * EH_FRAME_HDR_ENTRY_SIZE,
		       sizeof(offset));
		starts->addresses[i] = base + (uint64_t)(int64_t)offset;
	}
	starts->count = count;
	qsort(starts->addresses, count, sizeof(*starts->addresses), compare_addresses);
}

static bool elf_file_has_build_id(const struct elf_file *file, const uint8_t *build_id,
				  uint32_t size)
{
	return size == 0 ||
	       (file->build_id_size == size && memcmp(file->build_id, build_id, size) == 0);
}

void function_starts_read(struct function_starts *starts, const char *path, const uint8_t *build_id,
			  uint32_t build_id_size)
{
	const struct elf_section *section;
	struct problem problem;
	struct elf_file *file;
	struct elf_section_data data;

	*starts = (struct function_starts){0};
	if (path[0] != '/' || elf_open(path, &file, &problem) < 0)
		return;
	section = elf_section_find(file, ".eh_frame_hdr");
	if (section && elf_file_has_build_id(file, build_id, build_id_size) &&
	    elf_section_read(file, section, &data) == 0) {
		read_eh_frame_hdr_table(starts, data.bytes, data.size, section->address);
		elf_section_data_deinit(&data);
	}
	elf_close(file);
}

void function_starts_deinit(struct function_starts *starts)
{
	free(starts->addresses);
	*starts = (struct function_starts){0};
}

uint64_t function_starts_find_by_address(const struct function_starts *starts, uint64_t address)
{
	size_t low = 0, high = starts->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (starts->addresses[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? starts->addresses[low - 1] : 0;
}
