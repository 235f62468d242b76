/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which counters there are: a catalogue for each kind of agent, made when somebody first asks, of
 * what its backend counts, the agent's properties, and the definitions for its architecture.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters/properties.h"
#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/state.h"

/* Loading a library of a vendor may start tools, on this thread. */
static pthread_mutex_t counters_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct sdk_counter_kind *kinds;
static struct sdk_counter *_Atomic counters[COUNTERS_MAX];
static uint32_t counters_count; /* ids that are given away */

static pthread_mutex_t say_mutex = PTHREAD_MUTEX_INITIALIZER;
static void (*say_told)(void *context, const char *text);
static void *say_context;
/* The library is loaded by dlopen() too, where there is hardly any room for variables of threads:
 * the text itself is on the heap. */
static pthread_key_t problem_key;
static pthread_once_t problem_once = PTHREAD_ONCE_INIT;
static bool problem_has_key;

void sdk_counters_lock(void)
{
	pthread_mutex_lock(&counters_mutex);
}

void sdk_counters_unlock(void)
{
	pthread_mutex_unlock(&counters_mutex);
}

/* The thread that holds it has another number in the child of a fork, and could not give it back.
 */
void sdk_counters_unlock_in_child(void)
{
	counters_mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

/* ---- what there is to say ---- */

void sdk_counters_say(const char *format, ...)
{
	char line[COUNTING_PROBLEM_LENGTH * 2];
	void (*told)(void *context, const char *text);
	void *context;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	pthread_mutex_lock(&say_mutex);
	told = say_told;
	context = say_context;
	pthread_mutex_unlock(&say_mutex);
	if (told)
		told(context, line);
	else
		sdk_say(SDK_LOG_ERROR, "%s", line);
}

SDK_EXPORT void kymo_counting_problem(void (*told)(void *context, const char *text), void *context)
{
	pthread_mutex_lock(&say_mutex);
	say_told = told;
	say_context = context;
	pthread_mutex_unlock(&say_mutex);
}

static void make_problem_key(void)
{
	problem_has_key = pthread_key_create(&problem_key, free) == 0;
}

void sdk_counters_problem(const char *text)
{
	char *kept;

	pthread_once(&problem_once, make_problem_key);
	kept = problem_has_key ? pthread_getspecific(problem_key) : NULL;
	if (!kept && text && *text && problem_has_key) {
		kept = malloc(COUNTING_PROBLEM_LENGTH);
		if (kept && pthread_setspecific(problem_key, kept)) {
			free(kept);
			kept = NULL;
		}
	}
	if (kept)
		snprintf(kept, COUNTING_PROBLEM_LENGTH, "%s", text ? text : "");
}

SDK_EXPORT const char *kymo_counter_config_problem(void)
{
	const char *kept;

	pthread_once(&problem_once, make_problem_key);
	kept = problem_has_key ? pthread_getspecific(problem_key) : NULL;
	return kept ? kept : "";
}

/* ---- a kind's catalogue ---- */

struct sdk_counter *sdk_counter_publish(struct sdk_counter_kind *kind, struct counter *counter)
{
	struct sdk_counter *published;

	if (counters_count == COUNTERS_MAX - 1)
		return NULL;
	published = calloc(1, sizeof(*published));
	if (!published)
		return NULL;
	published->id = ++counters_count;
	published->counter = counter;
	published->kind = kind;
	counter->user = published;
	atomic_store_explicit(&counters[published->id], published, memory_order_release);
	return published;
}

struct sdk_counter *sdk_counter_find(uint64_t id)
{
	return id < COUNTERS_MAX ? atomic_load_explicit(&counters[id], memory_order_acquire) : NULL;
}

/* Positions have room in a record's id, and the extents stand in order. */
bool sdk_counter_event_is_sane(const struct counting_event *event)
{
	static const uint32_t sizes[COUNTING_DIMENSION_COUNT] = {
		[COUNTING_DIMENSION_XCC] = COUNTING_SIZE_MAX_XCC,
		[COUNTING_DIMENSION_AID] = COUNTING_SIZE_MAX_AID,
		[COUNTING_DIMENSION_SHADER_ENGINE] = COUNTING_SIZE_MAX_SHADER_ENGINE,
		[COUNTING_DIMENSION_AGENT] = COUNTING_SIZE_MAX_AGENT,
		[COUNTING_DIMENSION_SHADER_ARRAY] = COUNTING_SIZE_MAX_SHADER_ARRAY,
		[COUNTING_DIMENSION_WGP] = COUNTING_SIZE_MAX_WGP,
		[COUNTING_DIMENSION_INSTANCE] = COUNTING_SIZE_MAX_INSTANCE,
	};
	uint32_t before = COUNTING_DIMENSION_NONE;

	if (!event->name || !event->name[0] || event->extents_count > SHAPE_AXES_MAX)
		return false;
	for (uint32_t i = 0; i < event->extents_count; i++) {
		uint32_t dimension = event->extents[i].dimension;

		if (dimension <= before || dimension >= COUNTING_DIMENSION_COUNT ||
		    event->extents[i].size > sizes[dimension])
			return false;
		before = dimension;
	}
	return counting_event_values(event) != 0;
}

static bool kind_add_event(void *context, const struct counting_event *event)
{
	struct sdk_counter_kind *kind = context;

	if (!sdk_counter_event_is_sane(event))
		return true;
	return catalogue_add_event(&kind->catalogue, event) != NULL;
}

static void kind_tell(void *context, const struct counter *counter,
		      const struct expression_problem *problem)
{
	(void)context;
	sdk_counter_tell(counter, problem);
}

/* Everything that may be used gets its id; properties first, as upstream has it. What a definition
 * of the same name hides stays without. */
static void kind_publish(struct sdk_counter_kind *kind)
{
	struct catalogue *catalogue = &kind->catalogue;
	bool all = true;

	catalogue_link(catalogue, kind_tell, kind);
	for (uint32_t i = 0; i < catalogue->count && all; i++) {
		struct counter *counter = catalogue->counters[i];

		if (counter->state == COUNTER_USABLE &&
		    catalogue_find(catalogue, counter->name) == counter)
			all = sdk_counter_publish(kind, counter) != NULL;
	}
	if (!all)
		sdk_counters_say("there are more counters than ids: some of %s are missing",
				 kind->agent->name);
}

static rocprofiler_status_t kind_refused(enum counting_status status)
{
	if (status == COUNTING_NOT_READY)
		return ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
	if (status == COUNTING_NOT_PERMITTED)
		return ROCPROFILER_STATUS_ERROR_PERMISSION_DENIED;
	if (status == COUNTING_NO_MEMORY)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	return ROCPROFILER_STATUS_ERROR_AGENT_ARCH_NOT_SUPPORTED;
}

static struct sdk_counter_kind *kind_make(const rocprofiler_agent_v0_t *agent,
					  const struct device_counting *counting,
					  rocprofiler_status_t *status)
{
	struct sdk_counter_kind *kind = calloc(1, sizeof(*kind));
	enum counting_status answer;

	if (!kind) {
		*status = ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
		return NULL;
	}
	kind->agent = agent;
	kind->counting = counting;
	counter_properties_add(&kind->catalogue);
	answer = counting->events(agent->id.handle, kind_add_event, kind);
	if (answer) {
		*status = kind_refused(answer);
		catalogue_free(&kind->catalogue);
		free(kind);
		return NULL;
	}
	sdk_counter_definitions(kind);
	kind_publish(kind);
	kind->next = kinds;
	kinds = kind;
	return kind;
}

static bool kind_is_of(const struct sdk_counter_kind *kind, const rocprofiler_agent_v0_t *agent,
		       const struct device_counting *counting)
{
	const rocprofiler_agent_v0_t *first = kind->agent;

	return first == agent ||
	       (kind->counting == counting && first->type == agent->type &&
		first->cu_count == agent->cu_count && first->num_xcc == agent->num_xcc &&
		first->cpu_cores_count == agent->cpu_cores_count &&
		!strcmp(first->name, agent->name) &&
		!strcmp(first->product_name, agent->product_name));
}

struct sdk_counter_kind *sdk_counter_kind(const rocprofiler_agent_v0_t *agent,
					  rocprofiler_status_t *status)
{
	const struct device_counting *counting;
	struct sdk_counter_kind *kind;

	*status = ROCPROFILER_STATUS_SUCCESS;
	for (kind = kinds; kind; kind = kind->next) {
		if (kind->agent == agent)
			return kind;
	}
	counting = device_counting_of(agent->id.handle);
	if (!counting) {
		*status = ROCPROFILER_STATUS_ERROR_AGENT_ARCH_NOT_SUPPORTED;
		return NULL;
	}
	for (kind = kinds; kind; kind = kind->next) {
		if (kind_is_of(kind, agent, counting))
			return kind;
	}
	return kind_make(agent, counting, status);
}

/* ---- what agents have ---- */

SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_agent_supported_counters(
	rocprofiler_agent_id_t agent_id, rocprofiler_available_counters_cb_t cb, void *user_data)
{
	const rocprofiler_agent_v0_t *agent = sdk_agent_find(agent_id.handle);
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;
	rocprofiler_counter_id_t *ids = NULL;
	struct sdk_counter_kind *kind;
	size_t count = 0;

	if (!cb)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!agent)
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	sdk_counters_lock();
	kind = sdk_counter_kind(agent, &status);
	if (kind)
		ids = malloc((kind->catalogue.count + 1) * sizeof(*ids));
	for (uint32_t i = 0; ids && i < kind->catalogue.count; i++) {
		const struct sdk_counter *counter = kind->catalogue.counters[i]->user;

		if (counter)
			ids[count++].handle = counter->id;
	}
	sdk_counters_unlock();
	if (!kind)
		return status;
	if (!ids)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	status = cb(agent_id, ids, count, user_data);
	free(ids);
	return status;
}

/* ---- one more, of the tool's own ---- */

static bool name_is_good(const char *name)
{
	if (!name[0] || (name[0] >= '0' && name[0] <= '9') || !strcmp(name, "reduce") ||
	    !strcmp(name, "select") || !strcmp(name, "accumulate"))
		return false;
	return name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				 "0123456789_")] == '\0';
}

static rocprofiler_status_t create_in(struct sdk_counter_kind *kind, const char *name,
				      const char *expression, const char *description,
				      rocprofiler_counter_id_t *id)
{
	struct catalogue *catalogue = &kind->catalogue;
	struct expression_problem problem;
	struct sdk_counter *published;
	struct counter *counter;
	char text[COUNTING_PROBLEM_LENGTH];

	if (catalogue_find(catalogue, name))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	counter = catalogue_add(catalogue, name);
	if (!counter)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	counter->kind = COUNTER_DERIVED;
	counter->expression_text = memory_text(&catalogue->memory, expression, strlen(expression));
	counter->description = memory_text(&catalogue->memory, description, strlen(description));
	if (!counter->expression_text || !counter->description) {
		catalogue_remove(catalogue, counter);
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	if (!catalogue_link_one(catalogue, counter, &problem)) {
		snprintf(text, sizeof(text), "%s: character %u: %s", name, problem.offset + 1,
			 problem.text);
		sdk_counters_problem(text);
		catalogue_remove(catalogue, counter); /* the name may be tried again */
		return ROCPROFILER_STATUS_ERROR_AST_GENERATION_FAILED;
	}
	published = sdk_counter_publish(kind, counter);
	if (!published)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	id->handle = published->id;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_create_counter(const char *name, size_t name_len,
							   const char *expr, size_t expr_len,
							   const char *description,
							   size_t description_len,
							   rocprofiler_agent_id_t agent,
							   rocprofiler_counter_id_t *counter_id)
{
	const rocprofiler_agent_v0_t *found;
	char *own_name, *own_expression, *own_description;
	rocprofiler_status_t status;
	struct sdk_counter_kind *kind;

	sdk_counters_problem(NULL);
	if (!name || !name_len || !expr || !expr_len || !counter_id ||
	    (!description && description_len))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	found = sdk_agent_find(agent.handle);
	if (!found)
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	own_name = strndup(name, name_len);
	own_expression = strndup(expr, expr_len);
	own_description = strndup(description ? description : "", description_len);
	if (!own_name || !own_expression || !own_description) {
		status = ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	} else if (!name_is_good(own_name)) {
		sdk_counters_problem("a counter's name is made of letters, digits and '_'");
		status = ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	} else {
		sdk_counters_lock();
		kind = sdk_counter_kind(found, &status);
		if (kind)
			status = create_in(kind, own_name, own_expression, own_description,
					   counter_id);
		sdk_counters_unlock();
	}
	free(own_name);
	free(own_expression);
	free(own_description);
	return status;
}
