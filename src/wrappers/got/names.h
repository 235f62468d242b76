/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The names of wrapped functions: where each is defined, and what its callers are led to.
 *
 * The definition is the first one in the loader's list of objects, which for what is loaded at the
 * start is the order of symbol look-up. Several wrappers of one name form a chain: the original of
 * each is the one added before it.
 *
 * Nothing here is synchronised; got.c holds its lock.
 */
#ifndef KYMO_WRAPPERS_GOT_NAMES_H
#define KYMO_WRAPPERS_GOT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wrappers/got/got.h"
#include "wrappers/got/object.h"

struct got_chained_wrapper {
	struct got_wrapper *wrapper;
	struct got_chained_wrapper *next; /* added later */
	bool is_in_wanted_library;        /* the definition lies in the library that it wants */
};

struct got_wrapped_name {
	const char *symbol;
	uint32_t hash;
	struct got_chained_wrapper *wrapper_chain;
	/* The definition; address NULL: none is loaded. */
	void *address;
	uint64_t base, dynamic_section_address; /* of its object */
	const char *version;
	bool has_other_definition; /* another object that is not loaded for ever defines it as well
				    */
	bool start;                /* defined by an object that was loaded at the start */
	bool is_in_libc;           /* the definition is libc's or the loader's own */
	/* The definition stands before another one, libc's for instance, which it calls. */
	bool is_interposer;
	void *target;                /* what callers are led to; NULL: left alone */
	bool is_wrapped_within_libc; /* libc's own calls as well */
};

struct got_name_table {
	struct got_wrapped_name *name; /* dense */
	uint32_t *slot;                /* hash table of indices + 1 */
	uint32_t count, capacity, slot_mask;
	uint32_t wrapper_count; /* of all names */
};

/* Memory that is never given back; NULL when the kernel has none. */
void *got_allocate_permanent(size_t size);

/* 0 or negative errno */
int got_names_add_wrapper(struct got_name_table *names, struct got_wrapper *wrapper);
struct got_wrapped_name *got_names_find(const struct got_name_table *names, const char *symbol);

/* Notes what `object` defines. True if callers are led elsewhere from now on. */
bool got_names_update_definitions(struct got_name_table *names, const struct got_object *object,
				  bool start);
/* Does `object` define any of them? */
bool got_names_any_defined_in(const struct got_name_table *names, const struct got_object *object);
/* The object is gone. True if a definition went with it. */
bool got_names_forget_gone_object(struct got_name_table *names, uint64_t base, uint64_t dynamic);

/* Is `value` the function of this name, or one of its wrappers? */
bool got_function_is_of_name_or_wrapper(const struct got_wrapped_name *name, const void *value);

#endif
