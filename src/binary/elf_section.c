/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Contents of sections: plain, compressed by the gABI (SHF_COMPRESSED, Elf64_Chdr) or in the older
 * GNU way (.zdebug_*: "ZLIB", big-endian size, stream), and the two links to other files.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "binary/elf.h"

/* Deflate cannot expand more than 1032 to 1 (zlib's technical notes): a larger claim is a lie that
 * would only cost memory. */
#define DEFLATE_RATIO_MAX   1032u
#define ZDEBUG_HEADER_BYTES 12u

const struct elf_section *elf_section_find(const struct elf_file *file, const char *name)
{
	for (size_t i = 0; i < file->section_count; i++) {
		if (strcmp(file->sections[i].name, name) == 0)
			return &file->sections[i];
	}
	return NULL;
}

void elf_section_data_deinit(struct elf_section_data *data)
{
	free(data->bytes);
	data->bytes = NULL;
	data->size = 0;
}

static int allocate_section_data(struct elf_section_data *data, uint64_t size)
{
	data->bytes = malloc((size_t)size + 1);
	if (!data->bytes)
		return -ENOMEM;
	data->bytes[size] = 0;
	data->size = (size_t)size;
	return 0;
}

static int inflate_section(const uint8_t *packed, size_t packed_size, uint64_t size,
			   struct elf_section_data *ret)
{
	if (size / DEFLATE_RATIO_MAX > (uint64_t)packed_size + 1)
		return -EBADMSG;
	struct elf_section_data data;
	int error = allocate_section_data(&data, size);
	if (error)
		return error;
	/* Some tools write several streams one after the other: zlib stops after the first, so go
	 * on until the promised size is there. */
	z_stream stream = {.next_in = (uint8_t *)(uintptr_t)packed};
	if (inflateInit(&stream) != Z_OK) {
		elf_section_data_deinit(&data);
		return -ENOMEM;
	}
	size_t left_in = packed_size, left_out = data.size;
	stream.next_out = data.bytes;
	int status = Z_OK;
	while (left_out > 0 && (status == Z_OK || status == Z_STREAM_END)) {
		uInt in = left_in > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)left_in;
		uInt out = left_out > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)left_out;
		if (in == 0 || (status == Z_STREAM_END && inflateReset(&stream) != Z_OK))
			break;
		stream.avail_in = in;
		stream.avail_out = out;
		status = inflate(&stream, Z_NO_FLUSH);
		left_in -= in - stream.avail_in;
		left_out -= out - stream.avail_out;
	}
	inflateEnd(&stream);
	if (left_out > 0) {
		elf_section_data_deinit(&data);
		return -EBADMSG;
	}
	*ret = data;
	return 0;
}

static int inflate_shf_compressed(const struct elf_section_data *raw, struct elf_section_data *ret)
{
	Elf64_Chdr header;
	if (raw->size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, raw->bytes, sizeof(header));
	if (header.ch_type != ELFCOMPRESS_ZLIB)
		return -ENOTSUP;
	return inflate_section(raw->bytes + sizeof(header), raw->size - sizeof(header),
			       header.ch_size, ret);
}

static int inflate_zdebug(const struct elf_section_data *raw, struct elf_section_data *ret)
{
	if (raw->size < ZDEBUG_HEADER_BYTES || memcmp(raw->bytes, "ZLIB", 4) != 0)
		return -EBADMSG;
	uint64_t size = 0;
	for (size_t i = 4; i < ZDEBUG_HEADER_BYTES; i++)
		size = size << 8 | raw->bytes[i];
	return inflate_section(raw->bytes + ZDEBUG_HEADER_BYTES, raw->size - ZDEBUG_HEADER_BYTES,
			       size, ret);
}

int elf_section_read(const struct elf_file *file, const struct elf_section *section,
		     struct elf_section_data *ret)
{
	if (section->type == SHT_NOBITS || section->type == SHT_NULL)
		return -ENODATA;
	if (section->offset > file->size || section->size > file->size - section->offset)
		return -EBADMSG;
	struct elf_section_data raw;
	int error = allocate_section_data(&raw, section->size);
	if (error)
		return error;
	error = elf_read_bytes(file, section->offset, raw.bytes, raw.size);
	bool gabi = section->flags & SHF_COMPRESSED;
	if (!error && !gabi && strncmp(section->name, ".zdebug", 7) != 0) {
		*ret = raw;
		return 0;
	}
	if (!error)
		error = gabi ? inflate_shf_compressed(&raw, ret) : inflate_zdebug(&raw, ret);
	elf_section_data_deinit(&raw);
	return error;
}

/* Reads a section that begins with a file name; the rest starts at *ret_rest. */
static int read_section_beginning_with_file_name(const struct elf_file *file,
						 const char *section_name,
						 struct elf_section_data *data, size_t *ret_rest)
{
	const struct elf_section *section = elf_section_find(file, section_name);
	if (!section)
		return -ENODATA;
	int error = elf_section_read(file, section, data);
	if (error)
		return error;
	const uint8_t *end = memchr(data->bytes, 0, data->size);
	if (!end || end == data->bytes) {
		elf_section_data_deinit(data);
		return -EBADMSG;
	}
	*ret_rest = (size_t)(end - data->bytes) + 1;
	return 0;
}

int elf_read_debuglink(const struct elf_file *file, char **ret_name, uint32_t *ret_crc)
{
	struct elf_section_data data;
	size_t rest;
	int error = read_section_beginning_with_file_name(file, ".gnu_debuglink", &data, &rest);
	if (error)
		return error;
	rest = (rest + 3) & ~(size_t)3;
	if (rest > data.size || data.size - rest < sizeof(*ret_crc)) {
		elf_section_data_deinit(&data);
		return -EBADMSG;
	}
	memcpy(ret_crc, data.bytes + rest, sizeof(*ret_crc));
	*ret_name = (char *)data.bytes;
	return 0;
}

int elf_read_debugaltlink(const struct elf_file *file, char **ret_name,
			  uint8_t build_id[ELF_BUILD_ID_SIZE_MAX], uint32_t *ret_build_id_size)
{
	struct elf_section_data data;
	size_t rest;
	int error = read_section_beginning_with_file_name(file, ".gnu_debugaltlink", &data, &rest);
	if (error)
		return error;
	size_t size = data.size - rest;
	if (size == 0 || size > ELF_BUILD_ID_SIZE_MAX) {
		elf_section_data_deinit(&data);
		return -EBADMSG;
	}
	memcpy(build_id, data.bytes + rest, size);
	*ret_build_id_size = (uint32_t)size;
	*ret_name = (char *)data.bytes;
	return 0;
}

int elf_compute_file_crc(const struct elf_file *file, uint32_t *ret)
{
	uint8_t buffer[1 << 16];
	uLong crc = crc32(0, NULL, 0); /* the same polynomial and start as .gnu_debuglink's */
	for (uint64_t at = 0; at < file->size;) {
		size_t part = file->size - at < sizeof(buffer) ? (size_t)(file->size - at)
							       : sizeof(buffer);
		int error = elf_read_bytes(file, at, buffer, part);
		if (error)
			return error;
		crc = crc32(crc, buffer, (uInt)part);
		at += part;
	}
	*ret = (uint32_t)crc;
	return 0;
}
