/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See fake_runtime.h. Ids count from 1 in the order of the first use of (category, name).
 */
#include "fake_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libkymo/api.h"

#define EXPORTED __attribute__((visibility("default")))

fake_runtime_take_function fake_runtime_take;
fake_runtime_active_function fake_runtime_active;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[1 << 16], taken[1 << 16];
static size_t length;
static char names[512][128];
static int active = 1;

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	pthread_mutex_lock(&lock);
	length += (size_t)vsnprintf(text + length, sizeof(text) - length, format, arguments);
	if (length >= sizeof(text))
		length = sizeof(text) - 1;
	pthread_mutex_unlock(&lock);
	va_end(arguments);
}

EXPORTED const char *fake_runtime_take(void)
{
	pthread_mutex_lock(&lock);
	memcpy(taken, text, length);
	taken[length] = 0;
	length = 0;
	pthread_mutex_unlock(&lock);
	return taken;
}

EXPORTED void fake_runtime_active(int now)
{
	active = now;
}

static region_id intern(const char *category, const char *name)
{
	char whole[128];
	region_id id = 0;

	snprintf(whole, sizeof(whole), "%s/%s", category, name);
	pthread_mutex_lock(&lock);
	while (names[id][0] && strcmp(names[id], whole))
		id++;
	strcpy(names[id], whole);
	pthread_mutex_unlock(&lock);
	return id + 1;
}

static region_id named(enum region_category category, const char *name)
{
	static const char *const categories[] = {[REGION_INSTRUMENTED] = "host",
						 [REGION_USER] = "user",
						 [REGION_OMPT] = "ompt",
						 [REGION_KOKKOS] = "kokkos"};

	return intern(categories[category], name);
}

static region_id function(enum region_category category, uint64_t address)
{
	char name[32];

	snprintf(name, sizeof(name), "%#llx", (unsigned long long)address);
	return named(category, name);
}

static void begin(region_id region)
{
	tell("begin %s\n", names[region - 1]);
}

static bool end(region_id region)
{
	tell("end %s\n", names[region - 1]);
	return true;
}

static int begin_name(const char *category, const char *name)
{
	begin(intern(category ? category : "user", name));
	return 0;
}

static int end_name(const char *category, const char *name)
{
	end(intern(category ? category : "user", name));
	return strcmp(name, "not open") ? 0 : -2;
}

static void tell_value(const struct region_value *value)
{
	double real;

	memcpy(&real, &value->number, sizeof(real));
	switch (value->type) {
	case SPOOL_VALUE_SIGNED:
		tell("  %s = %lld\n", value->name, (long long)value->number);
		break;
	case SPOOL_VALUE_UNSIGNED:
		tell("  %s = %llu\n", value->name, (unsigned long long)value->number);
		break;
	case SPOOL_VALUE_ADDRESS:
		tell("  %s = @%llx\n", value->name, (unsigned long long)value->number);
		break;
	case SPOOL_VALUE_REAL:
		tell("  %s = %.3f\n", value->name, real);
		break;
	case SPOOL_VALUE_TEXT:
		tell("  %s = '%s'\n", value->name, value->text);
		break;
	}
}

static void values(const struct region_value *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		tell_value(&list[i]);
}

static void mark(region_id region)
{
	tell("mark %s\n", names[region - 1]);
}

static void counter(region_id region, uint64_t bits)
{
	double real;

	memcpy(&real, &bits, sizeof(real));
	tell("counter %s %.3f\n", names[region - 1], real);
}

static void progress_name(const char *name, enum spool_progress kind)
{
	tell("progress user/%s %d\n", name, (int)kind);
}

static void whole(region_id region, uint64_t begin_ticks, uint64_t end_ticks)
{
	tell("whole %s for %d\n", names[region - 1], (int)(end_ticks - begin_ticks));
}

static uint64_t ticks(void)
{
	static _Atomic uint64_t now;

	return ++now;
}

static bool recording(enum region_category category)
{
	(void)category;
	return true;
}

#define CONTROL(name)                                                                              \
	static int name(void)                                                                      \
	{                                                                                          \
		tell(#name "\n");                                                                  \
		return 0;                                                                          \
	}
CONTROL(trace_start)
CONTROL(trace_stop)
CONTROL(thread_trace_start)
CONTROL(thread_trace_stop)
CONTROL(flush)

static bool is_active(void)
{
	return active;
}

static const struct wrapper_options *options(void)
{
	return NULL;
}

EXPORTED const struct runtime_api *kymo_runtime_api(void)
{
	static const struct runtime_api table = {
		.size = sizeof(table),
		.region_find_or_add_name = named,
		.region_find_or_add_name_in = intern,
		.region_find_or_add_function = function,
		.region_begin = begin,
		.region_end = end,
		.region_begin_by_name = begin_name,
		.region_end_by_name = end_name,
		.region_values = values,
		.region_write_mark = mark,
		.region_write_counter = counter,
		.region_category_is_recorded = recording,
		.trace_start = trace_start,
		.trace_stop = trace_stop,
		.thread_trace_start = thread_trace_start,
		.thread_trace_stop = thread_trace_stop,
		.flush = flush,
		.active = is_active,
		.get_wrapper_options = options,
		.region_write_whole_call = whole,
		.ticks = ticks,
		.region_write_progress_by_name = progress_name,
	};

	return &table;
}

/* A real libkymo calls functions that are instrumented while it starts. */
__attribute__((constructor)) static void start(void)
{
	union {
		void *symbol;
		uint32_t (*define)(const char *category, const char *name);
	} entry = {.symbol = dlsym(RTLD_DEFAULT, "kymo_dl_region_define")};

	tell("opened\n");
	if (entry.symbol)
		tell("from inside: %u\n", entry.define(NULL, "inside"));
}
