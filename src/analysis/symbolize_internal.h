/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the parts of the symbolizer share: symbolize_module.c (a request from start to end),
 * symbolize_files.c (which files), symbolize.c (looking up), symbolize_build.c (results),
 * symbolize_cache.c (results on disk), symbolize_advice.c (what to install), symbolize_jit.c.
 */
#ifndef KYMO_ANALYSIS_SYMBOLIZE_INTERNAL_H
#define KYMO_ANALYSIS_SYMBOLIZE_INTERNAL_H

#include "analysis/symbolize.h"
#include "analysis/symbolize_storage.h"
#include "binary/elf.h"

/* The files that speak about one module. */
struct symbolize_files {
	struct elf_file *file;   /* NULL: not there, or another one than ran */
	struct elf_file *debug;  /* separate debug file, or NULL */
	struct elf_file *shared; /* dwz's common file, or NULL */
};

/* Where there is no file to use, ret->file is NULL and *ret_status says why. -ENOMEM. */
int symbolize_files_open(const struct symbolize_request *request, struct symbolize_files *ret,
			 enum symbolize_status *ret_status);
void symbolize_files_close(struct symbolize_files *files);
/* The one that has debug information, or NULL. */
const struct elf_file *symbolize_files_dwarf(const struct symbolize_files *files);

/* Everything that the files know about `offsets` (ascending, without duplicates). -ENOMEM. */
int symbolize_compute(const struct symbolize_request *request, const struct symbolize_files *files,
		      const uint64_t *offsets, size_t count, struct symbolize_result *ret);

/* A result in the making. All strings are in storage->pool, so equal ones are the same pointer. */
struct symbolize_builder {
	struct symbolize_result result;
	struct symbolize_storage *storage; /* its pool is there */
	size_t frame_capacity;
	struct function_slot *functions; /* open addressing */
	size_t function_capacity;        /* power of two */
	struct name_slot *names;         /* readable names of symbols; open addressing */
	size_t name_count, name_capacity;
};

/* Leaves nothing to free on failure. */
int symbolize_builder_init(struct symbolize_builder *builder, size_t chain_count);
void symbolize_builder_deinit(struct symbolize_builder *builder);
/* Hands the result over to *ret; the builder is then empty. */
void symbolize_builder_finish(struct symbolize_builder *builder, struct symbolize_result *ret);

/* Appends a frame whose function_id is still to be set. */
int symbolize_builder_frame(struct symbolize_builder *builder, const struct symbolize_frame *frame);
/* The id of a function: same for the same name and line; `address` tells apart functions of which
 * only the name is known. `function` must be from the pool. */
int symbolize_builder_function(struct symbolize_builder *builder, const char *function,
			       uint32_t line, uint64_t address, uint32_t *ret);
/* Sets frame->function and frame->linkage_name from a symbol's name. */
int symbolize_builder_name(struct symbolize_builder *builder, const char *symbol,
			   struct symbolize_frame *frame);

/* Sets result->advice by result->status, NULL where there is nothing to say. -ENOMEM. */
int symbolize_advise(const struct symbolize_request *request, struct symbolize_result *result);

#endif
