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

#include "device/device.h"

enum { TABLES = 1 };                        /* NVTX_ETID_CALLBACKS */
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 }; /* NvtxCallbackModule */
enum core {
	CORE_MARK_EX = 1,
	CORE_MARK_A,
	CORE_MARK_W,
	CORE_START_EX,
	CORE_START_A,
	CORE_START_W,
	CORE_END,
	CORE_PUSH_EX,
	CORE_PUSH_A,
	CORE_PUSH_W,
	CORE_POP
};
enum core2 {
	CORE2_MARK_EX = 1,
	CORE2_START_EX,
	CORE2_END,
	CORE2_PUSH_EX,
	CORE2_POP,
	CORE2_REGISTER_STRING_A = 10,
	CORE2_REGISTER_STRING_W,
	CORE2_CREATE_A,
	CORE2_CREATE_W,
	CORE2_DESTROY
};
enum message { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };

typedef void function(void);

struct tables {
	size_t size;
	int (*get)(int module, function ****table, unsigned *entries);
};

struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};
_Static_assert(offsetof(struct attributes, message) == 40, "layout of nvtxEventAttributes_t");

#define TEXT_MAX 512

static _Thread_local int depth;

/* Room for a message, and behind it for a wide one made narrow. */
struct text {
	char whole[TEXT_MAX], narrow[TEXT_MAX];
};

static const char *narrow(struct text *text, const wchar_t *wide)
{
	size_t length = 0;

	for (; wide != NULL && wide[length] != 0 && length < TEXT_MAX - 1; length++)
		text->narrow[length] = wide[length] < 128 ? (char)wide[length] : '?';
	text->narrow[length] = '\0';
	return text->narrow;
}

/* "domain: message", or the message itself, where there is nothing to put before it. A registered
 * one is our own copy. */
static const char *text_of(const char *domain, const struct attributes *event, struct text *text)
{
	const char *message = "";

	if (event != NULL && event->message != NULL) {
		if (event->message_type == MESSAGE_WIDE)
			message = narrow(text, event->message);
		else if (event->message_type == MESSAGE_ASCII ||
			 event->message_type == MESSAGE_REGISTERED)
			message = event->message;
	}
	if (domain == NULL)
		return message;
	snprintf(text->whole, TEXT_MAX, "%.128s: %.380s", domain, message);
	return text->whole;
}

static uint64_t tell(enum device_marker marker, const char *message, uint64_t range)
{
	const struct device_sink *sink = device_sink();

	if (sink == NULL || !sink->wants(DEVICE_SERVICE_MARKERS, -1))
		return 0;
	return sink->marker(marker, message, range);
}

static void domain_mark(const char *domain, const struct attributes *event)
{
	struct text text;

	tell(DEVICE_MARKER_MARK, text_of(domain, event, &text), 0);
}

static uint64_t domain_start(const char *domain, const struct attributes *event)
{
	struct text text;

	return tell(DEVICE_MARKER_START, text_of(domain, event, &text), 0);
}

static void range_end(uint64_t range)
{
	if (range != 0)
		tell(DEVICE_MARKER_STOP, NULL, range);
}

static void domain_end(const char *domain, uint64_t range)
{
	(void)domain;
	range_end(range);
}

/* The level of what is begun, from 0; of what is ended, likewise; negative: there is none. */
static int push_text(const char *message)
{
	tell(DEVICE_MARKER_PUSH, message, 0);
	return depth++;
}

static int domain_push(const char *domain, const struct attributes *event)
{
	struct text text;

	return push_text(text_of(domain, event, &text));
}

static int pop(void)
{
	if (depth == 0)
		return -1;
	tell(DEVICE_MARKER_POP, NULL, 0);
	return --depth;
}

static int domain_pop(const char *domain)
{
	(void)domain;
	return pop();
}

static void mark_ex(const struct attributes *event)
{
	domain_mark(NULL, event);
}

static void mark_a(const char *message)
{
	tell(DEVICE_MARKER_MARK, message, 0);
}

static void mark_w(const wchar_t *message)
{
	struct text text;

	mark_a(narrow(&text, message));
}

static uint64_t start_ex(const struct attributes *event)
{
	return domain_start(NULL, event);
}

static uint64_t start_a(const char *message)
{
	return tell(DEVICE_MARKER_START, message, 0);
}

static uint64_t start_w(const wchar_t *message)
{
	struct text text;

	return start_a(narrow(&text, message));
}

static int push_ex(const struct attributes *event)
{
	return domain_push(NULL, event);
}

static int push_w(const wchar_t *message)
{
	struct text text;

	return push_text(narrow(&text, message));
}

/* Domains and registered strings are their own copies of the text, and stay. */
static const char *create_a(const char *name)
{
	return name != NULL ? strdup(name) : NULL;
}

static const char *create_w(const wchar_t *name)
{
	struct text text;

	return strdup(narrow(&text, name));
}

static const char *register_a(const char *domain, const char *text)
{
	(void)domain;
	return create_a(text);
}

static const char *register_w(const char *domain, const wchar_t *text)
{
	(void)domain;
	return create_w(text);
}

static void destroy(const char *domain)
{
	(void)domain; /* ranges that name it may still be open */
}

struct replacement {
	unsigned place;
	function *call;
};

static void replace(const struct tables *tables, int module, const struct replacement *what,
		    size_t count)
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
#define REPLACE(place, call)                                                                       \
	{                                                                                          \
		place, (function *)(call)                                                          \
	}
	static const struct replacement core[] = {
		REPLACE(CORE_MARK_EX, mark_ex),  REPLACE(CORE_MARK_A, mark_a),
		REPLACE(CORE_MARK_W, mark_w),    REPLACE(CORE_START_EX, start_ex),
		REPLACE(CORE_START_A, start_a),  REPLACE(CORE_START_W, start_w),
		REPLACE(CORE_END, range_end),    REPLACE(CORE_PUSH_EX, push_ex),
		REPLACE(CORE_PUSH_A, push_text), REPLACE(CORE_PUSH_W, push_w),
		REPLACE(CORE_POP, pop),
	};
	static const struct replacement core2[] = {
		REPLACE(CORE2_MARK_EX, domain_mark),
		REPLACE(CORE2_START_EX, domain_start),
		REPLACE(CORE2_END, domain_end),
		REPLACE(CORE2_PUSH_EX, domain_push),
		REPLACE(CORE2_POP, domain_pop),
		REPLACE(CORE2_REGISTER_STRING_A, register_a),
		REPLACE(CORE2_REGISTER_STRING_W, register_w),
		REPLACE(CORE2_CREATE_A, create_a),
		REPLACE(CORE2_CREATE_W, create_w),
		REPLACE(CORE2_DESTROY, destroy),
	};
#undef REPLACE
	const struct tables *tables = get_table != NULL ? get_table(TABLES) : NULL;

	if (tables == NULL || tables->size < sizeof(*tables))
		return 0;
	device_runtime_found(DEVICE_RUNTIME_HOST);
	replace(tables, MODULE_CORE, core, sizeof(core) / sizeof(*core));
	replace(tables, MODULE_CORE2, core2, sizeof(core2) / sizeof(*core2));
	return 1;
}
