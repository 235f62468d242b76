/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The counters of one kind of agent, by name: what its backend counts, the agent's own properties,
 * and what is derived of them. What cannot be used (a mistake in its definition, or in that of one
 * it needs) stays in it, so that those who refer to it can be told.
 *
 * Not for several threads at once. What was added stays where it is.
 */
#ifndef KYMO_COUNTERS_CATALOGUE_H
#define KYMO_COUNTERS_CATALOGUE_H

#include "counters/expression.h"
#include "counters/program.h"

struct counter_definition;

enum counter_kind { COUNTER_EVENT, COUNTER_PROPERTY, COUNTER_DERIVED };

enum counter_state {
	COUNTER_NOT_YET_LINKED,
	COUNTER_BEING_LINKED,
	COUNTER_LINKED,
	COUNTER_NOT_ON_AGENT, /* this agent does not have it; that is no mistake */
	COUNTER_BROKEN        /* there is a mistake, which has been told */
};

struct counter {
	const char *name, *description, *block, *event, *expression_text;
	enum counter_kind kind;
	enum counter_state state;
	bool has_rollups;
	uint32_t ways;           /* COUNTING_BY_* */
	uint32_t property_index; /* which, of a COUNTER_PROPERTY */
	uint32_t number;         /* in the catalogue */
	struct value_shape shape;
	struct expression *expression;
	struct counter_program *program;
	struct counter *base;                        /* what a definition of the same name hides */
	struct counter *next;                        /* of the same hash */
	const struct counter_definition *definition; /* NULL: not from a file */
	void *user;
};

#define CATALOGUE_BUCKET_COUNT 1024u

struct counter_catalogue {
	struct memory_pool memory;
	struct counter **counters;
	uint32_t count, capacity;
	/* Shapes are not known: only names, cycles and the like are looked at. */
	bool is_for_checking_only;
	/* A name that is not in the catalogue may still be one of the agent's (NULL: never). */
	bool (*may_exist_on_agent)(const char *name);
	struct counter *hash_buckets[CATALOGUE_BUCKET_COUNT];
};

void catalogue_free(struct counter_catalogue *catalogue);
/* A counter of this name, with everything else to be filled in. What has the name already becomes
 * its base. NULL: no memory. The name is copied. */
struct counter *catalogue_add_blank_counter(struct counter_catalogue *catalogue, const char *name);
/* Takes one that nobody refers to out again; it stays in `counters`, and is ABSENT. */
void catalogue_remove_unused_counter(struct counter_catalogue *catalogue, struct counter *counter);
/* Adds an event as its backend describes it. NULL: no memory, or it has too many values. */
struct counter *catalogue_add_event(struct counter_catalogue *catalogue,
				    const struct counting_event_info *event);
struct counter *catalogue_find(const struct counter_catalogue *catalogue, const char *name);
/* Makes everything usable that can be. Each mistake is reported once. */
void catalogue_link_all_counters(struct counter_catalogue *catalogue,
				 void (*told)(void *context, const struct counter *counter,
					      const struct expression_problem *problem),
				 void *context);
/* One more; false: problem says why, and it is broken. */
bool catalogue_link_counter(struct counter_catalogue *catalogue, struct counter *counter,
			    struct expression_problem *problem);

#endif
