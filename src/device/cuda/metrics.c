/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Metrics of a chip. CUPTI's host library knows those of every chip by its name, without a device.
 * A counter has rollups over its instances (.sum .avg .min .max) and is listed by its base name; of
 * a ratio its percentage is listed, of a throughput its percentage of the peak, under their full
 * names.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "device/cuda/counting.h"

#define CHIPS_MAX   16
#define DEVICES_MAX 64

struct cuda_chip {
	char name[32];
	void *host[PROFILER_TYPE_COUNT]; /* kept: strings are theirs */
	struct cuda_metric *metrics;     /* by event, ascending */
	size_t count;
	struct requested_metric_node *asked; /* other names that somebody asked for */
};

struct requested_metric_node {
	struct requested_metric_node *next;
	struct cuda_metric metric;
};

static struct cuda_chip *known_chips[CHIPS_MAX];
static const char *_Atomic chip_names_by_ordinal[DEVICES_MAX];
static pthread_mutex_t metrics_lock = PTHREAD_MUTEX_INITIALIZER;

/* Chips that are the only ones of their compute capability; others are known when the driver is
 * up. */
static const struct {
	uint16_t compute_capability;
	const char *chip_name;
} chips_by_capability[] = {
	{70, "GV100"}, {72, "GV11B"}, {80, "GA100"}, {87, "GA10B"}, {90, "GH100"}};

static const char *duplicate_text_or_empty(const char *text)
{
	const char *kept = text != NULL ? strdup(text) : "";

	return kept != NULL ? kept : "";
}

static const char *allocate_metric_name(const char *event, const char *suffix)
{
	char *name = NULL;

	if (asprintf(&name, "%s%s", event, suffix) < 0)
		return "";
	for (char *at = name; *at != '\0'; at++) {
		if (!isalnum((unsigned char)*at))
			*at = '_';
	}
	return name;
}

static const char *allocate_block_name(const char *unit)
{
	char *block = unit != NULL && unit[0] != '\0' ? strdup(unit) : NULL;

	for (char *at = block; at != NULL && *at != '\0'; at++)
		*at = (char)toupper((unsigned char)*at);
	return block != NULL ? block : "GPU";
}

static const char *metric_type_to_suffix(enum profiler_metric_type type)
{
	return type == PROFILER_METRIC_COUNTER ? ""
	       : type == PROFILER_METRIC_RATIO ? ".pct"
					       : ".avg.pct_of_peak_sustained_elapsed";
}

static void fill_listed_metric(const struct cuda_chip *chip, enum profiler_type of,
			       const char *base, enum profiler_metric_type type,
			       struct cuda_metric *metric)
{
	PROFILER_DECLARE_ARGS(properties, properties, type);
	char *event = NULL;

	properties.host = chip->host[of];
	properties.metric = base;
	if (profiler.ProfilerHostGetMetricProperties(&properties) != CUPTI_SUCCESS)
		properties.description = properties.unit = NULL;
	if (asprintf(&event, "%s%s", base, metric_type_to_suffix(type)) < 0)
		event = NULL;
	*metric = (struct cuda_metric){
		.event = {.name = allocate_metric_name(base, metric_type_to_suffix(type)),
			  .block = allocate_block_name(properties.unit),
			  .event = event != NULL ? event : "",
			  .description = duplicate_text_or_empty(properties.description),
			  .extents = {{COUNTING_DIMENSION_INSTANCE, 1}},
			  .extents_count = 1,
			  .has_rollups = type == PROFILER_METRIC_COUNTER,
			  .ways = of == PROFILER_OF_RANGES ? COUNTING_BY_DISPATCH
							   : COUNTING_BY_DEVICE},
		.is_ratio = type != PROFILER_METRIC_COUNTER,
	};
}

static int compare_metrics_by_event(const void *first, const void *second)
{
	const struct cuda_metric *left = first, *right = second;

	return strcmp(left->event.event, right->event.event);
}

static void free_metric_texts(const struct cuda_metric *metric)
{
	const char *texts[] = {metric->event.name, metric->event.block, metric->event.event,
			       metric->event.description};

	for (unsigned i = 0; i < 4; i++) {
		if (texts[i][0] != '\0' && strcmp(texts[i], "GPU") != 0)
			free((void *)(uintptr_t)texts[i]); // NOLINT: made by describe()
	}
}

/* The same metric of both profilers is one. */
static void merge_duplicate_metrics(struct cuda_chip *chip)
{
	size_t kept = 0;

	qsort(chip->metrics, chip->count, sizeof(*chip->metrics), compare_metrics_by_event);
	for (size_t i = 0; i < chip->count; i++) {
		if (kept != 0 &&
		    compare_metrics_by_event(&chip->metrics[kept - 1], &chip->metrics[i]) == 0) {
			chip->metrics[kept - 1].event.ways |= chip->metrics[i].event.ways;
			free_metric_texts(&chip->metrics[i]);
		} else {
			chip->metrics[kept++] = chip->metrics[i];
		}
	}
	chip->count = kept;
}

/* Counted by code that is put into the kernel, which ranges do not do: they would read 0. */
static bool metric_needs_patched_code(const char *metric)
{
	return strstr(metric, "_sass_") != NULL;
}

static bool append_chip_metrics_of_type(struct cuda_chip *chip, enum profiler_type of,
					enum profiler_metric_type type)
{
	PROFILER_DECLARE_ARGS(base_metrics, base, count);
	struct cuda_metric *grown;

	base.host = chip->host[of];
	base.type = (int)type;
	if (profiler.ProfilerHostGetBaseMetrics(&base) != CUPTI_SUCCESS)
		return true;
	grown = realloc(chip->metrics, (chip->count + base.count + 1) * sizeof(*grown));
	if (grown == NULL)
		return false;
	chip->metrics = grown;
	for (size_t i = 0; i < base.count; i++) {
		if (!metric_needs_patched_code(base.names[i]))
			fill_listed_metric(chip, of, base.names[i], type, &grown[chip->count++]);
	}
	return true;
}

static enum counting_status read_chip_metrics(struct cuda_chip *chip)
{
	struct counting_problem unused = {""};

	for (unsigned of = 0; of < PROFILER_TYPE_COUNT; of++) {
		PROFILER_DECLARE_ARGS(host_initialize, host, host);
		int result;

		host.type = (int)of;
		host.chip = chip->name;
		result = profiler.ProfilerHostInitialize(&host);
		if (result != CUPTI_SUCCESS && of == PROFILER_OF_RANGES)
			return cuda_profiler_result_to_status(result, "", &unused);
		if (result != CUPTI_SUCCESS)
			continue;
		chip->host[of] = host.host;
		for (unsigned type = 0; type < PROFILER_METRIC_TYPE_COUNT; type++) {
			if (!append_chip_metrics_of_type(chip, of, type))
				return COUNTING_NO_MEMORY;
		}
	}
	merge_duplicate_metrics(chip);
	return COUNTING_OK;
}

static struct cuda_chip *find_or_add_chip(const char *name, enum counting_status *status)
{
	unsigned place = 0;
	struct cuda_chip *chip;

	while (place < CHIPS_MAX && known_chips[place] != NULL) {
		if (strcmp(known_chips[place]->name, name) == 0)
			return known_chips[place];
		place++;
	}
	chip = place < CHIPS_MAX ? calloc(1, sizeof(*chip)) : NULL;
	*status = COUNTING_NO_MEMORY;
	if (chip == NULL)
		return NULL;
	snprintf(chip->name, sizeof(chip->name), "%s", name);
	*status = read_chip_metrics(chip);
	if (*status != COUNTING_OK) {
		free(chip->metrics);
		free(chip);
		return NULL;
	}
	known_chips[place] = chip;
	return chip;
}

struct cuda_chip *cuda_chip_find_or_add_by_name(const char *name, enum counting_status *status)
{
	struct cuda_chip *chip;

	*status = COUNTING_NOT_SUPPORTED;
	if (cuda_profiler_load_or_get_missing_text() != NULL)
		return NULL;
	*status = COUNTING_OK;
	pthread_mutex_lock(&metrics_lock);
	chip = find_or_add_chip(name, status);
	pthread_mutex_unlock(&metrics_lock);
	return chip;
}

/* Beginning is neither quick nor made for two at once, and without it the others crash. */
void cuda_profiler_initialize_once(void)
{
	static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;
	static bool has_begun;
	PROFILER_DECLARE_ARGS(head, start, none);

	pthread_mutex_lock(&beginning);
	if (!has_begun)
		has_begun = profiler.ProfilerInitialize(&start) == CUPTI_SUCCESS;
	pthread_mutex_unlock(&beginning);
}

static const char *read_chip_name(uint32_t ordinal)
{
	PROFILER_DECLARE_ARGS(chip_name, chip, name);

	cuda_profiler_initialize_once();
	chip.device = ordinal;
	return profiler.DeviceGetChipName(&chip) == CUPTI_SUCCESS && chip.name != NULL
		       ? strdup(chip.name)
		       : NULL;
}

struct cuda_chip *cuda_chip_find_or_add_by_agent(device_handle agent, enum counting_status *status)
{
	uint32_t ordinal = 0;
	const char *name;
	uint16_t capability = cuda_get_agent_compute_capability(agent);

	*status = COUNTING_NO_SUCH_EVENT;
	if (capability == 0)
		return NULL;
	*status = COUNTING_NOT_SUPPORTED;
	if (cuda_profiler_load_or_get_missing_text() != NULL)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(chips_by_capability); i++) {
		if (chips_by_capability[i].compute_capability == capability)
			return cuda_chip_find_or_add_by_name(chips_by_capability[i].chip_name,
							     status);
	}
	*status = COUNTING_NOT_READY;
	if (!cuda_get_agent_ordinal(agent, &ordinal) || ordinal >= DEVICES_MAX)
		return NULL;
	name = atomic_load(&chip_names_by_ordinal[ordinal]);
	if (name == NULL) {
		name = read_chip_name(ordinal);
		atomic_store(&chip_names_by_ordinal[ordinal], name);
	}
	return name != NULL ? cuda_chip_find_or_add_by_name(name, status) : NULL;
}

const char *cuda_chip_get_name(const struct cuda_chip *chip)
{
	return chip->name;
}

void cuda_chip_for_each_metric(const struct cuda_chip *chip,
			       bool (*each)(void *context, const struct counting_event_info *event),
			       void *context)
{
	for (size_t i = 0; i < chip->count; i++) {
		if (!each(context, &chip->metrics[i].event))
			return;
	}
}

static bool read_metric_properties(const struct cuda_chip *chip, enum profiler_type of,
				   const char *event, struct profiler_args_properties *properties)
{
	properties->host = chip->host[of];
	properties->metric = event;
	return chip->host[of] != NULL &&
	       profiler.ProfilerHostGetMetricProperties(properties) == CUPTI_SUCCESS;
}

/* Its value is a rate or a share, not a count: "...sum.per_second", "...pct". */
static bool metric_is_rate_or_share(const char *event, int type)
{
	return type != PROFILER_METRIC_COUNTER || strstr(event, ".per_") != NULL ||
	       strstr(event, ".pct") != NULL || strstr(event, ".peak") != NULL;
}

/* One of the 44 forms of a counter, or any other name that CUPTI knows. */
static enum counting_status ask_cupti_for_metric(struct cuda_chip *chip, const char *event,
						 struct cuda_metric *metric)
{
	PROFILER_DECLARE_ARGS(properties, properties, type);
	uint32_t ways = 0;

	if (read_metric_properties(chip, PROFILER_OF_SAMPLES, event, &properties))
		ways |= COUNTING_BY_DEVICE;
	if (read_metric_properties(chip, PROFILER_OF_RANGES, event, &properties))
		ways |= COUNTING_BY_DISPATCH;
	if (ways == 0)
		return COUNTING_NO_SUCH_EVENT;
	*metric = (struct cuda_metric){
		.event = {.name = "",
			  .block = allocate_block_name(properties.unit),
			  .event = duplicate_text_or_empty(event),
			  .description = duplicate_text_or_empty(properties.description),
			  .extents = {{COUNTING_DIMENSION_INSTANCE, 1}},
			  .extents_count = 1,
			  .ways = ways},
		.is_ratio = metric_is_rate_or_share(event, properties.type),
	};
	return COUNTING_OK;
}

static enum counting_status find_or_add_metric(struct cuda_chip *chip, const char *event,
					       struct cuda_metric *metric)
{
	struct cuda_metric key = {0};
	const struct cuda_metric *known;
	struct requested_metric_node *asked = chip->asked;
	enum counting_status status;

	key.event.event = event;
	known = bsearch(&key, chip->metrics, chip->count, sizeof(*chip->metrics),
			compare_metrics_by_event);
	if (known != NULL) {
		*metric = *known;
		return COUNTING_OK;
	}
	while (asked != NULL && strcmp(asked->metric.event.event, event) != 0)
		asked = asked->next;
	if (asked != NULL) {
		*metric = asked->metric;
		return COUNTING_OK;
	}
	if (metric_needs_patched_code(event))
		return COUNTING_NOT_SUPPORTED;
	if (strchr(event, '.') == NULL)
		return COUNTING_NO_SUCH_EVENT;
	status = ask_cupti_for_metric(chip, event, metric);
	if (status != COUNTING_OK)
		return status;
	asked = malloc(sizeof(*asked));
	if (asked == NULL)
		return COUNTING_NO_MEMORY;
	*asked = (struct requested_metric_node){chip->asked, *metric};
	chip->asked = asked;
	return COUNTING_OK;
}

/* The event alone says which one it is; the unit is for the reader. */
enum counting_status cuda_chip_find_metric(struct cuda_chip *chip, const char *event,
					   struct cuda_metric *metric)
{
	enum counting_status status;

	pthread_mutex_lock(&metrics_lock);
	status = find_or_add_metric(chip, event, metric);
	pthread_mutex_unlock(&metrics_lock);
	return status;
}
