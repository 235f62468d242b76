/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Values of one region event, gathered.
 */
#ifndef KYMO_WRAPPERS_MPI_VALUES_H
#define KYMO_WRAPPERS_MPI_VALUES_H

#include "regions/regions.h"

#define MPI_VALUES_MAX 14

struct mpi_call_value_list {
	struct region_value list[MPI_VALUES_MAX];
	size_t count;
};

static inline struct region_value *append_value(struct mpi_call_value_list *values,
						const char *name, enum spool_value_type type)
{
	struct region_value *value = &values->list[values->count++];

	value->name = name;
	value->type = type;
	return value;
}

static inline void add_text_value(struct mpi_call_value_list *values, const char *name,
				  const char *text)
{
	append_value(values, name, SPOOL_VALUE_TEXT)->text = text;
}

static inline void add_signed_value(struct mpi_call_value_list *values, const char *name,
				    int64_t number)
{
	append_value(values, name, SPOOL_VALUE_SIGNED)->number = (uint64_t)number;
}

static inline void add_unsigned_value(struct mpi_call_value_list *values, const char *name,
				      uint64_t number)
{
	append_value(values, name, SPOOL_VALUE_UNSIGNED)->number = number;
}

static inline void write_values(const struct mpi_call_value_list *values)
{
	if (values->count)
		region_values(values->list, values->count);
}

#endif
