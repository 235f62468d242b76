/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What everything public of kymo shares: version, status, values, callbacks. Programs include
 * kymo/user.h. C99 and C++11; append only, structs that grow begin with their size.
 */
#ifndef KYMO_KYMO_H
#define KYMO_KYMO_H

#include <stddef.h>
#include <stdint.h>

#define KYMO_VERSION_MAJOR 0
#define KYMO_VERSION_MINOR 1
#define KYMO_VERSION_PATCH 0
#define KYMO_VERSION       (KYMO_VERSION_MAJOR * 10000 + KYMO_VERSION_MINOR * 100 + KYMO_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* What every function returns: 0, or a negative number; kymo_error_string() says it in words.
 * Programs need not look at it: nothing that fails here is a reason to do anything else. */
enum kymo_status {
	KYMO_SUCCESS = 0,
	KYMO_NOT_OPEN = -2,     /* the region to end is not open on this thread */
	KYMO_BAD_VALUE = -22,   /* an argument is NULL or of no known type */
	KYMO_NO_BINDING = -107, /* the program does not run under kymo: nothing was done */
	KYMO_INTERNAL = -5      /* kymo could not; the results say why */
};

/* Types of values. TEXT and POINTER: `value` itself is the text or the pointer. All others: `value`
 * points to the number. */
enum kymo_type {
	KYMO_TEXT = 1,
	KYMO_SIZE,
	KYMO_INT64,
	KYMO_UINT64,
	KYMO_DOUBLE,
	KYMO_POINTER,
	KYMO_INT32,
	KYMO_UINT32,
	KYMO_FLOAT,
	KYMO_INT16,
	KYMO_UINT16
};

/* A value with a name, for regions and marks. Names and texts are copied before the call returns.
 */
struct kymo_annotation {
	const char *name;
	enum kymo_type type;
	const void *value;
};

enum kymo_progress_kind { KYMO_PROGRESS_POINT, KYMO_PROGRESS_BEGIN, KYMO_PROGRESS_END };

/* What the functions of kymo/user.h call. kymo_set_callbacks() replaces them one by one. A category
 * of NULL is "user". May be called from any thread at any time. */
struct kymo_callbacks {
	size_t size; /* sizeof(struct kymo_callbacks) where it was compiled */
	int (*push_region)(const char *category, const char *name);
	int (*pop_region)(const char *category, const char *name);
	/* Values of what this thread pushed, popped or marked last. */
	int (*annotate)(const struct kymo_annotation *annotations, size_t count);
	int (*mark)(const char *category, const char *name);
	int (*counter)(const char *name, double value);
	int (*progress)(const char *name, enum kymo_progress_kind kind);
	int (*start_trace)(void);
	int (*stop_trace)(void);
	int (*start_thread_trace)(void);
	int (*stop_thread_trace)(void);
	int (*flush)(void);
};

#ifdef __cplusplus
}
#endif

#endif
