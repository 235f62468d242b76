/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The few things of an ELF image that the table compiler needs: where code and .eh_frame lie.
 */
#ifndef KYMO_CORE_UNWIND_IMAGE_H
#define KYMO_CORE_UNWIND_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_IMAGE_SEGMENTS_MAX 32

struct unwind_image_segment {
	uint64_t address; /* as linked */
	uint64_t offset;  /* of the file, or of the image in memory */
	uint64_t size;    /* bytes present */
	bool executable;
};

struct unwind_image {
	const uint8_t *bytes;
	uint64_t size;
	/* Called before bytes of a range are looked at, so that a loader can read just those; NULL
	 * when all are there. False: the range cannot be had. */
	bool (*fetch)(void *context, uint64_t offset, uint64_t size);
	void *context;
	bool mapped; /* laid out as in memory, not as in the file */

	/* Filled by unwind_image_parse(). */
	struct unwind_image_segment segments[UNWIND_IMAGE_SEGMENTS_MAX];
	uint32_t segment_count;
	uint64_t eh_frame_address;  /* of .eh_frame, as linked */
	const uint8_t *eh_frame;    /* its bytes, NULL: there is none */
	uint64_t eh_frame_size_max; /* an upper bound: up to its section's or segment's end */
	uint64_t eh_frame_hdr_address;
	const uint8_t *eh_frame_hdr; /* .eh_frame_hdr, NULL: there is none */
	uint64_t eh_frame_hdr_size;
};

/* Reads ELF and program headers and finds .eh_frame through .eh_frame_hdr or, failing that, through
 * the section headers. 0, -ENOEXEC (no x86-64 ELF image), -ENODATA (no unwind information), -EIO.
 */
int unwind_image_parse(struct unwind_image *image);

/* The bytes of a section that is loaded, or NULL. */
const uint8_t *unwind_image_find_section(const struct unwind_image *image, const char *name,
					 uint64_t *ret_address, uint64_t *ret_size);

/* Position in the file of an address of executable code and how many bytes of code follow it there.
 * False: not code. */
bool unwind_image_find_file_offset_of_code(const struct unwind_image *image, uint64_t address,
					   uint64_t *ret_offset, uint64_t *ret_size);

struct unwind_table;

/* Parses and compiles; see unwind_compile_table_of_file_bytes() in unwind.h. */
int unwind_compile_table_of_image(struct unwind_image *image, struct unwind_table **ret,
				  size_t *ret_size);

#endif
