/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Jobs made up at random, each with one fault whose rank is known: groups for tensors, pipelines
 * and batches, hosts whose clocks are seconds apart, ranks that leave a collective one after the
 * other, as rings and trees let them, a rank that is late, hangs, is killed, or calls something
 * else, or one without records. The right rank must be named in 99 of 100 jobs, and in a job
 * without a fault, or without the records of the rank at fault, nobody. Where files are missing or
 * cut off, nobody need be named, but never somebody else.
 *
 *   test_analysis_nccl_jobs [JOBS [SEED [RANKS]]]   RANKS: of each job; 0: 2 to 64 of them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/nccl/calls.h"
#include "analysis/nccl/join.h"
#include "analysis/nccl/roots.h"
#include "common/time_units.h"
#include "unit/analysis/nccl_fixture.h"
#include "unit/analysis/test_directory.h"

#define US                   INT64_C(1000)
#define MS                   INT64_C(1000000)
#define START                (INT64_C(1000) * (int64_t)SECOND_NS)
#define RANKS_MAX            1024
#define RANKS_DRAWN          64 /* at most, where their number is not asked for */
#define STEPS                8
#define LATE_NS              (5 * MS)
#define HOP_IN_HOST_NS       900 /* from a rank to the next one of a ring or tree */
#define HOP_BETWEEN_HOSTS_NS 4000
#define FAULT_STEP           4

enum fault {
	FAULT_NONE,
	FAULT_LATE_TENSOR,
	FAULT_LATE_BATCH,
	FAULT_LATE_SENDER,
	FAULT_LATE_RECEIVER,
	FAULT_LATE_WITHOUT_RECORDS,
	FAULT_WITHOUT_RECORDS,
	FAULT_HANG,
	FAULT_KILLED,
	FAULT_SKIPPED_CALL,
	FAULT_DOUBLED_CALL,
	FAULT_OTHER_FUNCTION,
	FAULT_OTHER_SIZE,
	FAULT_DEADLOCK,
	FAULTS
};

static const char *const fault_names[FAULTS] = {"none",
						"late into a tensor group",
						"late into a batch group",
						"late sender",
						"late receiver",
						"late, without records",
						"without records",
						"hangs",
						"killed",
						"skips a call",
						"makes a call twice",
						"calls another function",
						"calls with another size",
						"two send to each other first"};

enum group { WORLD, TENSOR, BATCH, PIPELINE, GROUPS };

struct rank {
	struct nccl_fixture fixture;
	struct nccl_communicator_record *communicators[GROUPS];
	uint64_t sequences[GROUPS][2], sends, receives; /* AllReduce and AllGather */
	uint64_t world_calls;
	int64_t now, clock_ahead;
	struct nccl_operation *open_send; /* whose receive was not simulated yet */
	int64_t open_send_begin;
	bool is_stuck;
};

struct job {
	struct rank ranks[RANKS_MAX];
	int tensor, pipeline, batch, size, victim, wanted_size, ranks_on_host;
	enum fault fault;
	unsigned absent_one_in, cut_one_in; /* of so many files one is; 0: none */
	uint64_t seed, state, state_of_leaving;
};

/* ---- chance ---- */

static uint64_t draw(struct job *job, uint64_t below)
{
	job->state ^= job->state << 13;
	job->state ^= job->state >> 7;
	job->state ^= job->state << 17;
	return job->state % below;
}

/* By how much a rank leaves a collective behind the first one. */
static int64_t draw_leaving_lag(struct job *job, int count)
{
	uint64_t hops = 1, hop = count > job->ranks_on_host ? HOP_BETWEEN_HOSTS_NS : HOP_IN_HOST_NS;

	while (1 << hops < count)
		hops++;
	job->state_of_leaving = job->state_of_leaving * UINT64_C(6364136223846793005) + 1;
	return (int64_t)((job->state_of_leaving >> 33) % (hops * hop));
}

/* ---- layout ---- */

static int rank_at(const struct job *job, int p, int b, int t)
{
	return (p * job->batch + b) * job->tensor + t;
}

static int tensor_of(const struct job *job, int rank)
{
	return rank % job->tensor;
}

static int batch_of(const struct job *job, int rank)
{
	return rank / job->tensor % job->batch;
}

static int pipeline_of(const struct job *job, int rank)
{
	return rank / job->tensor / job->batch;
}

static int list_group(const struct job *job, enum group group, int rank, int ret[RANKS_MAX])
{
	int count = 0, p = pipeline_of(job, rank), b = batch_of(job, rank),
	    t = tensor_of(job, rank);

	for (int other = 0; other < job->size; other++) {
		bool same_p = pipeline_of(job, other) == p, same_b = batch_of(job, other) == b,
		     same_t = tensor_of(job, other) == t;

		if (group == WORLD || (group == TENSOR && same_p && same_b) ||
		    (group == BATCH && same_p && same_t) || (group == PIPELINE && same_b && same_t))
			ret[count++] = other;
	}
	return count;
}

static void begin_ranks(struct job *job)
{
	static const char *const names[GROUPS] = {"world", "tp", "dp", "pp"};
	int64_t ahead[RANKS_MAX];

	for (int host = 0; host < RANKS_DRAWN || host < job->size; host++)
		ahead[host] = host ? (int64_t)draw(job, 10000000000) - 5000000000 : 0;
	for (int i = 0; i < job->size; i++) {
		struct rank *rank = &job->ranks[i];
		int members[RANKS_MAX];
		char host[16];

		*rank = (struct rank){.now = START, .clock_ahead = ahead[i / job->ranks_on_host]};
		snprintf(host, sizeof(host), "node%d", i / job->ranks_on_host);
		nccl_fixture_init(&rank->fixture, 100 + (uint32_t)i, host,
				  (uint64_t)(START + rank->clock_ahead),
				  NCCL_FIXTURE_REALTIME - rank->clock_ahead +
					  (int64_t)draw(job, (uint64_t)(20 * MS)));
		rank->fixture.header->world_rank = i;
		rank->fixture.header->world_size = job->size;
		rank->fixture.header->state = NCCL_FILE_EXITED;
		for (int group = 0; group < GROUPS; group++) {
			int count = list_group(job, (enum group)group, i, members), own = 0;

			while (members[own] != i)
				own++;
			if (count > 1)
				rank->communicators[group] = nccl_fixture_communicator(
					&rank->fixture,
					(uint64_t)(group + 1) << 32 | (uint64_t)members[0], count,
					own, names[group]);
		}
	}
}

/* ---- operations ---- */

static struct nccl_operation *add_operation(struct rank *rank, enum group group,
					    const char *function, uint64_t sequence, uint64_t bytes)
{
	return nccl_fixture_operation(&rank->fixture, rank->communicators[group], function,
				      sequence, bytes,
				      (uint64_t)(rank->now + rank->clock_ahead - 10 * US));
}

static void run_operation(struct rank *rank, struct nccl_operation *operation, int64_t begin,
			  int64_t end)
{
	nccl_fixture_run(&rank->fixture, operation, (uint64_t)(begin + rank->clock_ahead),
			 (uint64_t)(end + rank->clock_ahead),
			 NCCL_FIXTURE_REALTIME - rank->clock_ahead);
	rank->now = end + 5 * US;
}

static void leave_open(struct rank *rank, struct nccl_operation *operation)
{
	operation->channels_started = 1;
	operation->state = NCCL_OPERATION_RUNNING;
	rank->is_stuck = true;
}

static void work(struct job *job, struct rank *rank)
{
	rank->now += 200 * US + (int64_t)draw(job, 3000);
}

/* How long after the first stage of a pipeline the others receive. They have other work meanwhile,
 * and the first ones have afterwards: a pipeline that is filled and emptied has no late rank. */
static int64_t get_stage_lag(const struct job *job, int p)
{
	int64_t groups = job->tensor > 1 ? 2 * 105 * US : 0, lag = 0;

	for (int stage = 0; stage < p; stage++)
		lag += 201500 + groups + (stage ? 55 * US : 0);
	return lag;
}

static void run_collective(struct job *job, enum group group, const int *members, int count,
			   bool gather, int64_t lasts)
{
	struct nccl_operation *operations[RANKS_MAX];
	int64_t last = 0;
	bool stuck = false;

	for (int i = 0; i < count; i++) {
		struct rank *rank = &job->ranks[members[i]];

		stuck |= rank->is_stuck;
		operations[i] =
			rank->is_stuck
				? NULL
				: add_operation(rank, group, gather ? "AllGather" : "AllReduce",
						rank->sequences[group][gather]++, 1 << 20);
		if (rank->now > last)
			last = rank->now;
	}
	for (int i = 0; i < count; i++) {
		struct rank *rank = &job->ranks[members[i]];

		if (operations[i] && stuck)
			leave_open(rank, operations[i]);
		else if (operations[i])
			run_operation(rank, operations[i], rank->now,
				      last + lasts + draw_leaving_lag(job, count));
	}
}

/* The world's calls alternate between two functions, so that their order tells one from another. */
static void run_world_collective(struct job *job, unsigned step)
{
	struct nccl_operation *operations[RANKS_MAX];
	bool stuck = false, gather = step % 2;
	int64_t last = 0;

	for (int i = 0; i < job->size; i++) {
		struct rank *rank = &job->ranks[i];
		bool odd = i == job->victim && step == FAULT_STEP, own = gather;

		stuck |= rank->is_stuck;
		operations[i] = NULL;
		if (rank->is_stuck || (odd && job->fault == FAULT_SKIPPED_CALL))
			continue;
		if (odd && job->fault == FAULT_OTHER_FUNCTION)
			own = !gather;
		operations[i] = add_operation(
			rank, WORLD, own ? "AllGather" : "AllReduce", rank->sequences[WORLD][own]++,
			odd && job->fault == FAULT_OTHER_SIZE ? 512 : 1 << 20);
		if (rank->now > last)
			last = rank->now;
	}
	for (int i = 0; i < job->size; i++) {
		if (operations[i] && stuck)
			leave_open(&job->ranks[i], operations[i]);
		else if (operations[i])
			run_operation(&job->ranks[i], operations[i], job->ranks[i].now,
				      last + 150 * US + draw_leaving_lag(job, job->size));
		if (i == job->victim && step == FAULT_STEP && job->fault == FAULT_DOUBLED_CALL) {
			struct rank *rank = &job->ranks[i];

			run_operation(rank,
				      add_operation(rank, WORLD, gather ? "AllGather" : "AllReduce",
						    rank->sequences[WORLD][gather]++, 1 << 20),
				      rank->now, rank->now + 20 * US);
		}
	}
}

static struct nccl_operation *add_transfer(struct rank *rank, bool sends, uint64_t sequence,
					   int peer)
{
	struct nccl_operation *operation =
		add_operation(rank, PIPELINE, sends ? "Send" : "Recv", sequence, 1 << 20);

	operation->kind = NCCL_KIND_P2P;
	operation->peer = peer;
	return operation;
}

static void send_to_next(struct job *job, struct rank *rank, int p)
{
	(void)job;
	if (rank->is_stuck)
		return;
	rank->open_send = add_transfer(rank, true, rank->sends++, p + 1);
	rank->open_send_begin = rank->now;
}

static void receive_from_previous(struct job *job, struct rank *rank, int p)
{
	struct rank *previous = &job->ranks[rank - job->ranks - job->tensor * job->batch];
	struct nccl_operation *receive;
	int64_t end;

	if (rank->is_stuck && !previous->is_stuck && previous->open_send)
		leave_open(previous, previous->open_send);
	if (rank->is_stuck)
		return;
	receive = add_transfer(rank, false, rank->receives++, p - 1);
	if (previous->is_stuck || !previous->open_send) {
		leave_open(rank, receive);
		return;
	}
	end = (rank->now > previous->open_send_begin ? rank->now : previous->open_send_begin) +
	      50 * US;
	run_operation(rank, receive, rank->now, end);
	run_operation(previous, previous->open_send, previous->open_send_begin, end);
	previous->open_send = NULL;
}

/* ---- a job ---- */

static bool is_at_fault(const struct job *job, int rank, enum fault fault, unsigned step)
{
	return rank == job->victim && step % 4 == 0 && step &&
	       (job->fault == fault ||
		(fault == FAULT_LATE_TENSOR && job->fault == FAULT_LATE_WITHOUT_RECORDS));
}

static void run_tensor_groups(struct job *job, int p, unsigned step)
{
	for (int b = 0; b < job->batch; b++) {
		int members[RANKS_MAX], count;

		for (int t = 0; t < job->tensor; t++) {
			int number = rank_at(job, p, b, t);
			struct rank *rank = &job->ranks[number];

			if (number == job->victim && step == FAULT_STEP &&
			    (job->fault == FAULT_HANG || job->fault == FAULT_KILLED))
				rank->is_stuck = true;
			if (is_at_fault(job, number, FAULT_LATE_RECEIVER, step))
				rank->now += LATE_NS;
			rank->now += get_stage_lag(job, p);
			if (p > 0)
				receive_from_previous(job, rank, p);
			if (is_at_fault(job, number, FAULT_LATE_TENSOR, step))
				rank->now += LATE_NS;
			work(job, rank);
		}
		count = list_group(job, TENSOR, rank_at(job, p, b, 0), members);
		for (int i = 0; count > 1 && i < 2; i++)
			run_collective(job, TENSOR, members, count, false, 100 * US);
		for (int t = 0; t < job->tensor && p + 1 < job->pipeline; t++) {
			int number = rank_at(job, p, b, t);

			if (is_at_fault(job, number, FAULT_LATE_SENDER, step))
				job->ranks[number].now += LATE_NS;
			send_to_next(job, &job->ranks[number], p);
		}
	}
}

/* Both ranks of a pair send first: neither send ends. */
static void make_deadlock(struct job *job)
{
	struct rank *one = &job->ranks[job->victim],
		    *other = &job->ranks[job->victim + job->tensor * job->batch];
	int p = pipeline_of(job, job->victim);

	leave_open(one, add_transfer(one, true, one->sends++, p + 1));
	leave_open(other, add_transfer(other, true, 100, p));
}

static void run_step(struct job *job, unsigned step)
{
	int members[RANKS_MAX];

	if (job->fault == FAULT_DEADLOCK && step == FAULT_STEP)
		make_deadlock(job);
	for (int p = 0; p < job->pipeline; p++)
		run_tensor_groups(job, p, step);
	for (int i = 0; i < job->size; i++) {
		int p = pipeline_of(job, i);

		job->ranks[i].now += get_stage_lag(job, job->pipeline - 1) - get_stage_lag(job, p) -
				     (p + 1 < job->pipeline ? 55 * US : 0) + (p == 0 ? 55 * US : 0);
		if (is_at_fault(job, i, FAULT_LATE_BATCH, step))
			job->ranks[i].now += LATE_NS;
	}
	for (int i = 0; i < job->size; i++) {
		int count = list_group(job, BATCH, i, members);

		if (count > 1 && members[0] == i)
			run_collective(job, BATCH, members, count, false, 150 * US);
	}
	run_world_collective(job, step);
}

static bool layout_fits(const struct job *job)
{
	switch (job->fault) {
	case FAULT_LATE_TENSOR:
	case FAULT_LATE_WITHOUT_RECORDS:
		return job->tensor > 1;
	case FAULT_LATE_BATCH:
		return job->batch > 1;
	case FAULT_LATE_SENDER:
	case FAULT_LATE_RECEIVER:
	case FAULT_DEADLOCK:
		return job->pipeline > 1;
	default:
		return job->size > 2;
	}
}

static void choose_layout(struct job *job)
{
	do {
		job->tensor = 1 << draw(job, 3);
		job->batch = 1 << draw(job, 3);
		job->pipeline = 1 << draw(job, 3);
		if (job->wanted_size)
			job->batch = job->wanted_size / job->tensor / job->pipeline;
		job->size = job->tensor * job->batch * job->pipeline;
	} while (job->size < 2 || job->size > RANKS_MAX || !layout_fits(job));
	job->ranks_on_host = job->wanted_size ? 8 : 4;
	do {
		job->victim = (int)draw(job, (uint64_t)job->size);
	} while (((job->fault == FAULT_LATE_SENDER || job->fault == FAULT_DEADLOCK) &&
		  pipeline_of(job, job->victim) + 1 == job->pipeline) ||
		 (job->fault == FAULT_LATE_RECEIVER && pipeline_of(job, job->victim) == 0));
}

static void write_job(struct job *job, const char *directory)
{
	int64_t end = 0;

	begin_ranks(job);
	for (unsigned step = 0; step < STEPS; step++)
		run_step(job, step);
	for (int i = 0; i < job->size; i++)
		end = job->ranks[i].now > end ? job->ranks[i].now : end;
	for (int i = 0; i < job->size; i++) {
		struct rank *rank = &job->ranks[i];
		bool killed = i == job->victim && job->fault == FAULT_KILLED;
		bool gone = i == job->victim && (job->fault == FAULT_LATE_WITHOUT_RECORDS ||
						 job->fault == FAULT_WITHOUT_RECORDS);

		rank->fixture.header->heartbeat_ticks =
			(uint64_t)((killed ? rank->now : end + 30 * (int64_t)SECOND_NS) +
				   rank->clock_ahead);
		rank->fixture.header->state = killed ? NCCL_FILE_OPEN : NCCL_FILE_EXITED;
		gone |= job->absent_one_in && !draw(job, job->absent_one_in);
		if (job->cut_one_in && !draw(job, job->cut_one_in))
			rank->fixture.size -= draw(job, rank->fixture.size - NCCL_CHUNKS_OFFSET);
		if (!gone)
			nccl_fixture_write(&rank->fixture, directory);
		nccl_fixture_deinit(&rank->fixture);
	}
}

/* ---- what kymo says ---- */

/* Who calls something else is early or late from then on, and that is true. */
static bool late_rank_is_right(struct job *job, struct nccl_data *data)
{
	struct nccl_joined_collectives joined;
	struct problem problem = {""};
	struct nccl_late_ranks late;
	bool wanted = job->fault >= FAULT_LATE_TENSOR && job->fault <= FAULT_LATE_RECEIVER;

	assert_int_equal(nccl_join_collectives(data, &joined, &problem), 0);
	assert_int_equal(nccl_find_late_ranks(data, &joined, &late), 0);
	nccl_joined_collectives_deinit(&joined);
	if (job->fault >= FAULT_SKIPPED_CALL && job->fault <= FAULT_OTHER_SIZE)
		return true;
	if (late.count == wanted &&
	    (!wanted || data->job_ranks[late.ranks[0].job_rank].rank == job->victim))
		return true;
	for (uint32_t i = 0; i < late.count; i++)
		print_message("late: %d, into %llu, others waited %llu ns\n",
			      data->job_ranks[late.ranks[i].job_rank].rank,
			      (unsigned long long)(late.ranks[i].sum.last +
						   late.ranks[i].sum.last_transfers),
			      (unsigned long long)late.ranks[i].sum.caused_wait_ns);
	if (!late.count)
		print_message("nobody is late; others waited %llu ns at most\n",
			      (unsigned long long)late.longest_caused_wait_ns);
	return false;
}

static bool root_is_right(struct job *job, struct nccl_data *data)
{
	bool hangs = job->fault == FAULT_HANG || job->fault == FAULT_KILLED,
	     locked = job->fault == FAULT_DEADLOCK, right;
	struct nccl_hang_findings hang;
	struct nccl_hang_roots roots;
	struct problem problem = {""};

	assert_int_equal(nccl_find_stuck_operations(data, &hang, &problem), 0);
	assert_int_equal(nccl_find_hang_roots(data, &hang, &roots), 0);
	if (hangs)
		right = roots.root_count == 1 && roots.roots[0].kind == NCCL_ROOT_RANK &&
			data->job_ranks[roots.roots[0].job_rank].rank == job->victim;
	else if (locked)
		right = roots.root_count == 1 && roots.roots[0].kind == NCCL_ROOT_CYCLE;
	else
		right = roots.root_count == 0;
	nccl_hang_roots_deinit(&roots);
	nccl_hang_findings_deinit(&hang);
	return right;
}

static bool calls_are_right(const struct job *job, const struct nccl_data *data)
{
	bool wanted = job->fault >= FAULT_SKIPPED_CALL && job->fault <= FAULT_OTHER_SIZE;
	const struct nccl_differing_call *call = data->differing_calls;

	if (!wanted)
		return data->differing_call_count == 0;
	return data->differing_call_count == 1 &&
	       data->members[call->member].job_rank == job->victim &&
	       call->position == FAULT_STEP + (job->fault == FAULT_DOUBLED_CALL) &&
	       call->difference == (job->fault == FAULT_SKIPPED_CALL   ? NCCL_CALL_IS_SKIPPED
				    : job->fault == FAULT_DOUBLED_CALL ? NCCL_CALL_IS_EXTRA
								       : NCCL_CALL_IS_DIFFERENT);
}

static bool missing_rank_is_right(const struct job *job, const struct nccl_data *data)
{
	if (job->fault != FAULT_LATE_WITHOUT_RECORDS && job->fault != FAULT_WITHOUT_RECORDS)
		return data->missing_job_rank_count == 0;
	return data->missing_job_rank_count == 1 && data->missing_job_ranks[0] == job->victim;
}

/* Where records are missing, nobody need be named, but nobody else is. */
static bool nobody_else_is_named(struct job *job, struct nccl_data *data)
{
	bool late_job = job->fault >= FAULT_LATE_TENSOR && job->fault <= FAULT_LATE_RECEIVER,
	     other_calls = job->fault >= FAULT_SKIPPED_CALL && job->fault <= FAULT_OTHER_SIZE,
	     hangs = job->fault == FAULT_HANG || job->fault == FAULT_KILLED, right = true;
	struct nccl_joined_collectives joined;
	struct problem problem = {""};
	struct nccl_hang_findings hang;
	struct nccl_hang_roots roots;
	struct nccl_late_ranks late;

	assert_int_equal(nccl_join_collectives(data, &joined, &problem), 0);
	assert_int_equal(nccl_find_late_ranks(data, &joined, &late), 0);
	nccl_joined_collectives_deinit(&joined);
	for (uint32_t i = 0; i < late.count && !other_calls; i++)
		right &= late_job && data->job_ranks[late.ranks[i].job_rank].rank == job->victim;
	assert_int_equal(nccl_find_stuck_operations(data, &hang, &problem), 0);
	assert_int_equal(nccl_find_hang_roots(data, &hang, &roots), 0);
	for (size_t i = 0; i < roots.root_count; i++) {
		const struct nccl_hang_root *root = &roots.roots[i];

		if (root->kind == NCCL_ROOT_NO_RECORDS || root->is_unsure)
			continue;
		right &= root->kind == NCCL_ROOT_CYCLE
				 ? job->fault == FAULT_DEADLOCK
				 : hangs && root->kind == NCCL_ROOT_RANK &&
					   data->job_ranks[root->job_rank].rank == job->victim;
	}
	nccl_hang_roots_deinit(&roots);
	nccl_hang_findings_deinit(&hang);
	for (uint32_t i = 0; i < data->differing_call_count; i++) {
		const struct nccl_differing_call *call = &data->differing_calls[i];

		right &= other_calls && (call->difference == NCCL_CALL_IS_DISPUTED ||
					 data->members[call->member].job_rank == job->victim);
	}
	return right;
}

static bool nobody_else_is_named_in_job(struct job *job)
{
	struct nccl_data *data = NULL;
	struct problem problem = {""};
	void *directory = NULL;
	bool right = true;

	assert_int_equal(test_directory_create(&directory), 0);
	choose_layout(job);
	write_job(job, directory);
	if (nccl_data_read_directory(directory, &data, &problem) == 0 && data)
		right = nobody_else_is_named(job, data);
	nccl_data_free(data);
	test_directory_remove(&directory);
	if (!right)
		print_message("seed %llu: rank %d %s: another one is named\n",
			      (unsigned long long)job->seed, job->victim, fault_names[job->fault]);
	return right;
}

static bool job_is_understood(struct job *job)
{
	struct nccl_data *data = NULL;
	struct problem problem = {""};
	void *directory = NULL;
	bool late, root, calls, missing;

	clock_t begin;

	assert_int_equal(test_directory_create(&directory), 0);
	choose_layout(job);
	write_job(job, directory);
	begin = clock();
	if (nccl_data_read_directory(directory, &data, &problem) < 0 || !data)
		fail_msg("%s", problem.text);
	late = late_rank_is_right(job, data);
	root = root_is_right(job, data);
	calls = calls_are_right(job, data);
	missing = missing_rank_is_right(job, data);
	nccl_data_free(data);
	if (job->wanted_size)
		print_message("%d ranks on %d hosts, %s: %.2f s\n", job->size,
			      job->size / job->ranks_on_host, fault_names[job->fault],
			      (double)(clock() - begin) / CLOCKS_PER_SEC);
	test_directory_remove(&directory);
	if (!late || !root || !calls || !missing)
		print_message(
			"seed %llu: tensor %d, batch %d, pipeline %d, rank %d %s:%s%s%s%s wrong\n",
			(unsigned long long)job->seed, job->tensor, job->batch, job->pipeline,
			job->victim, fault_names[job->fault], late ? "" : " late rank",
			root ? "" : " root", calls ? "" : " calls",
			missing ? "" : " missing ranks");
	return late && root && calls && missing;
}

static unsigned job_count = 42;
static uint64_t first_seed = 1;
static int rank_count;

static void run_jobs(unsigned count, int ranks, unsigned absent_one_in, unsigned cut_one_in)
{
	bool complete = !absent_one_in && !cut_one_in;
	struct job *job = calloc(1, sizeof(*job));
	unsigned wrong = 0;

	assert_non_null(job);
	for (unsigned i = 0; i < count; i++) {
		job->seed = first_seed + i;
		job->state = job->seed * UINT64_C(0x9e3779b97f4a7c15);
		job->state_of_leaving = job->state;
		job->fault = (enum fault)(i % FAULTS);
		job->wanted_size = ranks;
		job->absent_one_in = absent_one_in;
		job->cut_one_in = cut_one_in;
		wrong += complete ? !job_is_understood(job) : !nobody_else_is_named_in_job(job);
	}
	free(job);
	print_message("%u of %u jobs are understood\n", count - wrong, count);
	assert_true(complete ? wrong * 100 <= count : !wrong);
}

static void the_right_rank_is_named(void **state)
{
	(void)state;
	run_jobs(job_count, rank_count, 0, 0);
}

static void the_right_rank_of_many_is_named(void **state)
{
	(void)state;
	run_jobs(FAULTS, 128, 0, 0);
}

static void nobody_else_is_named_where_files_are_missing(void **state)
{
	(void)state;
	run_jobs(job_count, rank_count, 4, 0);
}

static void nobody_else_is_named_where_files_are_cut(void **state)
{
	(void)state;
	run_jobs(job_count, rank_count, 0, 3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_rank_is_named),
		cmocka_unit_test(nobody_else_is_named_where_files_are_missing),
		cmocka_unit_test(nobody_else_is_named_where_files_are_cut),
		cmocka_unit_test(the_right_rank_of_many_is_named)};
	const struct CMUnitTest asked[] = {tests[0], tests[1], tests[2]};

	if (argc < 2)
		return cmocka_run_group_tests(tests, NULL, NULL);
	job_count = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	if (argc > 3)
		rank_count = atoi(argv[3]);
	return cmocka_run_group_tests(asked, NULL, NULL);
}
