/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The one file that includes lzma.h, where the build found it.
 */
#include "binary/minidebug.h"

#include <errno.h>
#include <stdlib.h>

#ifdef KYMO_HAVE_LZMA
#include <lzma.h>

/* Symbol tables of the largest programs are a few tens of megabytes. */
#define DECOMPRESSED_BYTES_MAX     (256u << 20)
#define LZMA_MEMORY_BYTES_MAX      (128u << 20)
#define DECOMPRESSED_BYTES_INITIAL (1u << 20)

static int decompress_lzma(const struct elf_section_data *packed, uint8_t **ret, size_t *ret_size)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	if (lzma_stream_decoder(&stream, LZMA_MEMORY_BYTES_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	stream.next_in = packed->bytes;
	stream.avail_in = packed->size;
	uint8_t *bytes = NULL;
	size_t capacity = DECOMPRESSED_BYTES_INITIAL / 2;
	lzma_ret status = LZMA_OK;
	while (status == LZMA_OK && capacity < DECOMPRESSED_BYTES_MAX) {
		size_t used = (size_t)stream.total_out;
		capacity *= 2;
		uint8_t *larger = realloc(bytes, capacity);
		if (!larger) {
			status = LZMA_MEM_ERROR;
			break;
		}
		bytes = larger;
		stream.next_out = bytes + used;
		stream.avail_out = capacity - used;
		do {
			status = lzma_code(&stream, LZMA_FINISH);
		} while (status == LZMA_OK && stream.avail_out > 0);
	}
	*ret_size = (size_t)stream.total_out;
	lzma_end(&stream);
	if (status != LZMA_STREAM_END) {
		free(bytes);
		return status == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
	}
	*ret = bytes;
	return 0;
}
#else
static int decompress_lzma(const struct elf_section_data *packed, uint8_t **ret, size_t *ret_size)
{
	(void)packed, (void)ret, (void)ret_size;
	return -ENOTSUP;
}
#endif

int minidebug_open(const struct elf_file *file, struct elf_file **ret)
{
	const struct elf_section *section = elf_section_find(file, ".gnu_debugdata");
	if (!section)
		return -ENODATA;
	struct elf_section_data packed;
	int error = elf_section_read(file, section, &packed);
	if (error)
		return error;
	uint8_t *bytes;
	size_t size;
	error = decompress_lzma(&packed, &bytes, &size);
	elf_section_data_deinit(&packed);
	if (error)
		return error;
	return elf_open_owned_memory(bytes, size, ".gnu_debugdata", ret, NULL);
}
