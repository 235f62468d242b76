/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NVTX: the header that programs include looks for a library to call (NVTX_INJECTION64_PATH) at its
 * first use, and lets it replace its functions. This needs neither CUDA nor CUPTI. Markers of all
 * domains come as one; the name of a domain other than the default one stands before the message.
 * Layouts are those of nvToolsExt.h and nvtxTypes.h, version 3.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "device/device.h"

enum { NVTX_CALLBACKS_TABLE_ID = 1 };       /* NVTX_ETID_CALLBACKS */
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 }; /* NvtxCallbackModule */
enum nvtx_core_callback_slot {
	CORE_MARK_EX = 1,
	CORE_MARK_A,
	CORE_MARK_W,
	CORE_RANGE_START_EX,
	CORE_RANGE_START_A,
	CORE_RANGE_START_W,
	CORE_RANGE_END,
	CORE_RANGE_PUSH_EX,
	CORE_RANGE_PUSH_A,
	CORE_RANGE_PUSH_W,
	CORE_RANGE_POP
};
enum nvtx_core2_callback_slot {
	CORE2_DOMAIN_MARK_EX = 1,
	CORE2_DOMAIN_RANGE_START_EX,
	CORE2_DOMAIN_RANGE_END,
	CORE2_DOMAIN_RANGE_PUSH_EX,
	CORE2_DOMAIN_RANGE_POP,
	CORE2_DOMAIN_REGISTER_STRING_A = 10,
	CORE2_DOMAIN_REGISTER_STRING_W,
	CORE2_DOMAIN_CREATE_A,
	CORE2_DOMAIN_CREATE_W,
	CORE2_DOMAIN_DESTROY
};
enum nvtx_message_type { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };

typedef void function(void);

struct nvtx_export_tables {
	size_t size;
	int (*get)(int module, function ****table, unsigned *entries);
};

struct nvtx_event_attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};
_Static_assert(offsetof(struct nvtx_event_attributes, message) == 40,
	       "layout of nvtxEventAttributes_t");

#define NVTX_TEXT_BYTES 512

static _Thread_local int thread_range_depth;

/* Room for a message, and behind it for a wide one made narrow. */
struct nvtx_text_buffers {
	char whole[NVTX_TEXT_BYTES], narrow_text[NVTX_TEXT_BYTES];
};

static const char *narrow_wide_text(struct nvtx_text_buffers *text, const wchar_t *wide)
{
	size_t length = 0;

	for (; wide != NULL && wide[length] != 0 && length < NVTX_TEXT_BYTES - 1; length++)
		text->narrow_text[length] = wide[length] < 128 ? (char)wide[length] : '?';
	text->narrow_text[length] = '\0';
	return text->narrow_text;
}

/* "domain: message", or the message itself, where there is nothing to put before it. A registered
 * one is our own copy. */
static const char *format_event_text(const char *domain, const struct nvtx_event_attributes *event,
				     struct nvtx_text_buffers *text)
{
	const char *message = "";

	if (event != NULL && event->message != NULL) {
		if (event->message_type == MESSAGE_WIDE)
			message = narrow_wide_text(text, event->message);
		else if (event->message_type == MESSAGE_ASCII ||
			 event->message_type == MESSAGE_REGISTERED)
			message = event->message;
	}
	if (domain == NULL)
		return message;
	snprintf(text->whole, NVTX_TEXT_BYTES, "%.128s: %.380s", domain, message);
	return text->whole;
}

static uint64_t emit_marker_if_wanted(enum device_marker_kind marker, const char *message,
				      uint64_t range)
{
	const struct device_sink *sink = device_get_sink();

	if (sink == NULL || !sink->is_wanted(DEVICE_SERVICE_MARKERS, -1))
		return 0;
	return sink->marker_event(marker, message, range);
}

static void nvtx_domain_mark(const char *domain, const struct nvtx_event_attributes *event)
{
	struct nvtx_text_buffers text;

	emit_marker_if_wanted(DEVICE_MARKER_MARK, format_event_text(domain, event, &text), 0);
}

static uint64_t nvtx_domain_range_start(const char *domain,
					const struct nvtx_event_attributes *event)
{
	struct nvtx_text_buffers text;

	return emit_marker_if_wanted(DEVICE_MARKER_START, format_event_text(domain, event, &text),
				     0);
}

static void nvtx_range_end(uint64_t range)
{
	if (range != 0)
		emit_marker_if_wanted(DEVICE_MARKER_STOP, NULL, range);
}

static void nvtx_domain_range_end(const char *domain, uint64_t range)
{
	(void)domain;
	nvtx_range_end(range);
}

/* The level of what is begun, from 0; of what is ended, likewise; negative: there is none. */
static int nvtx_range_push_ascii(const char *message)
{
	emit_marker_if_wanted(DEVICE_MARKER_PUSH, message, 0);
	return thread_range_depth++;
}

static int nvtx_domain_range_push(const char *domain, const struct nvtx_event_attributes *event)
{
	struct nvtx_text_buffers text;

	return nvtx_range_push_ascii(format_event_text(domain, event, &text));
}

static int nvtx_range_pop(void)
{
	if (thread_range_depth == 0)
		return -1;
	emit_marker_if_wanted(DEVICE_MARKER_POP, NULL, 0);
	return --thread_range_depth;
}

static int nvtx_domain_range_pop(const char *domain)
{
	(void)domain;
	return nvtx_range_pop();
}

static void nvtx_mark_ex(const struct nvtx_event_attributes *event)
{
	nvtx_domain_mark(NULL, event);
}

static void nvtx_mark_ascii(const char *message)
{
	emit_marker_if_wanted(DEVICE_MARKER_MARK, message, 0);
}

static void nvtx_mark_wide(const wchar_t *message)
{
	struct nvtx_text_buffers text;

	nvtx_mark_ascii(narrow_wide_text(&text, message));
}

static uint64_t nvtx_range_start_ex(const struct nvtx_event_attributes *event)
{
	return nvtx_domain_range_start(NULL, event);
}

static uint64_t nvtx_range_start_ascii(const char *message)
{
	return emit_marker_if_wanted(DEVICE_MARKER_START, message, 0);
}

static uint64_t nvtx_range_start_wide(const wchar_t *message)
{
	struct nvtx_text_buffers text;

	return nvtx_range_start_ascii(narrow_wide_text(&text, message));
}

static int nvtx_range_push_ex(const struct nvtx_event_attributes *event)
{
	return nvtx_domain_range_push(NULL, event);
}

static int nvtx_range_push_wide(const wchar_t *message)
{
	struct nvtx_text_buffers text;

	return nvtx_range_push_ascii(narrow_wide_text(&text, message));
}

/* Domains and registered strings are their own copies of the text, and stay. */
static const char *nvtx_domain_create_ascii(const char *name)
{
	return name != NULL ? strdup(name) : NULL;
}

static const char *nvtx_domain_create_wide(const wchar_t *name)
{
	struct nvtx_text_buffers text;

	return strdup(narrow_wide_text(&text, name));
}

static const char *nvtx_register_string_ascii(const char *domain, const char *text)
{
	(void)domain;
	return nvtx_domain_create_ascii(text);
}

static const char *nvtx_register_string_wide(const char *domain, const wchar_t *text)
{
	(void)domain;
	return nvtx_domain_create_wide(text);
}

static void nvtx_domain_destroy(const char *domain)
{
	(void)domain; /* ranges that name it may still be open */
}

struct nvtx_callback_replacement {
	unsigned place;
	function *call;
};

static void replace_nvtx_callbacks(const struct nvtx_export_tables *tables, int module,
				   const struct nvtx_callback_replacement *what, size_t count)
{
	function ***table = NULL;
	unsigned entries = 0;

	if (tables->get(module, &table, &entries) == 0 || table == NULL)
		return;
	for (size_t i = 0; i < count; i++) {
		if (what[i].place < entries && table[what[i].place] != NULL)
			*table[what[i].place] = what[i].call;
	}
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
#define CALLBACK_REPLACEMENT_INITIALIZER(place, call)                                              \
	{                                                                                          \
		place, (function *)(call)                                                          \
	}
	static const struct nvtx_callback_replacement core[] = {
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_MARK_EX, nvtx_mark_ex),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_MARK_A, nvtx_mark_ascii),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_MARK_W, nvtx_mark_wide),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_RANGE_START_EX, nvtx_range_start_ex),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_RANGE_START_A, nvtx_range_start_ascii),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_RANGE_START_W, nvtx_range_start_wide),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_RANGE_END, nvtx_range_end),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_RANGE_PUSH_EX, nvtx_range_push_ex),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_RANGE_PUSH_A, nvtx_range_push_ascii),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_RANGE_PUSH_W, nvtx_range_push_wide),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE_RANGE_POP, nvtx_range_pop),
	};
	static const struct nvtx_callback_replacement core2[] = {
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_MARK_EX, nvtx_domain_mark),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_RANGE_START_EX,
						 nvtx_domain_range_start),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_RANGE_END, nvtx_domain_range_end),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_RANGE_PUSH_EX,
						 nvtx_domain_range_push),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_RANGE_POP, nvtx_domain_range_pop),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_REGISTER_STRING_A,
						 nvtx_register_string_ascii),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_REGISTER_STRING_W,
						 nvtx_register_string_wide),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_CREATE_A, nvtx_domain_create_ascii),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_CREATE_W, nvtx_domain_create_wide),
		CALLBACK_REPLACEMENT_INITIALIZER(CORE2_DOMAIN_DESTROY, nvtx_domain_destroy),
	};
#undef CALLBACK_REPLACEMENT_INITIALIZER
	const struct nvtx_export_tables *tables =
		get_table != NULL ? get_table(NVTX_CALLBACKS_TABLE_ID) : NULL;

	if (tables == NULL || tables->size < sizeof(*tables))
		return 0;
	device_report_runtime_found(DEVICE_RUNTIME_HOST);
	replace_nvtx_callbacks(tables, MODULE_CORE, core, ARRAY_SIZE(core));
	replace_nvtx_callbacks(tables, MODULE_CORE2, core2, ARRAY_SIZE(core2));
	return 1;
}
