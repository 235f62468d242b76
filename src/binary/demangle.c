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

#define MANGLED_NAME_BYTES_MAX 16384u
#define ELLIPSIS_UTF8          "\xe2\x80\xa6"
#define DEMANGLER_OPTIONS      (DMGL_PARAMS | DMGL_ANSI)

struct demangler_output {
	jmp_buf jump_when_full;
	size_t size;
	char text[DEMANGLED_NAME_BYTES_MAX + sizeof(ELLIPSIS_UTF8)];
};

static void append_demangler_output(const char *text, size_t size, void *context)
{
	struct demangler_output *output = context;
	if (size == 0)
		return; /* then libiberty may give NULL */
	size_t space = DEMANGLED_NAME_BYTES_MAX - output->size;
	memcpy(output->text + output->size, text, size < space ? size : space);
	if (size > space)
		longjmp(output->jump_when_full, 1);
	output->size += size;
}

/* A function of its own, so that no variable lives across setjmp. */
static int demangle_into_bounded_output(const char *name, struct demangler_output *output)
{
	output->size = 0;
	if (setjmp(output->jump_when_full)) {
		memcpy(output->text + DEMANGLED_NAME_BYTES_MAX, ELLIPSIS_UTF8,
		       sizeof(ELLIPSIS_UTF8));
		output->size = DEMANGLED_NAME_BYTES_MAX + sizeof(ELLIPSIS_UTF8) - 1;
		return 1;
	}
	/* Rust first: its legacy names are valid C++ names as well. */
	return rust_demangle_callback(name, DEMANGLER_OPTIONS, append_demangler_output, output) ||
	       (name[0] == '_' && name[1] == 'Z' &&
		(output->size = 0, cplus_demangle_v3_callback(name, DEMANGLER_OPTIONS,
							      append_demangler_output, output)));
}

char *demangle(const char *name)
{
	/* Mach-O style and SysV-prefixed names (__Z, ___Z) do not occur in ELF. */
	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') ||
	    strnlen(name, MANGLED_NAME_BYTES_MAX) == MANGLED_NAME_BYTES_MAX)
		return NULL;
	struct demangler_output output;
	if (!demangle_into_bounded_output(name, &output) || output.size == 0)
		return NULL;
	char *text = malloc(output.size + 1);
	if (!text)
		return NULL;
	memcpy(text, output.text, output.size);
	text[output.size] = 0;
	return text;
}
