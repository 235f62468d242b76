/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Full names for C++ functions without a linkage name, "sample::words" rather than "words".
 *
 * A DIE does not know its parent, but DIEs lie in memory in the order of the tree: a DIE's
 * descendants are between it and its next sibling. So walk down from the unit with all wanted DIEs
 * in order, only into what holds some of them.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binary/dwarf/private.h"

#define DIE_NESTING_MAX       256
#define NAME_PREFIX_BYTES_MAX 4096u

struct name_qualification_state {
	struct dwarf_reader *reader;
	char name_prefix[NAME_PREFIX_BYTES_MAX];
};

static int compare_unqualified_by_die(const void *left, const void *right)
{
	uintptr_t a = (uintptr_t)((const struct dwarf_unqualified_function *)left)->die;
	uintptr_t b = (uintptr_t)((const struct dwarf_unqualified_function *)right)->die;
	return a < b ? -1 : a > b;
}

/* Appends "name::" to the prefix for what is part of names; its length before is returned. */
static size_t append_die_name_to_prefix(struct name_qualification_state *qualifier, Dwarf_Die *die)
{
	size_t length = strlen(qualifier->name_prefix);
	const char *name = dwarf_diename(die);
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		name = name ? name : "(anonymous namespace)";
		break;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		name = name ? name : "{lambda}"; /* what else has functions and no name */
		break;
	case DW_TAG_subprogram:
		break;
	default:
		name = NULL;
		break;
	}
	size_t left = sizeof(qualifier->name_prefix) - length;
	if (name && snprintf(qualifier->name_prefix + length, left, "%s::", name) >= (int)left)
		qualifier->name_prefix[length] = 0; /* absurdly long: better without */
	return length;
}

static int set_qualified_name(struct name_qualification_state *qualifier,
			      const struct dwarf_unqualified_function *unqualified)
{
	struct dwarf_reader *reader = qualifier->reader;
	struct dwarf_function *function = &reader->result.functions[unqualified->function];
	char name[2 * NAME_PREFIX_BYTES_MAX];
	int length = snprintf(name, sizeof(name), "%s%s", qualifier->name_prefix, function->name);
	if (length < 0 || (size_t)length >= sizeof(name))
		return 0;
	function->name = string_pool_intern(reader->string_pool, name);
	return function->name ? 0 : -ENOMEM;
}

/* Names the DIEs [first, end) of reader->unqualified, all of them below `parent`. */
static int qualify_names_below_die(struct name_qualification_state *qualifier, Dwarf_Die *parent,
				   size_t first, size_t end, int depth)
{
	const struct dwarf_unqualified_function *wanted = qualifier->reader->unqualified_functions;
	Dwarf_Die child, next;
	if (depth >= DIE_NESTING_MAX || dwarf_child(parent, &child) != 0)
		return 0;
	for (bool more = true; more && first < end; child = next) {
		more = dwarf_siblingof(&child, &next) == 0;
		while (first < end && (uintptr_t)wanted[first].die <= (uintptr_t)child.addr) {
			int error = wanted[first].die == child.addr
					    ? set_qualified_name(qualifier, &wanted[first])
					    : 0;
			if (error)
				return error;
			first++;
		}
		size_t below = first;
		while (below < end &&
		       (!more || (uintptr_t)wanted[below].die < (uintptr_t)next.addr))
			below++;
		if (below == first)
			continue;
		size_t length = append_die_name_to_prefix(qualifier, &child);
		int error = qualify_names_below_die(qualifier, &child, first, below, depth + 1);
		qualifier->name_prefix[length] = 0;
		if (error)
			return error;
		first = below;
	}
	return 0;
}

int dwarf_qualify_names(struct dwarf_reader *reader, Dwarf_Die *root)
{
	if (reader->unqualified_function_count == 0)
		return 0;
	struct name_qualification_state *qualifier = calloc(1, sizeof(*qualifier));
	if (!qualifier)
		return -ENOMEM;
	qualifier->reader = reader;
	qsort(reader->unqualified_functions, reader->unqualified_function_count,
	      sizeof(*reader->unqualified_functions), compare_unqualified_by_die);
	/* Names may come from another unit: from a place outside this one's. */
	int error =
		qualify_names_below_die(qualifier, root, 0, reader->unqualified_function_count, 0);
	free(qualifier);
	return error;
}
