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
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/counters/counters.h"

/* Loading a library of a vendor may start tools, on this thread. */
static pthread_mutex_t counters_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct sdk_agent_kind_with_counters *agent_kinds_with_counters;
static struct sdk_counter *_Atomic published_counters_by_id[COUNTERS_MAX];
static uint32_t published_counter_count; /* ids that are given away */

static pthread_mutex_t problem_listener_mutex = PTHREAD_MUTEX_INITIALIZER;
static void (*problem_listener_function)(void *context, const char *text);
static void *problem_listener_context;
/* The library is loaded by dlopen() too, where there is hardly any room for variables of threads:
 * the text itself is on the heap. */
static pthread_key_t thread_problem_text_tls_key;
static pthread_once_t thread_problem_text_tls_key_once = PTHREAD_ONCE_INIT;
static bool has_thread_problem_text_tls_key;

void sdk_counters_acquire_lock(void)
{
	pthread_mutex_lock(&counters_mutex);
}

void sdk_counters_release_lock(void)
{
	pthread_mutex_unlock(&counters_mutex);
}

/* The thread that holds it has another number in the child of a fork, and could not give it back.
 */
void sdk_counters_reset_lock_in_child(void)
{
	counters_mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

/* ---- what there is to say ---- */

void sdk_counters_report_problem_line(const char *format, ...)
{
	char line[COUNTING_PROBLEM_TEXT_BYTES * 2];
	void (*told)(void *context, const char *text);
	void *context;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	pthread_mutex_lock(&problem_listener_mutex);
	told = problem_listener_function;
	context = problem_listener_context;
	pthread_mutex_unlock(&problem_listener_mutex);
	if (told)
		told(context, line);
	else
		sdk_print_log_line(SDK_LOG_ERROR, "%s", line);
}

SDK_EXPORT void kymo_counting_problem(void (*told)(void *context, const char *text), void *context)
{
	pthread_mutex_lock(&problem_listener_mutex);
	problem_listener_function = told;
	problem_listener_context = context;
	pthread_mutex_unlock(&problem_listener_mutex);
}

static void create_thread_problem_text_tls_key(void)
{
	has_thread_problem_text_tls_key =
		pthread_key_create(&thread_problem_text_tls_key, free) == 0;
}

void sdk_counters_set_thread_problem_text(const char *text)
{
	char *kept;

	pthread_once(&thread_problem_text_tls_key_once, create_thread_problem_text_tls_key);
	kept = has_thread_problem_text_tls_key ? pthread_getspecific(thread_problem_text_tls_key)
					       : NULL;
	if (!kept && text && *text && has_thread_problem_text_tls_key) {
		kept = malloc(COUNTING_PROBLEM_TEXT_BYTES);
		if (kept && pthread_setspecific(thread_problem_text_tls_key, kept)) {
			free(kept);
			kept = NULL;
		}
	}
	if (kept)
		snprintf(kept, COUNTING_PROBLEM_TEXT_BYTES, "%s", text ? text : "");
}

SDK_EXPORT const char *kymo_counter_config_problem(void)
{
	const char *kept;

	pthread_once(&thread_problem_text_tls_key_once, create_thread_problem_text_tls_key);
	kept = has_thread_problem_text_tls_key ? pthread_getspecific(thread_problem_text_tls_key)
					       : NULL;
	return kept ? kept : "";
}

/* ---- a kind's catalogue ---- */

struct sdk_counter *sdk_counter_assign_id(struct sdk_agent_kind_with_counters *kind,
					  struct counter *counter)
{
	struct sdk_counter *published;

	if (published_counter_count == COUNTERS_MAX - 1)
		return NULL;
	published = calloc(1, sizeof(*published));
	if (!published)
		return NULL;
	published->id = ++published_counter_count;
	published->counter = counter;
	published->kind = kind;
	counter->user = published;
	atomic_store_explicit(&published_counters_by_id[published->id], published,
			      memory_order_release);
	return published;
}

struct sdk_counter *sdk_counter_find_by_id(uint64_t id)
{
	return id < COUNTERS_MAX
		       ? atomic_load_explicit(&published_counters_by_id[id], memory_order_acquire)
		       : NULL;
}

/* Positions have room in a record's id, and the extents stand in order. */
bool sdk_counter_event_is_valid(const struct counting_event_info *event)
{
	static const uint32_t sizes[COUNTING_DIMENSION_COUNT] = {
		[COUNTING_DIMENSION_XCC] = COUNTING_XCC_EXTENT_MAX,
		[COUNTING_DIMENSION_AID] = COUNTING_AID_EXTENT_MAX,
		[COUNTING_DIMENSION_SHADER_ENGINE] = COUNTING_SHADER_ENGINE_EXTENT_MAX,
		[COUNTING_DIMENSION_AGENT] = COUNTING_AGENT_EXTENT_MAX,
		[COUNTING_DIMENSION_SHADER_ARRAY] = COUNTING_SHADER_ARRAY_EXTENT_MAX,
		[COUNTING_DIMENSION_WGP] = COUNTING_WGP_EXTENT_MAX,
		[COUNTING_DIMENSION_INSTANCE] = COUNTING_INSTANCE_EXTENT_MAX,
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
	return counting_get_event_value_count(event) != 0;
}

static bool add_event_to_agent_kind(void *context, const struct counting_event_info *event)
{
	struct sdk_agent_kind_with_counters *kind = context;

	if (!sdk_counter_event_is_valid(event))
		return true;
	return catalogue_add_event(&kind->catalogue, event) != NULL;
}

static void report_counter_linking_problem(void *context, const struct counter *counter,
					   const struct expression_problem *problem)
{
	(void)context;
	sdk_counter_report_problem(counter, problem);
}

/* Everything that may be used gets its id; properties first, as upstream has it. What a definition
 * of the same name hides stays without. */
static void assign_ids_to_agent_kind_counters(struct sdk_agent_kind_with_counters *kind)
{
	struct counter_catalogue *catalogue = &kind->catalogue;
	bool all = true;

	catalogue_link_all_counters(catalogue, report_counter_linking_problem, kind);
	for (uint32_t i = 0; i < catalogue->count && all; i++) {
		struct counter *counter = catalogue->counters[i];

		if (counter->state == COUNTER_LINKED &&
		    catalogue_find(catalogue, counter->name) == counter)
			all = sdk_counter_assign_id(kind, counter) != NULL;
	}
	if (!all)
		sdk_counters_report_problem_line(
			"there are more counters than ids: some of %s are missing",
			kind->agent->name);
}

static rocprofiler_status_t listing_failure_to_rocprofiler_status(enum counting_status status)
{
	if (status == COUNTING_NOT_READY)
		return ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
	if (status == COUNTING_NOT_PERMITTED)
		return ROCPROFILER_STATUS_ERROR_PERMISSION_DENIED;
	if (status == COUNTING_NO_MEMORY)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	return ROCPROFILER_STATUS_ERROR_AGENT_ARCH_NOT_SUPPORTED;
}

static struct sdk_agent_kind_with_counters *
create_agent_kind_with_counters(const rocprofiler_agent_v0_t *agent,
				const struct device_counting_backend *counting,
				rocprofiler_status_t *status)
{
	struct sdk_agent_kind_with_counters *kind = calloc(1, sizeof(*kind));
	enum counting_status answer;

	if (!kind) {
		*status = ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
		return NULL;
	}
	kind->agent = agent;
	kind->counting = counting;
	catalogue_add_properties(&kind->catalogue);
	answer = counting->events(agent->id.handle, add_event_to_agent_kind, kind);
	if (answer) {
		*status = listing_failure_to_rocprofiler_status(answer);
		catalogue_free(&kind->catalogue);
		free(kind);
		return NULL;
	}
	sdk_agent_kind_add_definitions(kind);
	sdk_agent_kind_add_requested_events(kind);
	assign_ids_to_agent_kind_counters(kind);
	kind->next = agent_kinds_with_counters;
	agent_kinds_with_counters = kind;
	return kind;
}

static bool does_agent_kind_fit_agent(const struct sdk_agent_kind_with_counters *kind,
				      const rocprofiler_agent_v0_t *agent,
				      const struct device_counting_backend *counting)
{
	const rocprofiler_agent_v0_t *first = kind->agent;

	return first == agent ||
	       (kind->counting == counting && first->type == agent->type &&
		first->cu_count == agent->cu_count && first->num_xcc == agent->num_xcc &&
		first->cpu_cores_count == agent->cpu_cores_count &&
		!strcmp(first->name, agent->name) &&
		!strcmp(first->product_name, agent->product_name));
}

struct sdk_agent_kind_with_counters *
sdk_agent_kind_find_or_create(const rocprofiler_agent_v0_t *agent, rocprofiler_status_t *status)
{
	const struct device_counting_backend *counting;
	struct sdk_agent_kind_with_counters *kind;

	*status = ROCPROFILER_STATUS_SUCCESS;
	for (kind = agent_kinds_with_counters; kind; kind = kind->next) {
		if (kind->agent == agent)
			return kind;
	}
	counting = counting_find_backend_of_agent(agent->id.handle);
	if (!counting) {
		*status = ROCPROFILER_STATUS_ERROR_AGENT_ARCH_NOT_SUPPORTED;
		return NULL;
	}
	for (kind = agent_kinds_with_counters; kind; kind = kind->next) {
		if (does_agent_kind_fit_agent(kind, agent, counting))
			return kind;
	}
	return create_agent_kind_with_counters(agent, counting, status);
}

/* ---- what agents have ---- */

SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_agent_supported_counters(
	rocprofiler_agent_id_t agent_id, rocprofiler_available_counters_cb_t cb, void *user_data)
{
	const rocprofiler_agent_v0_t *agent = sdk_agent_find_by_id(agent_id.handle);
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;
	rocprofiler_counter_id_t *ids = NULL;
	struct sdk_agent_kind_with_counters *kind;
	size_t count = 0;

	if (!cb)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!agent)
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	sdk_counters_acquire_lock();
	kind = sdk_agent_kind_find_or_create(agent, &status);
	if (kind)
		ids = malloc((kind->catalogue.count + 1) * sizeof(*ids));
	for (uint32_t i = 0; ids && i < kind->catalogue.count; i++) {
		const struct sdk_counter *counter = kind->catalogue.counters[i]->user;

		if (counter)
			ids[count++].handle = counter->id;
	}
	sdk_counters_release_lock();
	if (!kind)
		return status;
	if (!ids)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	status = cb(agent_id, ids, count, user_data);
	free(ids);
	return status;
}

/* ---- one more, of the tool's own ---- */

static bool is_valid_counter_name(const char *name)
{
	if (!name[0] || (name[0] >= '0' && name[0] <= '9') || !strcmp(name, "reduce") ||
	    !strcmp(name, "select") || !strcmp(name, "accumulate"))
		return false;
	return name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				 "0123456789_")] == '\0';
}

static rocprofiler_status_t
add_derived_counter_to_agent_kind(struct sdk_agent_kind_with_counters *kind, const char *name,
				  const char *expression, const char *description,
				  rocprofiler_counter_id_t *id)
{
	struct counter_catalogue *catalogue = &kind->catalogue;
	struct expression_problem problem;
	struct sdk_counter *published;
	struct counter *counter;
	char text[COUNTING_PROBLEM_TEXT_BYTES];

	if (catalogue_find(catalogue, name))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	counter = catalogue_add_blank_counter(catalogue, name);
	if (!counter)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	counter->kind = COUNTER_DERIVED;
	counter->expression_text =
		memory_pool_copy_text(&catalogue->memory, expression, strlen(expression));
	counter->description =
		memory_pool_copy_text(&catalogue->memory, description, strlen(description));
	if (!counter->expression_text || !counter->description) {
		catalogue_remove_unused_counter(catalogue, counter);
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	if (!catalogue_link_counter(catalogue, counter, &problem)) {
		snprintf(text, sizeof(text), "%s: character %u: %s", name, problem.offset + 1,
			 problem.text);
		sdk_counters_set_thread_problem_text(text);
		catalogue_remove_unused_counter(catalogue,
						counter); /* the name may be tried again */
		return ROCPROFILER_STATUS_ERROR_AST_GENERATION_FAILED;
	}
	published = sdk_counter_assign_id(kind, counter);
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
	struct sdk_agent_kind_with_counters *kind;

	sdk_counters_set_thread_problem_text(NULL);
	if (!name || !name_len || !expr || !expr_len || !counter_id ||
	    (!description && description_len))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	found = sdk_agent_find_by_id(agent.handle);
	if (!found)
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	own_name = strndup(name, name_len);
	own_expression = strndup(expr, expr_len);
	own_description = strndup(description ? description : "", description_len);
	if (!own_name || !own_expression || !own_description) {
		status = ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	} else if (!is_valid_counter_name(own_name)) {
		sdk_counters_set_thread_problem_text(
			"a counter's name is made of letters, digits and '_'");
		status = ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	} else {
		sdk_counters_acquire_lock();
		kind = sdk_agent_kind_find_or_create(found, &status);
		if (kind)
			status = add_derived_counter_to_agent_kind(kind, own_name, own_expression,
								   own_description, counter_id);
		sdk_counters_release_lock();
	}
	free(own_name);
	free(own_expression);
	free(own_description);
	return status;
}
