/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the parts of the symbolizer share: module.c (a request from start to end),
 * files.c (which files), symbols.c (looking up), build.c (results),
 * cache.c (results on disk), advice.c (what to install), jit.c.
 */
#ifndef KYMO_ANALYSIS_SYMBOLS_PRIVATE_H
#define KYMO_ANALYSIS_SYMBOLS_PRIVATE_H

#include "analysis/symbols/storage.h"
#include "analysis/symbols/symbols.h"
#include "binary/elf.h"

/* The files that speak about one module. */
struct symbolizer_files {
	struct elf_file *file;   /* NULL: not there, or another one than ran */
	struct elf_file *debug;  /* separate debug file, or NULL */
	struct elf_file *shared; /* dwz's common file, or NULL */
};

/* Where there is no file to use, ret->file is NULL and *ret_status says why. -ENOMEM. */
int symbolizer_files_open(const struct symbolizer_request *request, struct symbolizer_files *ret,
			  enum symbolizer_status_kind *ret_status);
void symbolizer_files_close(struct symbolizer_files *files);
/* The one that has debug information, or NULL. */
const struct elf_file *symbolizer_files_find_dwarf(const struct symbolizer_files *files);

/* Everything that the files know about `offsets` (ascending, without duplicates). -ENOMEM. */
int symbolize_offsets_from_files(const struct symbolizer_request *request,
				 const struct symbolizer_files *files, const uint64_t *offsets,
				 size_t count, struct symbolizer_request_result *ret);

/* The same for addresses in the kernel. */
int symbolize_kernel(const struct symbolizer_request *request,
		     struct symbolizer_request_result *ret);

/* A result in the making. All strings are in storage->pool, so equal ones are the same pointer. */
struct symbolizer_result_builder {
	struct symbolizer_request_result result;
	struct symbolizer_storage *storage; /* its pool is there */
	size_t frame_capacity;
	struct function_slot *functions; /* open addressing */
	size_t function_capacity;        /* power of two */
	struct name_slot *names;         /* readable names of symbols; open addressing */
	size_t name_count, name_capacity;
};

/* Leaves nothing to free on failure. */
int symbolizer_builder_init(struct symbolizer_result_builder *builder, size_t chain_count);
void symbolizer_builder_deinit(struct symbolizer_result_builder *builder);
/* Hands the result over to *ret; the builder is then empty. */
void symbolizer_builder_finish(struct symbolizer_result_builder *builder,
			       struct symbolizer_request_result *ret);

/* Appends a frame whose function_id is still to be set. */
int symbolizer_builder_append_frame(struct symbolizer_result_builder *builder,
				    const struct symbolizer_frame *frame);
/* The id of a function: same for the same name and line; `address` tells apart functions of which
 * only the name is known. `function` must be from the pool. */
int symbolizer_find_or_add_function_id(struct symbolizer_result_builder *builder,
				       const char *function, uint32_t line, uint64_t address,
				       uint32_t *ret);
/* Sets frame->function and frame->linkage_name from a symbol's name. */
int symbolizer_builder_set_frame_name(struct symbolizer_result_builder *builder, const char *symbol,
				      struct symbolizer_frame *frame);

/* Sets result->advice by result->status, NULL where there is nothing to say. -ENOMEM. */
int symbolizer_set_advice(const struct symbolizer_request *request,
			  struct symbolizer_request_result *result);

#endif
