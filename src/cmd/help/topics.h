/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Help topics that are no commands.
 */
#ifndef KYMO_CMD_HELP_TOPICS_H
#define KYMO_CMD_HELP_TOPICS_H

#include <stddef.h>

struct help_topic {
	const char *name, *summary;
	const char *text; /* NULL: made from a table */
};

extern const struct help_topic *const topics;
extern const size_t topic_count;

const struct help_topic *help_topic_find_by_name(const char *name);

#endif
