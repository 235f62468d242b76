/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocations inside this room: the scan takes their records, session_open() puts them in order,
 * and the resolution looks up their addresses as it does those of the tree.
 */
#ifndef KYMO_ANALYSIS_ALLOCATIONS_PRIVATE_H
#define KYMO_ANALYSIS_ALLOCATIONS_PRIVATE_H

#include "analysis/allocations.h"
#include "analysis/resolve.h"

/* CALL_SITE and ALLOCATIONS records of a process. 0, -EBADMSG or -ENOMEM. */
int scan_call_site(struct session *session, uint32_t process, struct spool_payload *payload);
int scan_allocations(struct session *session, uint32_t process, struct spool_payload *payload);
/* After the scan of all processes. */
void allocations_sort(struct session *session);
void allocations_free(struct session *session);

/* All addresses of all sites. */
size_t allocations_addresses(const struct session *session);
/* Gives sites their frames; the chain of the first address is chain_of[first]. 0 or -ENOMEM. */
int allocations_name(const struct resolution *resolution, size_t first);

#endif
