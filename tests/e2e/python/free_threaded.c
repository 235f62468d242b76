/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Says of itself what a Python 3.13 without the global lock says: the beginning of its table of
 * offsets.
 */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

struct {
	char cookie[8];
	uint64_t version, is_free_threaded, offsets[200];
} _PyRuntime = {"xdebugpy", 0x030d00f0, 1, {0}};
const uint32_t Py_Version = 0x030d00f0;

void *_PyEval_EvalFrameDefault(void *frame)
{
	return frame;
}

int main(void)
{
	usleep(200000);
	puts("done");
	return 0;
}
