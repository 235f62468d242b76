/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of calls whose result a sampling signal could change, or that change what kymo may do.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

#include "core/runtime.h"
#include "libkymo/real.h"

/* A blocking write that our signal cuts short goes on: without kymo it would have written
 * everything. When nothing more can be written the count so far stands, as it would have. */
EXPORTED ssize_t write(int fd, const void *buffer, size_t size)
{
	struct thread *thread = runtime_active() ? kymo_thread : NULL;
	uint64_t signals = thread ? thread->signals : 0;
	ssize_t done = REAL(write)(fd, buffer, size);
	int error = errno;

	while (thread && done > 0 && (size_t)done < size && thread->signals != signals &&
	       !atomic_load_explicit(&kymo_runtime.signals.has_handlers, memory_order_relaxed)) {
		ssize_t more;
		signals = thread->signals;
		more = REAL(write)(fd, (const char *)buffer + done, size - (size_t)done);
		if (more <= 0)
			break;
		done += more;
	}
	errno = error;
	return done;
}

/* After this, addresses may belong to another library. */
EXPORTED int dlclose(void *handle)
{
	int result = REAL(dlclose)(handle);

	if (runtime_active()) {
		atomic_store_explicit(&kymo_runtime.modules.stale, 1, memory_order_relaxed);
		modules_want_refresh(&kymo_runtime.modules);
		background_wake(&kymo_runtime.background);
	}
	return result;
}
