/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The walk through the DIEs of one unit: which function, and which inlined calls, each wanted
 * address lies in.
 *
 * Outer scopes come before inner ones, so that the last scope noted for an address is the
 * innermost. Whole functions without wanted addresses are skipped by their sibling reference.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/dwarf/private.h"

/* Compilers nest some tens of levels; only damaged files more. */
#define DIE_NESTING_MAX 256
/* Declaration, abstract instance, concrete instance: three in practice; loops in damaged files. */
#define DIE_ORIGINS_MAX 8

struct scope_walk_state {
	struct dwarf_reader *reader;
	struct dwarf_unit *unit;
};

static int walk_die_children(const struct scope_walk_state *walk, Dwarf_Die *parent, uint32_t scope,
			     int depth);

/* Where the DIE gets its name from: the abstract instance, then the declaration in the class. */
static bool get_next_die_name_origin(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attribute;
	if (!dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
	    !dwarf_attr(die, DW_AT_specification, &attribute))
		return false;
	return dwarf_formref_die(&attribute, ret) != NULL;
}

static const char *get_die_string_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	return dwarf_attr(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static uint32_t get_die_number_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;
	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0 ||
	    value > INT32_MAX)
		return 0;
	return (uint32_t)value;
}

static int intern_text_if_unset(struct dwarf_reader *reader, const char *text, const char **ret)
{
	if (*ret || !text)
		return 0;
	*ret = string_pool_intern(reader->string_pool, text);
	return *ret ? 0 : -ENOMEM;
}

/* Gathers the names along the origins of a DIE; *die becomes the last of them. */
static int read_function_names_and_line(struct dwarf_reader *reader, Dwarf_Die *die,
					struct dwarf_function *ret)
{
	struct dwarf_function function = {0};
	for (int i = 0; i < DIE_ORIGINS_MAX; i++) {
		const char *linkage = get_die_string_attribute(die, DW_AT_linkage_name);
		if (!linkage)
			linkage = get_die_string_attribute(die, DW_AT_MIPS_linkage_name);
		int error = intern_text_if_unset(reader, linkage, &function.linkage_name);
		if (!error && !function.name)
			error = intern_text_if_unset(
				reader, get_die_string_attribute(die, DW_AT_name), &function.name);
		if (error)
			return error;
		if (!function.line)
			function.line = get_die_number_attribute(die, DW_AT_decl_line);
		Dwarf_Die origin;
		if (!get_next_die_name_origin(die, &origin))
			break;
		*die = origin;
	}
	*ret = function;
	return 0;
}

static int append_unqualified_function(struct dwarf_reader *reader, const void *die,
				       uint32_t function)
{
	if (reader->unqualified_function_count == reader->unqualified_function_capacity) {
		size_t capacity = reader->unqualified_function_capacity * 2 + 64;
		struct dwarf_unqualified_function *unqualified =
			realloc(reader->unqualified_functions, capacity * sizeof(*unqualified));
		if (!unqualified)
			return -ENOMEM;
		reader->unqualified_functions = unqualified;
		reader->unqualified_function_capacity = capacity;
	}
	reader->unqualified_functions[reader->unqualified_function_count++] =
		(struct dwarf_unqualified_function){die, function};
	return 0;
}

static int append_dwarf_function(struct dwarf_reader *reader, const struct dwarf_function *function)
{
	struct dwarf_lookup_result_lists *result = &reader->result;
	if (result->function_count == reader->function_capacity) {
		size_t capacity = reader->function_capacity ? reader->function_capacity * 2 : 1024;
		struct dwarf_function *functions =
			realloc(result->functions, capacity * sizeof(*functions));
		if (!functions)
			return -ENOMEM;
		result->functions = functions;
		reader->function_capacity = capacity;
	}
	result->functions[result->function_count++] = *function;
	return 0;
}

static size_t hash_die_to_slot(const void *die, size_t capacity)
{
	return (size_t)(((uint64_t)(uintptr_t)die * 0x9e3779b97f4a7c15u) >> 32) & (capacity - 1);
}

static int grow_function_slots(struct dwarf_reader *reader)
{
	size_t capacity = reader->slot_capacity ? reader->slot_capacity * 2 : 4096;
	struct dwarf_function_slot *slots = calloc(capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < reader->slot_capacity; i++) {
		if (!reader->slots[i].die)
			continue;
		size_t at = hash_die_to_slot(reader->slots[i].die, capacity);
		while (slots[at].die)
			at = (at + 1) & (capacity - 1);
		slots[at] = reader->slots[i];
	}
	free(reader->slots);
	reader->slots = slots;
	reader->slot_capacity = capacity;
	return 0;
}

/* The function that a subprogram or an inlined call is an instance of. All instances that share an
 * abstract instance are one function. */
static int find_or_add_function(struct dwarf_reader *reader, Dwarf_Die *die, uint32_t *ret)
{
	Dwarf_Die named;
	if (!get_next_die_name_origin(die, &named))
		named = *die;
	if ((size_t)reader->result.function_count * 2 >= reader->slot_capacity) {
		int error = grow_function_slots(reader);
		if (error)
			return error;
	}
	size_t at = hash_die_to_slot(named.addr, reader->slot_capacity);
	for (; reader->slots[at].die; at = (at + 1) & (reader->slot_capacity - 1)) {
		if (reader->slots[at].die == named.addr) {
			*ret = reader->slots[at].function;
			return 0;
		}
	}
	struct dwarf_function function;
	Dwarf_Die last = *die;
	int error = read_function_names_and_line(reader, &last, &function);
	if (!error)
		error = append_dwarf_function(reader, &function);
	if (error)
		return error;
	*ret = reader->result.function_count - 1;
	if (function.name && !function.linkage_name) {
		error = append_unqualified_function(reader, last.addr, *ret);
		if (error)
			return error;
	}
	reader->slots[at] = (struct dwarf_function_slot){named.addr, *ret};
	return 0;
}

static int append_dwarf_scope(struct dwarf_reader *reader, const struct dwarf_function_scope *scope,
			      uint32_t *ret)
{
	struct dwarf_lookup_result_lists *result = &reader->result;
	if (result->scope_count == reader->scope_capacity) {
		size_t capacity = reader->scope_capacity ? reader->scope_capacity * 2 : 4096;
		struct dwarf_function_scope *scopes =
			capacity < DWARF_SCOPE_NONE
				? realloc(result->scopes, capacity * sizeof(*scopes))
				: NULL;
		if (!scopes)
			return -ENOMEM;
		result->scopes = scopes;
		reader->scope_capacity = capacity;
	}
	*ret = result->scope_count;
	result->scopes[result->scope_count++] = *scope;
	return 0;
}

static int create_scope(const struct scope_walk_state *walk, Dwarf_Die *die, uint32_t parent,
			uint32_t *ret)
{
	struct dwarf_function_scope scope = {.parent = parent};
	int error = find_or_add_function(walk->reader, die, &scope.function);
	if (error)
		return error;
	if (parent != DWARF_SCOPE_NONE) {
		uint32_t file = get_die_number_attribute(die, DW_AT_call_file);
		scope.call_line = get_die_number_attribute(die, DW_AT_call_line);
		scope.call_file = dwarf_unit_get_file_path(walk->reader, walk->unit, file, &error);
		if (error)
			return error;
	}
	return append_dwarf_scope(walk->reader, &scope, ret);
}

/* Does the address still want an answer from a scope inside `parent`? Functions without code (the
 * linker dropped them) claim addresses near 0, which are another unit's or nobody's. */
static bool address_innermost_scope_is(const struct scope_walk_state *walk, size_t index,
				       uint32_t parent)
{
	return walk->reader->owner_unit_by_address[index] == walk->unit->number &&
	       walk->reader->result.places[index].scope == parent;
}

/* Makes a scope for the DIE if open addresses lie in its ranges, and notes it for them; else *ret
 * is DWARF_SCOPE_NONE. */
static int assign_die_scope_to_addresses(const struct scope_walk_state *walk, Dwarf_Die *die,
					 uint32_t parent, uint32_t *ret)
{
	struct dwarf_reader *reader = walk->reader;
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	*ret = DWARF_SCOPE_NONE;
	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		for (size_t i = dwarf_find_wanted_address_index(reader, start);
		     i < reader->count && reader->addresses[i] < end; i++) {
			if (!address_innermost_scope_is(walk, i, parent))
				continue;
			int error =
				*ret == DWARF_SCOPE_NONE ? create_scope(walk, die, parent, ret) : 0;
			if (error)
				return error;
			reader->result.places[i].scope = *ret;
		}
	}
	return 0;
}

static int walk_function_die(const struct scope_walk_state *walk, Dwarf_Die *die, uint32_t parent,
			     int depth)
{
	uint32_t scope;
	int error = assign_die_scope_to_addresses(walk, die, parent, &scope);
	if (error)
		return error;
	if (scope == DWARF_SCOPE_NONE &&
	    (parent != DWARF_SCOPE_NONE || !walk->unit->search_inside_functions))
		return 0;
	return walk_die_children(walk, die, scope, depth);
}

static int walk_die(const struct scope_walk_state *walk, Dwarf_Die *die, uint32_t scope, int depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return walk_function_die(walk, die, DWARF_SCOPE_NONE, depth);
	case DW_TAG_inlined_subroutine:
		/* Without a function around it (skipped, or damaged) there is no chain. */
		return scope == DWARF_SCOPE_NONE ? 0 : walk_function_die(walk, die, scope, depth);
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
		return walk_die_children(walk, die, scope, depth);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
		return walk->unit->search_inside_types
			       ? walk_die_children(walk, die, DWARF_SCOPE_NONE, depth)
			       : 0;
	default:
		return 0;
	}
}

static int walk_die_children(const struct scope_walk_state *walk, Dwarf_Die *parent, uint32_t scope,
			     int depth)
{
	Dwarf_Die child, next;
	if (depth >= DIE_NESTING_MAX || dwarf_child(parent, &child) != 0)
		return 0;
	for (;;) {
		int error = walk_die(walk, &child, scope, depth + 1);
		if (error)
			return error;
		if (dwarf_siblingof(&child, &next) != 0)
			return 0;
		child = next;
	}
}

int dwarf_assign_scopes_to_addresses(struct dwarf_reader *reader, struct dwarf_unit *unit,
				     Dwarf_Die *root)
{
	struct scope_walk_state walk = {reader, unit};
	return walk_die_children(&walk, root, DWARF_SCOPE_NONE, 0);
}
