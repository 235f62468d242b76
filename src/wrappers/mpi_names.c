/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of MPI functions: how C and the Fortran compilers spell them, and which ones the user
 * wants.
 */
#include <errno.h>
#include <string.h>

#include "wrappers/mpi_calls.h"

int mpi_call_position(const struct mpi_call *call, char letter)
{
	for (int i = 0; call->letters[i]; i++) {
		if (call->letters[i] == letter)
			return i;
	}
	return -1;
}

static char lower(char letter)
{
	return letter >= 'A' && letter <= 'Z' ? (char)(letter + 'a' - 'A') : letter;
}

static char upper(char letter)
{
	return letter >= 'a' && letter <= 'z' ? (char)(letter + 'A' - 'a') : letter;
}

int mpi_call_spell(const struct mpi_call *call, enum mpi_spelling spelling, char *ret, size_t size)
{
	static const char *const suffixes[MPI_SPELLINGS] = {
		[MPI_SPELLING_C] = "",
		[MPI_SPELLING_C_LARGE] = "_c",
		[MPI_SPELLING_LOWER_1] = "_",
		[MPI_SPELLING_LOWER_2] = "__",
		[MPI_SPELLING_LOWER_0] = "",
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
			ret[i] = upper(ret[i]);
		else if (mpi_spelling_is_fortran(spelling))
			ret[i] = lower(ret[i]);
	}
	memcpy(ret + length, suffixes[spelling], extra + 1);
	return 0;
}

/* '*' and '?'; `end` is behind the pattern. Goes back to the last '*' only, so it is never slow. */
static bool matches(const char *pattern, const char *end, const char *name)
{
	const char *star = NULL, *resume = NULL;

	while (*name) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			resume = name;
		} else if (pattern < end && (*pattern == '?' || lower(*pattern) == lower(*name))) {
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

static const char separators[] = ",; \t\n";

static bool listed(const char *list, const char *name)
{
	while (list && *list) {
		size_t length = strcspn(list, separators);

		if (length && matches(list, list + length, name))
			return true;
		list += length;
		list += strspn(list, separators);
	}
	return false;
}

bool mpi_call_selected(const struct mpi_call *call, const char *permit, const char *reject)
{
	if (permit && *permit)
		return listed(permit, call->name);
	return !listed(reject, call->name);
}

const char *mpi_list_unknown(const char *list, size_t *ret_length)
{
	while (list && *list) {
		size_t length = strcspn(list, separators);
		bool known = !length;

		for (uint32_t call = 0; !known && call < mpi_calls_count; call++)
			known = matches(list, list + length, mpi_calls[call].name);
		*ret_length = length;
		if (!known)
			return list;
		list += length;
		list += strspn(list, separators);
	}
	return NULL;
}
