/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of MPI functions: how C and the Fortran compilers spell them, and which ones the user
 * wants.
 */
#include <errno.h>
#include <string.h>

#include "wrappers/mpi/calls.h"

int mpi_call_find_argument_position(const struct mpi_call_description *call, char letter)
{
	for (int i = 0; call->argument_letters[i]; i++) {
		if (call->argument_letters[i] == letter)
			return i;
	}
	return -1;
}

static char letter_to_lower_case(char letter)
{
	return letter >= 'A' && letter <= 'Z' ? (char)(letter + 'a' - 'A') : letter;
}

static char letter_to_upper_case(char letter)
{
	return letter >= 'a' && letter <= 'z' ? (char)(letter + 'A' - 'a') : letter;
}

int mpi_call_format_name_in_spelling(const struct mpi_call_description *call,
				     enum mpi_spelling spelling, char *ret, size_t size)
{
	static const char *const suffixes[MPI_SPELLING_COUNT] = {
		[MPI_SPELLING_C] = "",
		[MPI_SPELLING_C_LARGE] = "_c",
		[MPI_SPELLING_LOWER_UNDERSCORE] = "_",
		[MPI_SPELLING_LOWER_2_UNDERSCORES] = "__",
		[MPI_SPELLING_LOWER_PLAIN] = "",
		[MPI_SPELLING_UPPER] = "",
		[MPI_SPELLING_F08] = "_f08_",
		[MPI_SPELLING_F08TS] = "_f08ts_",
		[MPI_SPELLING_F08TS_LARGE] = "_f08ts_large_",
	};
	size_t length = strlen(call->name), extra = strlen(suffixes[spelling]);

	if (length + extra + 1 > size)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < length; i++) {
		ret[i] = call->name[i];
		if (spelling == MPI_SPELLING_UPPER)
			ret[i] = letter_to_upper_case(ret[i]);
		else if (mpi_spelling_is_fortran(spelling))
			ret[i] = letter_to_lower_case(ret[i]);
	}
	memcpy(ret + length, suffixes[spelling], extra + 1);
	return 0;
}

/* '*' and '?'; `end` is behind the pattern. Goes back to the last '*' only, so it is never slow. */
static bool glob_matches_name(const char *pattern, const char *end, const char *name)
{
	const char *star = NULL, *resume = NULL;

	while (*name) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			resume = name;
		} else if (pattern < end &&
			   (*pattern == '?' ||
			    letter_to_lower_case(*pattern) == letter_to_lower_case(*name))) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++resume;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

static const char list_separators[] = ",; \t\n";

static bool list_matches_name(const char *list, const char *name)
{
	while (list && *list) {
		size_t length = strcspn(list, list_separators);

		if (length && glob_matches_name(list, list + length, name))
			return true;
		list += length;
		list += strspn(list, list_separators);
	}
	return false;
}

bool mpi_call_is_selected(const struct mpi_call_description *call, const char *permit,
			  const char *reject)
{
	if (permit && *permit)
		return list_matches_name(permit, call->name);
	return !list_matches_name(reject, call->name);
}

const char *mpi_list_find_unknown_word(const char *list, size_t *ret_length)
{
	while (list && *list) {
		size_t length = strcspn(list, list_separators);
		bool known = !length;

		for (uint32_t call = 0; !known && call < mpi_calls_count; call++)
			known = glob_matches_name(list, list + length, mpi_calls[call].name);
		*ret_length = length;
		if (!known)
			return list;
		list += length;
		list += strspn(list, list_separators);
	}
	return NULL;
}
