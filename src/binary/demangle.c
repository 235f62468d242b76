/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Demangling through GNU libiberty, the one file that includes it: C++ (Itanium ABI) and Rust
 * (legacy and v0), with the options of c++filt.
 *
 * Names come from files that we do not trust. libiberty bounds its own recursion (2048 levels), but
 * not its output: substitutions make exponentially long names out of short ones. So it prints into
 * a callback that leaves with longjmp when enough is there; this is safe because these two
 * functions keep their state in their stack frames (cp-demangle.c built with CP_DYNAMIC_ARRAYS, as
 * with every GCC; rust-demangle.c always). A mangled name over a limit is not tried at all.
 */
#include "binary/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define MANGLED_MAX 16384u
#define ELLIPSIS    "\xe2\x80\xa6"
#define OPTIONS     (DMGL_PARAMS | DMGL_ANSI)

struct output {
	jmp_buf full;
	size_t size;
	char text[DEMANGLE_OUTPUT_MAX + sizeof(ELLIPSIS)];
};

static void output_add(const char *text, size_t size, void *context)
{
	struct output *output = context;
	if (size == 0)
		return; /* then libiberty may give NULL */
	size_t space = DEMANGLE_OUTPUT_MAX - output->size;
	memcpy(output->text + output->size, text, size < space ? size : space);
	if (size > space)
		longjmp(output->full, 1);
	output->size += size;
}

/* A function of its own, so that no variable lives across setjmp. */
static int print_name(const char *name, struct output *output)
{
	output->size = 0;
	if (setjmp(output->full)) {
		memcpy(output->text + DEMANGLE_OUTPUT_MAX, ELLIPSIS, sizeof(ELLIPSIS));
		output->size = DEMANGLE_OUTPUT_MAX + sizeof(ELLIPSIS) - 1;
		return 1;
	}
	/* Rust first: its legacy names are valid C++ names as well. */
	return rust_demangle_callback(name, OPTIONS, output_add, output) ||
	       (name[0] == '_' && name[1] == 'Z' &&
		(output->size = 0, cplus_demangle_v3_callback(name, OPTIONS, output_add, output)));
}

char *demangle(const char *name)
{
	/* Mach-O style and SysV-prefixed names (__Z, ___Z) do not occur in ELF. */
	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') ||
	    strnlen(name, MANGLED_MAX) == MANGLED_MAX)
		return NULL;
	struct output output;
	if (!print_name(name, &output) || output.size == 0)
		return NULL;
	char *text = malloc(output.size + 1);
	if (!text)
		return NULL;
	memcpy(text, output.text, output.size);
	text[output.size] = 0;
	return text;
}
