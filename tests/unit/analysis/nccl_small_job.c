/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A job of a few ranks; see nccl_small_job.h.
 */
#include "unit/analysis/nccl_small_job.h"

#include <stdio.h>
#include <string.h>

void small_job_begin(struct small_job *job, int size, int ranks_in_process, int ranks_on_host)
{
	*job = (struct small_job){.size = size};
	for (int i = 0; i < size; i++) {
		int process = i / ranks_in_process, node = i / ranks_on_host;
		char host[16];

		job->of[i] = &job->fixtures[process];
		job->now[i] = SMALL_JOB_START + MS;
		job->ahead[i] = node * 7 * MS;
		if (i % ranks_in_process)
			continue;
		snprintf(host, sizeof(host), "node%d", node);
		nccl_fixture_init(job->of[i], 100 + (uint32_t)process, host,
				  (uint64_t)(SMALL_JOB_START + job->ahead[i]),
				  NCCL_FIXTURE_REALTIME + (node & 1 ? 3 * MS : 0) - job->ahead[i]);
		job->of[i]->header->world_rank = ranks_in_process == 1 ? i : -1;
		job->of[i]->header->world_size = ranks_in_process == 1 ? size : -1;
		job->of[i]->header->state = NCCL_FILE_EXITED;
	}
}

int small_job_add_communicator(struct small_job *job, const char *name, const char *members)
{
	struct small_job_communicator *added = &job->communicators[job->communicator_count];

	added->count = (int)strlen(members);
	for (int i = 0; i < added->count; i++) {
		int rank = added->members[i] = members[i] - '0';

		added->records[rank] = nccl_fixture_communicator(
			job->of[rank], 0xabc0 + (uint64_t)job->communicator_count, added->count, i,
			name);
		snprintf(added->records[rank]->device_address,
			 sizeof(added->records[rank]->device_address), "0000:%02d:00.0", rank);
	}
	return job->communicator_count++;
}

struct nccl_operation *small_job_enqueue(struct small_job *job,
					 const struct small_job_communicator *in, int rank,
					 const char *function, uint64_t sequence)
{
	return nccl_fixture_operation(job->of[rank], in->records[rank], function, sequence, 1 << 20,
				      (uint64_t)(job->now[rank] + job->ahead[rank] - 10 * US));
}

void small_job_run(struct small_job *job, int rank, struct nccl_operation *operation, int64_t begin,
		   int64_t end)
{
	nccl_fixture_run(job->of[rank], operation, (uint64_t)(begin + job->ahead[rank]),
			 (uint64_t)(end + job->ahead[rank]),
			 NCCL_FIXTURE_REALTIME - job->ahead[rank]);
}

void small_job_call(struct small_job *job, int communicator, const char *function)
{
	struct small_job_communicator *in = &job->communicators[communicator];
	int64_t last = 0;

	for (int i = 0; i < in->count; i++)
		last = job->now[in->members[i]] > last ? job->now[in->members[i]] : last;
	for (int i = 0; i < in->count; i++) {
		int rank = in->members[i];

		small_job_run(job, rank,
			      small_job_enqueue(job, in, rank, function, in->sequences[rank]++),
			      job->now[rank], last + 100 * US);
		job->now[rank] = last + 105 * US + rank;
	}
}

void small_job_all_reduce(struct small_job *job, int communicator)
{
	small_job_call(job, communicator, "AllReduce");
}

struct nccl_operation *small_job_enqueue_transfer(struct small_job *job,
						  struct small_job_communicator *in, int rank,
						  bool sends, int peer, uint64_t sequence)
{
	struct nccl_operation *operation =
		small_job_enqueue(job, in, rank, sends ? "Send" : "Recv", sequence);

	operation->kind = NCCL_KIND_P2P;
	for (int i = 0; i < in->count; i++) {
		if (in->members[i] == peer)
			operation->peer = i;
	}
	return operation;
}

void small_job_send(struct small_job *job, int communicator, int from, int to)
{
	struct small_job_communicator *in = &job->communicators[communicator];
	int64_t end = (job->now[from] > job->now[to] ? job->now[from] : job->now[to]) + 50 * US;

	small_job_run(job, from,
		      small_job_enqueue_transfer(job, in, from, true, to, in->sends[from][to]++),
		      job->now[from], end);
	small_job_run(
		job, to,
		small_job_enqueue_transfer(job, in, to, false, from, in->receives[to][from]++),
		job->now[to], end);
	job->now[from] = job->now[to] = end + 5 * US;
}

void small_job_work(struct small_job *job, int rank, int64_t ns)
{
	job->now[rank] += ns;
}

void small_job_work_all(struct small_job *job, int64_t ns)
{
	for (int i = 0; i < job->size; i++)
		small_job_work(job, i, ns);
}

void small_job_write(struct small_job *job, const char *directory, unsigned absent)
{
	for (int i = 0; i < job->size; i++) {
		if (!job->of[i]->bytes)
			continue;
		if (job->of[i]->header->state == NCCL_FILE_EXITED)
			job->of[i]->header->heartbeat_ticks =
				(uint64_t)(job->now[i] + job->ahead[i] + 2 * (int64_t)SECOND_NS);
		if (!(absent >> i & 1))
			nccl_fixture_write(job->of[i], directory);
		nccl_fixture_deinit(job->of[i]);
	}
}
