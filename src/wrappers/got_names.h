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

#include "wrappers/got.h"
#include "wrappers/got_object.h"

struct got_hook {
	struct got_wrapper *wrapper;
	struct got_hook *next; /* added later */
	bool active;           /* the definition lies in the library that it wants */
};

struct got_name {
	const char *symbol;
	uint32_t hash;
	struct got_hook *hooks;
	/* The definition; address NULL: none is loaded. */
	void *address;
	uint64_t base, dynamic; /* of its object */
	const char *version;
	bool several; /* another object that is not loaded for ever defines it as well */
	bool start;   /* defined by an object that was loaded at the start */
	void *target; /* what callers are led to; NULL: left alone */
};

struct got_names {
	struct got_name *name; /* dense */
	uint32_t *slot;        /* hash table of indices + 1 */
	uint32_t count, capacity, slot_mask;
	uint32_t hooks; /* of all names */
};

/* Memory that is never given back; NULL when the kernel has none. */
void *got_allocate(size_t size);

/* 0 or negative errno */
int got_names_add(struct got_names *names, struct got_wrapper *wrapper);
struct got_name *got_names_find(const struct got_names *names, const char *symbol);

/* Notes what `object` defines. True if callers are led elsewhere from now on. */
bool got_names_define(struct got_names *names, const struct got_object *object, bool start);
/* Does `object` define any of them? */
bool got_names_any_in(const struct got_names *names, const struct got_object *object);
/* The object is gone. True if a definition went with it. */
bool got_names_forget(struct got_names *names, uint64_t base, uint64_t dynamic);

/* Is `value` the function of this name, or one of its wrappers? */
bool got_name_is(const struct got_name *name, const void *value);

#endif
