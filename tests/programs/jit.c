/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code that lies in no file: a loop copied into anonymous memory, named in /tmp/perf-PID.map as JIT
 * compilers do, then unmapped and overwritten by another.
 *
 * The function is called jit_loop_N in the map; it keeps a frame pointer.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"

/* push rbp; mov rbp,rsp; 1: dec rdi; jnz 1b; pop rbp; ret */
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};

int main(void)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	CHECK(map);
	for (int round = 0; round < 4; round++) {
		void (*function)(unsigned long);
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

		CHECK(page != MAP_FAILED);
		memcpy(page, code, sizeof(code));
		CHECK(mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0);
		fprintf(map, "%lx %zx jit_loop_%d\n", (unsigned long)page, sizeof(code), round);
		fflush(map);
		memcpy(&function, &page, sizeof(page));
		function(200000000ul);
		if (round % 2)
			CHECK(munmap(page, 4096) == 0);
	}
	fclose(map);
	return check_passed("jit");
}
