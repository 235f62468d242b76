/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See catalogue.h.
 */
#include "counters/catalogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN_MAX 64u /* counters that refer to each other in a row */

struct link {
	struct catalogue *catalogue;
	struct counter *chain[CHAIN_MAX];
	uint32_t length;
	/* Mistakes of those that are linked on the way; NULL: only that of the first is of
	 * interest. */
	void (*told)(void *context, const struct counter *counter,
		     const struct expression_problem *problem);
	void *context;
};

static uint32_t catalogue_hash(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return (hash ^ hash >> 16) % CATALOGUE_BUCKETS;
}

void catalogue_free(struct catalogue *catalogue)
{
	memory_release(&catalogue->memory);
	free((void *)catalogue->counters);
	*catalogue = (struct catalogue){.count = 0};
}

struct counter *catalogue_find(const struct catalogue *catalogue, const char *name)
{
	struct counter *counter = catalogue->buckets[catalogue_hash(name)];

	while (counter != NULL && strcmp(counter->name, name) != 0)
		counter = counter->next;
	return counter;
}

static bool catalogue_grow(struct catalogue *catalogue)
{
	uint32_t capacity = catalogue->capacity != 0 ? catalogue->capacity * 2 : 256;
	struct counter **grown;

	if (catalogue->count < catalogue->capacity)
		return true;
	grown = realloc((void *)catalogue->counters, capacity * sizeof(struct counter *));
	if (grown == NULL)
		return false;
	catalogue->counters = grown;
	catalogue->capacity = capacity;
	return true;
}

struct counter *catalogue_add(struct catalogue *catalogue, const char *name)
{
	struct counter **bucket = &catalogue->buckets[catalogue_hash(name)];
	struct counter *counter;

	if (!catalogue_grow(catalogue))
		return NULL;
	counter = memory_take(&catalogue->memory, sizeof(*counter));
	if (counter == NULL)
		return NULL;
	counter->name = memory_text(&catalogue->memory, name, strlen(name));
	if (counter->name == NULL)
		return NULL;
	counter->description = counter->block = counter->event = counter->expression_text = "";
	counter->base = catalogue_find(catalogue, name);
	/* In front of what it hides. */
	counter->next = *bucket;
	*bucket = counter;
	counter->number = catalogue->count;
	catalogue->counters[catalogue->count++] = counter;
	return counter;
}

void catalogue_remove(struct catalogue *catalogue, struct counter *counter)
{
	struct counter **place = &catalogue->buckets[catalogue_hash(counter->name)];

	while (*place != NULL && *place != counter)
		place = &(*place)->next;
	if (*place != NULL)
		*place = counter->next;
	counter->state = COUNTER_ABSENT;
}

static const char *catalogue_copy(struct catalogue *catalogue, const char *text)
{
	return text != NULL ? memory_text(&catalogue->memory, text, strlen(text)) : "";
}

struct counter *catalogue_add_event(struct catalogue *catalogue, const struct counting_event *event)
{
	struct counter *counter;

	if (counting_event_values(event) == 0)
		return NULL;
	counter = catalogue_add(catalogue, event->name);
	if (counter == NULL)
		return NULL;
	counter->kind = COUNTER_EVENT;
	counter->description = catalogue_copy(catalogue, event->description);
	counter->block = catalogue_copy(catalogue, event->block);
	counter->event = catalogue_copy(catalogue, event->event);
	counter->has_rollups = event->has_rollups;
	counter->ways = event->ways;
	for (uint32_t i = 0; i < event->extents_count; i++)
		counter->shape.axes[counter->shape.count++] = (struct shape_axis){
			event->extents[i].dimension, event->extents[i].size, NULL};
	if (catalogue->memory.failed)
		counter->state = COUNTER_BROKEN;
	return counter;
}

/* ---- linking ---- */

static bool link_counter(struct link *link, struct counter *counter,
			 struct expression_problem *problem);

static bool link_cycle(const struct link *link, const struct counter *back, uint32_t offset,
		       struct expression_problem *problem)
{
	uint32_t i = 0;
	size_t length = 0;

	while (link->chain[i] != back)
		i++;
	length = (size_t)snprintf(problem->text, sizeof(problem->text), "it needs itself: ");
	for (; i < link->length && length < sizeof(problem->text); i++)
		length += (size_t)snprintf(problem->text + length, sizeof(problem->text) - length,
					   "%s -> ", link->chain[i]->name);
	if (length < sizeof(problem->text))
		snprintf(problem->text + length, sizeof(problem->text) - length, "%s", back->name);
	problem->offset = offset;
	return false;
}

/* What a name within the expression of `user` stands for. */
static struct counter *link_find(const struct link *link, const struct counter *user,
				 const char *name)
{
	struct counter *found = catalogue_find(link->catalogue, name);

	return found == user ? user->base : found;
}

static bool link_unknown(const struct link *link, const struct counter *user,
			 const struct expression *reference, struct expression_problem *problem)
{
	problem->offset = reference->offset;
	if (strcmp(user->name, reference->name) == 0) {
		snprintf(problem->text, sizeof(problem->text), "it needs itself: %s -> %s",
			 user->name, user->name);
		return false;
	}
	if (link->catalogue->may_exist != NULL && link->catalogue->may_exist(reference->name))
		return true;
	snprintf(problem->text, sizeof(problem->text), "there is no counter '%.100s'",
		 reference->name);
	return false;
}

static bool link_reference(struct link *link, struct counter *user, struct expression *reference,
			   struct expression_problem *problem)
{
	struct counter *found = link_find(link, user, reference->name);
	struct expression_problem inner;

	reference->reference = found;
	if (found == NULL)
		return link_unknown(link, user, reference, problem);
	if (found->state == COUNTER_BEING_LINKED)
		return link_cycle(link, found, reference->offset, problem);
	if (found->state == COUNTER_NEW && !link_counter(link, found, &inner) &&
	    found->state == COUNTER_BROKEN && link->told != NULL)
		link->told(link->context, found, &inner);
	if (found->state == COUNTER_ABSENT) {
		user->state = COUNTER_ABSENT;
		problem->offset = reference->offset;
		snprintf(problem->text, sizeof(problem->text),
			 "'%.100s' cannot be counted on this agent", reference->name);
		return false;
	}
	if (found->state == COUNTER_BROKEN) {
		problem->offset = reference->offset;
		snprintf(problem->text, sizeof(problem->text),
			 "'%.100s', which it needs, is broken", reference->name);
		return false;
	}
	return true;
}

/* The first mistake counts; what is absent is found out about all the same. */
static bool link_references(struct link *link, struct counter *user, struct expression *expression,
			    struct expression_problem *problem)
{
	if (expression == NULL)
		return true;
	if (expression->kind == EXPRESSION_NAME || expression->kind == EXPRESSION_ACCUMULATE)
		return link_reference(link, user, expression, problem);
	return link_references(link, user, expression->left, problem) &&
	       link_references(link, user, expression->right, problem);
}

static bool link_derived(struct link *link, struct counter *counter,
			 struct expression_problem *problem)
{
	struct memory *memory = &link->catalogue->memory;

	if (counter->expression == NULL)
		counter->expression = expression_parse(memory, counter->expression_text,
						       strlen(counter->expression_text), problem);
	return counter->expression != NULL &&
	       link_references(link, counter, counter->expression, problem);
}

static bool link_counter(struct link *link, struct counter *counter,
			 struct expression_problem *problem)
{
	bool linked;

	problem->offset = 0;
	if (link->length == CHAIN_MAX) {
		snprintf(problem->text, sizeof(problem->text),
			 "more than %u counters refer to each other in a row", CHAIN_MAX);
		counter->state = COUNTER_BROKEN;
		return false;
	}
	link->chain[link->length++] = counter;
	counter->state = COUNTER_BEING_LINKED;
	linked = counter->kind != COUNTER_DERIVED || link_derived(link, counter, problem);
	if (linked && !link->catalogue->is_check) {
		counter->program = program_make(&link->catalogue->memory, counter, problem);
		linked = counter->program != NULL;
		if (linked)
			counter->shape = counter->program->shape;
	}
	if (linked)
		counter->state = COUNTER_USABLE;
	else if (counter->state == COUNTER_BEING_LINKED)
		counter->state = COUNTER_BROKEN;
	link->length--;
	return linked;
}

void catalogue_link(struct catalogue *catalogue,
		    void (*told)(void *context, const struct counter *counter,
				 const struct expression_problem *problem),
		    void *context)
{
	struct link link = {.catalogue = catalogue, .told = told, .context = context};
	struct expression_problem problem;

	for (uint32_t i = 0; i < catalogue->count; i++) {
		struct counter *counter = catalogue->counters[i];

		if (counter->state == COUNTER_NEW && !link_counter(&link, counter, &problem) &&
		    counter->state == COUNTER_BROKEN)
			told(context, counter, &problem);
	}
}

bool catalogue_link_one(struct catalogue *catalogue, struct counter *counter,
			struct expression_problem *problem)
{
	struct link link = {.catalogue = catalogue};

	return link_counter(&link, counter, problem);
}
