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

#include "binary/dwarf_internal.h"

#define NESTING_MAX   256
#define NAME_MAX_SIZE 4096u

struct qualifier {
	struct dwarf_reader *reader;
	char prefix[NAME_MAX_SIZE];
};

static int compare(const void *left, const void *right)
{
	uintptr_t a = (uintptr_t)((const struct dwarf_unqualified *)left)->die;
	uintptr_t b = (uintptr_t)((const struct dwarf_unqualified *)right)->die;
	return a < b ? -1 : a > b;
}

/* Appends "name::" to the prefix for what is part of names; its length before is returned. */
static size_t prefix_enter(struct qualifier *qualifier, Dwarf_Die *die)
{
	size_t length = strlen(qualifier->prefix);
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
	size_t left = sizeof(qualifier->prefix) - length;
	if (name && snprintf(qualifier->prefix + length, left, "%s::", name) >= (int)left)
		qualifier->prefix[length] = 0; /* absurdly long: better without */
	return length;
}

static int name_set(struct qualifier *qualifier, const struct dwarf_unqualified *unqualified)
{
	struct dwarf_reader *reader = qualifier->reader;
	struct dwarf_function *function = &reader->result.functions[unqualified->function];
	char name[2 * NAME_MAX_SIZE];
	int length = snprintf(name, sizeof(name), "%s%s", qualifier->prefix, function->name);
	if (length < 0 || (size_t)length >= sizeof(name))
		return 0;
	function->name = string_pool_intern(reader->pool, name);
	return function->name ? 0 : -ENOMEM;
}

/* Names the DIEs [first, end) of reader->unqualified, all of them below `parent`. */
static int qualify_children(struct qualifier *qualifier, Dwarf_Die *parent, size_t first,
			    size_t end, int depth)
{
	const struct dwarf_unqualified *wanted = qualifier->reader->unqualified;
	Dwarf_Die child, next;
	if (depth >= NESTING_MAX || dwarf_child(parent, &child) != 0)
		return 0;
	for (bool more = true; more && first < end; child = next) {
		more = dwarf_siblingof(&child, &next) == 0;
		while (first < end && (uintptr_t)wanted[first].die <= (uintptr_t)child.addr) {
			int error = wanted[first].die == child.addr
					    ? name_set(qualifier, &wanted[first])
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
		size_t length = prefix_enter(qualifier, &child);
		int error = qualify_children(qualifier, &child, first, below, depth + 1);
		qualifier->prefix[length] = 0;
		if (error)
			return error;
		first = below;
	}
	return 0;
}

int dwarf_qualify_names(struct dwarf_reader *reader, Dwarf_Die *root)
{
	if (reader->unqualified_count == 0)
		return 0;
	struct qualifier *qualifier = calloc(1, sizeof(*qualifier));
	if (!qualifier)
		return -ENOMEM;
	qualifier->reader = reader;
	qsort(reader->unqualified, reader->unqualified_count, sizeof(*reader->unqualified),
	      compare);
	/* Names may come from another unit: from a place outside this one's. */
	int error = qualify_children(qualifier, root, 0, reader->unqualified_count, 0);
	free(qualifier);
	return error;
}
