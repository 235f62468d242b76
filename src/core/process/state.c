/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See state.h.
 */
#include "core/process/state.h"

#include <stddef.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/base/fork_state.h"

#define FORK_DETECTOR_PAGE_BYTES 4096

static const uint32_t same_process_flag_before_start;

KYMO_FORK_STATE struct process_state kymo_process = {.zeroed_in_forked_child =
							     &same_process_flag_before_start};

KYMO_FORK_CODE bool process_state_map_fork_detector(void)
{
	uint32_t *page;

	if (kymo_process.zeroed_in_forked_child != &same_process_flag_before_start)
		return true;
	page = sys_mmap(NULL, FORK_DETECTOR_PAGE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_mmap_failed(page))
		return false;
	sys_madvise(page, FORK_DETECTOR_PAGE_BYTES, MADV_WIPEONFORK);
	*page = 1;
	kymo_process.zeroed_in_forked_child = page;
	return true;
}

KYMO_FORK_CODE void process_state_reset_fork_detector(void)
{
	*(volatile uint32_t *)kymo_process.zeroed_in_forked_child = 1;
}
