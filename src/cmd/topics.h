/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Help topics that are no commands.
 */
#ifndef KYMO_CMD_TOPICS_H
#define KYMO_CMD_TOPICS_H

#include <stddef.h>

struct topic {
	const char *name, *summary;
	const char *text; /* NULL: made from a table */
};

extern const struct topic *const topics;
extern const size_t topic_count;

const struct topic *topic_find(const char *name);

#endif
