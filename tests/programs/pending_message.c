/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Its thread has a message of the loader's pending while somebody attaches: it says "ready", waits
 * for a byte of its input, and looks whether the message is still there, once.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "check.h"

int main(void)
{
	const char *message;
	char byte;

	CHECK(dlopen("/nonexistent/library.so", RTLD_NOW) == NULL);
	puts("ready");
	fflush(stdout);
	errno = 77;
	while (read(0, &byte, 1) < 0)
		CHECK(errno == EINTR);
	message = dlerror();
	CHECK(message && strstr(message, "/nonexistent/library.so"));
	CHECK(dlerror() == NULL);
	puts("pending_message: OK");
	return 0;
}
