/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See catalogue.h.
 */
#include "counters/catalogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFERENCE_CHAIN_MAX 64u /* counters that refer to each other in a row */

struct counter_linker {
	struct counter_catalogue *catalogue;
	struct counter *reference_chain[REFERENCE_CHAIN_MAX];
	uint32_t length;
	/* Mistakes of those that are linked on the way; NULL: only that of the first is of
	 * interest. */
	void (*told)(void *context, const struct counter *counter,
		     const struct expression_problem *problem);
	void *context;
};

static uint32_t hash_name_to_bucket(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return (hash ^ hash >> 16) % CATALOGUE_BUCKET_COUNT;
}

void catalogue_free(struct counter_catalogue *catalogue)
{
	memory_pool_free_all(&catalogue->memory);
	free((void *)catalogue->counters);
	*catalogue = (struct counter_catalogue){.count = 0};
}

struct counter *catalogue_find(const struct counter_catalogue *catalogue, const char *name)
{
	struct counter *counter = catalogue->hash_buckets[hash_name_to_bucket(name)];

	while (counter != NULL && strcmp(counter->name, name) != 0)
		counter = counter->next;
	return counter;
}

static bool catalogue_reserve_one_more(struct counter_catalogue *catalogue)
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

struct counter *catalogue_add_blank_counter(struct counter_catalogue *catalogue, const char *name)
{
	struct counter **bucket = &catalogue->hash_buckets[hash_name_to_bucket(name)];
	struct counter *counter;

	if (!catalogue_reserve_one_more(catalogue))
		return NULL;
	counter = memory_pool_allocate(&catalogue->memory, sizeof(*counter));
	if (counter == NULL)
		return NULL;
	counter->name = memory_pool_copy_text(&catalogue->memory, name, strlen(name));
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

void catalogue_remove_unused_counter(struct counter_catalogue *catalogue, struct counter *counter)
{
	struct counter **place = &catalogue->hash_buckets[hash_name_to_bucket(counter->name)];

	while (*place != NULL && *place != counter)
		place = &(*place)->next;
	if (*place != NULL)
		*place = counter->next;
	counter->state = COUNTER_NOT_ON_AGENT;
}

static const char *copy_text_to_catalogue(struct counter_catalogue *catalogue, const char *text)
{
	return text != NULL ? memory_pool_copy_text(&catalogue->memory, text, strlen(text)) : "";
}

struct counter *catalogue_add_event(struct counter_catalogue *catalogue,
				    const struct counting_event_info *event)
{
	struct counter *counter;

	if (counting_get_event_value_count(event) == 0)
		return NULL;
	counter = catalogue_add_blank_counter(catalogue, event->name);
	if (counter == NULL)
		return NULL;
	counter->kind = COUNTER_EVENT;
	counter->description = copy_text_to_catalogue(catalogue, event->description);
	counter->block = copy_text_to_catalogue(catalogue, event->block);
	counter->event = copy_text_to_catalogue(catalogue, event->event);
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

static bool link_and_compile_counter(struct counter_linker *link, struct counter *counter,
				     struct expression_problem *problem);

static bool set_reference_cycle_problem(const struct counter_linker *link,
					const struct counter *back, uint32_t offset,
					struct expression_problem *problem)
{
	uint32_t i = 0;
	size_t length = 0;

	while (link->reference_chain[i] != back)
		i++;
	length = (size_t)snprintf(problem->text, sizeof(problem->text), "it depends on itself: ");
	for (; i < link->length && length < sizeof(problem->text); i++)
		length += (size_t)snprintf(problem->text + length, sizeof(problem->text) - length,
					   "%s -> ", link->reference_chain[i]->name);
	if (length < sizeof(problem->text))
		snprintf(problem->text + length, sizeof(problem->text) - length, "%s", back->name);
	problem->offset = offset;
	return false;
}

/* What a name within the expression of `user` stands for. */
static struct counter *find_referenced_counter(const struct counter_linker *link,
					       const struct counter *user, const char *name)
{
	struct counter *found = catalogue_find(link->catalogue, name);

	return found == user ? user->base : found;
}

static bool set_problem_unless_reference_may_exist(const struct counter_linker *link,
						   const struct counter *user,
						   const struct expression *reference,
						   struct expression_problem *problem)
{
	problem->offset = reference->offset;
	if (strcmp(user->name, reference->name) == 0) {
		snprintf(problem->text, sizeof(problem->text), "it depends on itself: %s -> %s",
			 user->name, user->name);
		return false;
	}
	if (link->catalogue->may_exist_on_agent != NULL &&
	    link->catalogue->may_exist_on_agent(reference->name))
		return true;
	snprintf(problem->text, sizeof(problem->text), "there is no counter '%.100s'",
		 reference->name);
	return false;
}

static bool link_reference(struct counter_linker *link, struct counter *user,
			   struct expression *reference, struct expression_problem *problem)
{
	struct counter *found = find_referenced_counter(link, user, reference->name);
	struct expression_problem inner;

	reference->referenced_counter = found;
	if (found == NULL)
		return set_problem_unless_reference_may_exist(link, user, reference, problem);
	if (found->state == COUNTER_BEING_LINKED)
		return set_reference_cycle_problem(link, found, reference->offset, problem);
	if (found->state == COUNTER_NOT_YET_LINKED &&
	    !link_and_compile_counter(link, found, &inner) && found->state == COUNTER_BROKEN &&
	    link->told != NULL)
		link->told(link->context, found, &inner);
	if (found->state == COUNTER_NOT_ON_AGENT) {
		user->state = COUNTER_NOT_ON_AGENT;
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
static bool link_references(struct counter_linker *link, struct counter *user,
			    struct expression *expression, struct expression_problem *problem)
{
	if (expression == NULL)
		return true;
	if (expression->kind == EXPRESSION_NAME || expression->kind == EXPRESSION_ACCUMULATE)
		return link_reference(link, user, expression, problem);
	return link_references(link, user, expression->left, problem) &&
	       link_references(link, user, expression->right, problem);
}

static bool link_derived_counter(struct counter_linker *link, struct counter *counter,
				 struct expression_problem *problem)
{
	struct memory_pool *memory = &link->catalogue->memory;

	if (counter->expression == NULL)
		counter->expression = expression_parse(memory, counter->expression_text,
						       strlen(counter->expression_text), problem);
	return counter->expression != NULL &&
	       link_references(link, counter, counter->expression, problem);
}

static bool link_and_compile_counter(struct counter_linker *link, struct counter *counter,
				     struct expression_problem *problem)
{
	bool linked;

	problem->offset = 0;
	if (link->length == REFERENCE_CHAIN_MAX) {
		snprintf(problem->text, sizeof(problem->text),
			 "more than %u counters refer to each other in a row", REFERENCE_CHAIN_MAX);
		counter->state = COUNTER_BROKEN;
		return false;
	}
	link->reference_chain[link->length++] = counter;
	counter->state = COUNTER_BEING_LINKED;
	linked = counter->kind != COUNTER_DERIVED || link_derived_counter(link, counter, problem);
	if (linked && !link->catalogue->is_for_checking_only) {
		counter->program =
			counter_program_compile(&link->catalogue->memory, counter, problem);
		linked = counter->program != NULL;
		if (linked)
			counter->shape = counter->program->shape;
	}
	if (linked)
		counter->state = COUNTER_LINKED;
	else if (counter->state == COUNTER_BEING_LINKED)
		counter->state = COUNTER_BROKEN;
	link->length--;
	return linked;
}

void catalogue_link_all_counters(struct counter_catalogue *catalogue,
				 void (*told)(void *context, const struct counter *counter,
					      const struct expression_problem *problem),
				 void *context)
{
	struct counter_linker link = {.catalogue = catalogue, .told = told, .context = context};
	struct expression_problem problem;

	for (uint32_t i = 0; i < catalogue->count; i++) {
		struct counter *counter = catalogue->counters[i];

		if (counter->state == COUNTER_NOT_YET_LINKED &&
		    !link_and_compile_counter(&link, counter, &problem) &&
		    counter->state == COUNTER_BROKEN)
			told(context, counter, &problem);
	}
}

bool catalogue_link_counter(struct counter_catalogue *catalogue, struct counter *counter,
			    struct expression_problem *problem)
{
	struct counter_linker link = {.catalogue = catalogue};

	return link_and_compile_counter(&link, counter, problem);
}
