/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See loader_state.h.
 */
#include "common/loader_state.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>

#include "common/symbol_hash.h"

/* glibc's since 2.34, of libc's own thread-local block. */
static int find_dlerror_pointer(struct dl_phdr_info *info, size_t size, void *argument)
{
	static const char name[] = "__libc_dlerror_result";
	struct symbol_hash_tables object;
	const Elf64_Sym *symbol;

	if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof(info->dlpi_tls_data) ||
	    !info->dlpi_tls_data || !symbol_hash_read_object(&object, info))
		return 0;
	symbol = symbol_hash_find_symbol(&object, SYMBOL_HASH_THREAD_DATA, name,
					 symbol_hash_compute_gnu_hash(name));
	if (!symbol)
		return 0;
	*(void **)argument = (char *)info->dlpi_tls_data + symbol->st_value;
	return 1;
}

void loader_save_dlerror_state(struct loader_dlerror_state *state)
{
	state->error = errno;
	state->place = NULL;
	dl_iterate_phdr(find_dlerror_pointer, &state->place);
	state->kept = state->place ? *state->place : NULL;
	if (state->place)
		*state->place = NULL;
}

/* dlerror gives a message out first, and frees it when it is called again. It takes the message out
 * of the thread before, so that an allocator that calls the loader finds nothing there. */
void loader_restore_dlerror_state(const struct loader_dlerror_state *state)
{
	if (!state->place || *state->place) {
		dlerror();
		dlerror();
	}
	if (state->place && state->kept)
		*state->place = state->kept;
	errno = state->error;
}

void *loader_dlopen_keeping_dlerror(const char *path, int flags)
{
	struct loader_dlerror_state state;
	void *handle;

	loader_save_dlerror_state(&state);
	handle = dlopen(path, flags);
	loader_restore_dlerror_state(&state);
	return handle;
}

void loader_dlclose_keeping_dlerror(void *handle)
{
	struct loader_dlerror_state state;

	loader_save_dlerror_state(&state);
	dlclose(handle);
	loader_restore_dlerror_state(&state);
}
