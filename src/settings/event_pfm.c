/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See event_pfm.h. Declarations are those of libpfm 4.13 as far as they are used; the library tells
 * versions apart by the `size` members (pfm_get_os_event_encoding(3), pfm_get_event_info(3)).
 */
#include "settings/event_pfm.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#include "common/array.h"

enum {
	PFM_OS_PERF_EVENT_EXT = 2,
	PFM_PLM0 = 1, /* kernel */
	PFM_PLM3 = 8, /* user */
	PFM_ERR_INVAL = -2,
	PFM_ERR_NOTFOUND = -4,
	PFM_ATTR_UMASK = 1,
	PFM_PMU_NUMBERS_MAX = 4096
};

struct pfm_pmu {
	const char *name, *description;
	size_t size;
	int pmu, type, event_count, first_event, max_encoding, counters, fixed_counters;
	unsigned present : 1, standard : 1, reserved : 30;
};

struct pfm_event {
	const char *name, *description, *equivalent;
	size_t size;
	uint64_t code;
	int pmu, type, index, attribute_count, reserved;
	unsigned flags;
};

struct pfm_attribute {
	const char *name, *description, *equivalent;
	size_t size;
	uint64_t code;
	int type, index, control;
	unsigned flags;
	uint64_t standard;
};

struct pfm_encoding {
	struct perf_event_attr *attributes;
	char **full_name;
	size_t size;
	int index, cpu, flags, padding;
};

static struct {
	bool tried, works;
	int (*initialize)(void);
	const char *(*strerror)(int code);
	int (*get_pmu_info)(int pmu, struct pfm_pmu *ret);
	int (*get_event_next)(int index);
	int (*get_event_info)(int index, int os, struct pfm_event *ret);
	int (*get_event_attr_info)(int event, int attribute, int os, struct pfm_attribute *ret);
	int (*get_os_event_encoding)(const char *name, int levels, int os, void *encoding);
} loaded_pfm_library;

bool event_pfm_is_available(void)
{
	const struct {
		const char *name;
		void *function; /* POSIX lets a pointer to data hold one to a function */
	} symbols[] = {
		{"pfm_initialize", &loaded_pfm_library.initialize},
		{"pfm_strerror", &loaded_pfm_library.strerror},
		{"pfm_get_pmu_info", &loaded_pfm_library.get_pmu_info},
		{"pfm_get_event_next", &loaded_pfm_library.get_event_next},
		{"pfm_get_event_info", &loaded_pfm_library.get_event_info},
		{"pfm_get_event_attr_info", &loaded_pfm_library.get_event_attr_info},
		{"pfm_get_os_event_encoding", &loaded_pfm_library.get_os_event_encoding},
	};
	void *library;

	if (loaded_pfm_library.tried)
		return loaded_pfm_library.works;
	loaded_pfm_library.tried = true;
	library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
	for (unsigned i = 0; library && i < ARRAY_SIZE(symbols); i++) {
		void *address = dlsym(library, symbols[i].name);

		if (!address)
			return false;
		memcpy(symbols[i].function, &address, sizeof(address));
	}
	loaded_pfm_library.works = library && !loaded_pfm_library.initialize();
	return loaded_pfm_library.works;
}

int event_pfm_find(const char *name, struct perf_event_code *ret, const char **ret_why)
{
	/* The library's struct may be the longer one. */
	union {
		struct perf_event_attr attributes;
		uint8_t room[512];
	} event;
	struct pfm_encoding encoding = {.attributes = &event.attributes, .size = sizeof(encoding)};
	int error;

	*ret = (struct perf_event_code){0};
	if (!event_pfm_is_available())
		return -ENOENT;
	memset(&event, 0, sizeof(event));
	event.attributes.size = sizeof(event.attributes);
	error = loaded_pfm_library.get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3,
							 PFM_OS_PERF_EVENT_EXT, &encoding);
	if (error) {
		*ret_why = loaded_pfm_library.strerror(error);
		return error == PFM_ERR_NOTFOUND ? -ENOENT : -EINVAL;
	}
	ret->type = event.attributes.type;
	ret->config = event.attributes.config;
	ret->config1 = event.attributes.config1;
	ret->config2 = event.attributes.config2;
	return 0;
}

static void event_pfm_visit_event_and_units(const struct pfm_pmu *pmu, int index,
					    void (*each)(const char *pmu, const char *event,
							 const char *unit, const char *description,
							 void *context),
					    void *context)
{
	struct pfm_event event = {.size = sizeof(event)};

	if (loaded_pfm_library.get_event_info(index, PFM_OS_PERF_EVENT_EXT, &event))
		return;
	each(pmu->name, event.name, NULL, event.description, context);
	for (int i = 0; i < event.attribute_count; i++) {
		struct pfm_attribute attribute = {.size = sizeof(attribute)};

		if (!loaded_pfm_library.get_event_attr_info(index, i, PFM_OS_PERF_EVENT_EXT,
							    &attribute) &&
		    attribute.type == PFM_ATTR_UMASK)
			each(pmu->name, event.name, attribute.name, attribute.description, context);
	}
}

void event_pfm_for_each_event_and_unit(void (*each)(const char *pmu, const char *event,
						    const char *unit, const char *description,
						    void *context),
				       void *context)
{
	if (!event_pfm_is_available())
		return;
	for (int number = 0; number < PFM_PMU_NUMBERS_MAX; number++) {
		struct pfm_pmu pmu = {.size = sizeof(pmu)};
		int error = loaded_pfm_library.get_pmu_info(number, &pmu);

		if (error == PFM_ERR_INVAL)
			return;
		if (error || !pmu.present)
			continue;
		for (int i = pmu.first_event; i >= 0; i = loaded_pfm_library.get_event_next(i))
			event_pfm_visit_event_and_units(&pmu, i, each, context);
	}
}
