/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See clocks.h. Hosts are aligned with the first one (that of the lowest rank), over others where
 * they exchanged nothing with it: always over the ones with the smallest error.
 */
#include "job/results/clocks.h"

#include <errno.h>
#include <stdlib.h>

#define HOSTS_MAX 1024 /* more are not aligned */
/* Times of one host: kymo converts ticks of the processor by clocks that it reads now and then. */
#define ERROR_WITHIN_HOST_NS 5000

static uint32_t find_host(const struct job_clocks *clocks, uint32_t rank)
{
	const struct job *job = clocks->job;

	/* Texts of a job are interned. Ranks of a host are near each other. */
	for (uint32_t i = rank; i-- > 0;) {
		if (job->ranks[i].host == job->ranks[rank].host)
			return clocks->host_of_rank[i];
	}
	return UINT32_MAX;
}

int job_clocks_init(struct job_clocks *clocks, const struct job *job)
{
	*clocks = (struct job_clocks){.job = job};
	clocks->host_of_rank = calloc((size_t)job->rank_count + 1, sizeof(uint32_t));
	if (!clocks->host_of_rank)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->rank_count; i++) {
		uint32_t host = find_host(clocks, i);

		clocks->host_of_rank[i] = host == UINT32_MAX ? clocks->host_count++ : host;
	}
	clocks->clocks = calloc((size_t)clocks->host_count + 1, sizeof(*clocks->clocks));
	if (!clocks->clocks)
		return -ENOMEM;
	if (clocks->host_count > HOSTS_MAX)
		return 0;
	clocks->highest = malloc(((size_t)clocks->host_count * clocks->host_count + 1) *
				 sizeof(*clocks->highest));
	for (size_t i = 0; clocks->highest && i < (size_t)clocks->host_count * clocks->host_count;
	     i++)
		clocks->highest[i] = JOB_CLOCK_UNKNOWN;
	return clocks->highest ? 0 : -ENOMEM;
}

void job_clocks_deinit(struct job_clocks *clocks)
{
	free(clocks->host_of_rank);
	free(clocks->highest);
	free(clocks->clocks);
}

void job_clocks_add_order(struct job_clocks *clocks, uint32_t before_rank, uint64_t before_ns,
			  uint32_t after_rank, uint64_t after_ns)
{
	uint32_t a = clocks->host_of_rank[before_rank], b = clocks->host_of_rank[after_rank];
	int64_t difference = (int64_t)(after_ns - before_ns);
	int64_t *highest;

	if (a == b || !clocks->highest)
		return;
	highest = &clocks->highest[(size_t)a * clocks->host_count + b];
	if (difference < *highest)
		*highest = difference;
}

/* How far `to` is ahead of `from`, from bounds of both sides. */
static struct job_clock get_difference(const struct job_clocks *clocks, uint32_t from, uint32_t to)
{
	int64_t highest = clocks->highest[(size_t)from * clocks->host_count + to];
	int64_t back = clocks->highest[(size_t)to * clocks->host_count + from];

	if (highest == JOB_CLOCK_UNKNOWN || back == JOB_CLOCK_UNKNOWN)
		return (struct job_clock){0, JOB_CLOCK_UNKNOWN};
	/* back: from is ahead of to by no more, so to is ahead by no less than -back. Bounds that
	 * contradict each other are of clocks that drift: the contradiction is an error too. */
	return (struct job_clock){(highest - back) / 2, llabs(highest + back) / 2 + 1};
}

/* The host that is not settled yet and has the smallest error; UINT32_MAX: none is left. */
static uint32_t find_next_host(const struct job_clocks *clocks, const bool *settled)
{
	uint32_t next = UINT32_MAX;

	for (uint32_t i = 0; i < clocks->host_count; i++) {
		if (!settled[i] && clocks->clocks[i].error_ns != JOB_CLOCK_UNKNOWN &&
		    (next == UINT32_MAX ||
		     clocks->clocks[i].error_ns < clocks->clocks[next].error_ns))
			next = i;
	}
	return next;
}

static void settle_hosts(struct job_clocks *clocks, bool *settled)
{
	uint32_t host;

	while ((host = find_next_host(clocks, settled)) != UINT32_MAX) {
		settled[host] = true;
		for (uint32_t i = 0; i < clocks->host_count; i++) {
			struct job_clock step = get_difference(clocks, host, i);

			if (settled[i] || step.error_ns == JOB_CLOCK_UNKNOWN)
				continue;
			step.offset_ns += clocks->clocks[host].offset_ns;
			step.error_ns += clocks->clocks[host].error_ns;
			if (step.error_ns < clocks->clocks[i].error_ns)
				clocks->clocks[i] = step;
		}
	}
}

int job_clocks_solve(struct job_clocks *clocks)
{
	bool *settled;

	for (uint32_t i = 1; i < clocks->host_count; i++)
		clocks->clocks[i].error_ns = JOB_CLOCK_UNKNOWN;
	if (!clocks->highest)
		return 0;
	settled = calloc((size_t)clocks->host_count + 1, sizeof(*settled));
	if (!settled)
		return -ENOMEM;
	settle_hosts(clocks, settled);
	free(settled);
	return 0;
}

int64_t job_clocks_align(const struct job_clocks *clocks, uint32_t rank, uint64_t time_ns)
{
	return (int64_t)time_ns - clocks->clocks[clocks->host_of_rank[rank]].offset_ns;
}

int64_t job_clocks_get_error(const struct job_clocks *clocks, uint32_t rank, uint32_t other)
{
	uint32_t a = clocks->host_of_rank[rank], b = clocks->host_of_rank[other];

	if (a == b)
		return ERROR_WITHIN_HOST_NS;
	if (clocks->clocks[a].error_ns == JOB_CLOCK_UNKNOWN ||
	    clocks->clocks[b].error_ns == JOB_CLOCK_UNKNOWN)
		return JOB_CLOCK_UNKNOWN;
	return clocks->clocks[a].error_ns + clocks->clocks[b].error_ns + ERROR_WITHIN_HOST_NS;
}
