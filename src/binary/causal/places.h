/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points named on the command line, and where they are in a module.
 *
 *   PLACE                  a visit is progress
 *   latency:PLACE,PLACE    from the first place to the second one, as one latency
 *
 * A place is a function (its name in the file or readable, with or without arguments): visited when
 * it is called; or FILE:LINE: visited whenever the line is come to, once for each function that has
 * code of it (of the next line with code, where it has none). FILE may be the last parts of a path.
 * The name of a point is the text of its place; of the two of a latency the text behind "latency:".
 */
#ifndef KYMO_BINARY_CAUSAL_PLACES_H
#define KYMO_BINARY_CAUSAL_PLACES_H

#include "binary/causal/module.h"
#include "common/problem.h"
#include "kymo/causal.h"

struct causal_named_place {
	char name[CAUSAL_NAME_SIZE];
	enum causal_point_kind kind;
	char *function; /* or NULL: a line */
	char *file;
	uint32_t line;
};

struct causal_places {
	struct causal_named_place *list;
	size_t count;
};

/* Adds what one option says. `source` is for messages ("--progress"). -EINVAL, -ENOMEM. */
int causal_named_places_add_from_text(struct causal_places *places, const char *text,
				      const char *source, struct problem *problem);
void causal_named_places_deinit(struct causal_places *places);

struct causal_named_place_address {
	uint64_t offset; /* in the file */
	size_t place;    /* index */
	bool is_function;
};

/* Finds the places in the module: up to `maximum` addresses. Returns how many there are,
 * or a negative errno. */
int causal_named_places_find_addresses(const struct causal_places *places,
				       struct causal_module *module,
				       struct causal_named_place_address *ret, size_t maximum);

#endif
