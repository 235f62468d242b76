/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables of functions of AMD's runtimes: HSA, HIP, RCCL, rocDecode, rocJPEG. Their entries are
 * replaced by functions that tell of the call (api_wrappers.h) and make it.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_API_TABLES_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_API_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void api_function(void);

/* One list of functions: what goes into a table, and where what was there is kept. */
struct api_wrapper_set {
	api_function *const *wrappers;
	api_function **originals;
	size_t count;
};

extern const struct api_wrapper_set api_set_hsa_core, api_set_hsa_amd_ext, api_set_hsa_image_ext,
	api_set_hsa_finalize_ext, api_set_hip_runtime, api_set_hip_compiler, api_set_rccl,
	api_set_rocdecode, api_set_rocjpeg;

/* `name` and tables are as librocprofiler-register gets them. false: not a library whose functions
 * are told here. Again, for the same tables, replaces what the runtime has put there since. */
bool sdk_api_tables_wrap(const char *name, void **tables, uint64_t count);
/* Does HSA's table have our functions in it? */
bool sdk_is_hsa_table_wrapped(const void *hsa);

#endif
