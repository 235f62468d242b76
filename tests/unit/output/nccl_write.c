/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Writes what the NCCL plugin would leave behind of a small job, a directory a rank, so that the
 * commands and outputs can be tried on it: 4 ranks on 2 hosts whose clocks differ by 3 s.
 *
 *   50 AllReduce of 4 MiB, one a millisecond, that take 400 us; rank 3 enters #20 to #29 200 us
 * late 20 Send from each rank to the next, over the network; that to rank 2 is four times slower
 *   AllGather #1 is skipped by rank 2, which does #0 and #2
 *   AllReduce #50 is entered by ranks 0 and 1 alone; #49 of rank 3 has half the size
 *
 *   nccl_write DIRECTORY [RANKS]      makes DIRECTORY/rank<N>/
 *   nccl_write DIRECTORY chain        makes DIRECTORY/spool/, of another job: rank 3 is late into
 *                                     "tp1", so rank 2 into "dp0", and so rank 0 into "tp0"
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/time_units.h"
#include "unit/analysis/nccl_small_job.h"

#define START     (1000 * SECOND_NS)
#define HOST_SKEW (3 * SECOND_NS)
#define SIZE      (4u << 20)

struct rank {
	struct nccl_fixture fixture;
	struct nccl_communicator_record *communicator;
	uint64_t skew_ns;
	int number, count;
};

/* The GPU's clock is that of host 0 in real time, and a little more for each rank. */
static int64_t gpu_ahead(const struct rank *rank)
{
	return NCCL_FIXTURE_REALTIME - (int64_t)rank->skew_ns + rank->number * 1000;
}

static struct nccl_operation *collective(struct rank *rank, const char *function, uint64_t sequence,
					 uint64_t bytes, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t skew = rank->skew_ns;
	struct nccl_operation *operation =
		nccl_fixture_operation(&rank->fixture, rank->communicator, function, sequence,
				       bytes, begin_ns + skew - 8 * US);

	operation->channels_expected = 1;
	if (end_ns)
		nccl_fixture_run(&rank->fixture, operation, begin_ns + skew, end_ns + skew,
				 gpu_ahead(rank));
	return operation;
}

static void all_reduces(struct rank *rank)
{
	for (unsigned i = 0; i < 50; i++) {
		uint64_t begin = START + (i + 1) * MS, late = i >= 20 && i < 30 ? 200 * US : 0;
		bool smaller = i == 49 && rank->number == 3;

		collective(rank, "AllReduce", i, smaller ? SIZE / 2 : SIZE,
			   begin + (rank->number == 3 ? late : 0), begin + 400 * US + late);
	}
}

static void all_gathers(struct rank *rank)
{
	for (unsigned i = 0; i < 3; i++) {
		uint64_t begin = START + (60 + i) * MS;

		if (i != 1 || rank->number != 2)
			collective(rank, "AllGather", i, 65536, begin, begin + 50 * US);
	}
}

/* One transfer over the network, in 4 steps. */
static void transfer(struct rank *rank, struct nccl_operation *operation, int peer, bool sends,
		     uint64_t begin_ns, uint64_t end_ns)
{
	struct nccl_event *proxy = nccl_fixture_event(&rank->fixture, operation->communicator,
						      NCCL_KIND_PROXY_OP, operation->id, begin_ns);

	proxy->a = 2;
	proxy->c = peer;
	proxy->flags = NCCL_EVENT_STOPPED | NCCL_EVENT_NETWORK | (sends ? NCCL_EVENT_SEND : 0);
	proxy->stop = end_ns;
	proxy->proxy_op.steps = 4;
	proxy->proxy_op.chunk_size = (int32_t)(operation->bytes / 4);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t length = (end_ns - begin_ns) / 4;
		struct nccl_event *step =
			nccl_fixture_event(&rank->fixture, operation->communicator,
					   NCCL_KIND_PROXY_STEP, proxy->id, begin_ns + i * length);

		step->c = (int32_t)i;
		step->a = sends ? 7 : 4 | 1 | 16;
		step->flags = NCCL_EVENT_STOPPED;
		step->stop = begin_ns + (i + 1) * length;
		step->proxy_step.bytes = (uint32_t)(operation->bytes / 4);
		step->proxy_step.wait = (uint32_t)(length / 2 / 64);
	}
	operation->networks_started = operation->networks_stopped = 1;
	operation->network_start = begin_ns;
	operation->network_stop = end_ns;
	operation->network_bytes = (uint32_t)(operation->bytes / 1024);
	operation->flags |= NCCL_OPERATION_NETWORK;
}

static void sends(struct rank *rank)
{
	int next = (rank->number + 1) % rank->count;
	int before = (rank->number + rank->count - 1) % rank->count;

	for (unsigned i = 0; i < 20; i++) {
		uint64_t begin = START + (80 + i) * MS + rank->skew_ns;
		struct nccl_operation *send, *receive;

		send = nccl_fixture_operation(&rank->fixture, rank->communicator, "Send", i, SIZE,
					      begin - 9 * US);
		send->kind = NCCL_KIND_P2P;
		send->peer = next;
		nccl_fixture_run(&rank->fixture, send, begin, begin + (next == 2 ? 800 : 200) * US,
				 gpu_ahead(rank));
		transfer(rank, send, next, true, begin, begin + (next == 2 ? 800 : 200) * US);
		receive = nccl_fixture_operation(&rank->fixture, rank->communicator, "Recv", i,
						 SIZE, begin - 8 * US);
		receive->kind = NCCL_KIND_P2P;
		receive->peer = before;
		nccl_fixture_run(&rank->fixture, receive, begin,
				 begin + (rank->number == 2 ? 800 : 200) * US, gpu_ahead(rank));
	}
}

static void hang(struct rank *rank)
{
	struct nccl_operation *operation;

	if (rank->number > 1)
		return;
	operation = collective(rank, "AllReduce", 50, SIZE, START + 110 * MS, 0);
	operation->channels_started = 0xff;
	operation->channels_stopped = 0x01;
	operation->gpu_start = START + 110 * MS + rank->skew_ns + (uint64_t)gpu_ahead(rank);
	operation->state = NCCL_OPERATION_RUNNING;
}

static void write_rank(const char *directory, int number, int count)
{
	struct rank rank = {.number = number, .count = count};
	char path[4096];

	rank.skew_ns = number >= count / 2 ? HOST_SKEW : 0;
	nccl_fixture_init(&rank.fixture, 1000 + (uint32_t)number,
			  number >= count / 2 ? "node1" : "node0", START + rank.skew_ns,
			  NCCL_FIXTURE_REALTIME - (int64_t)rank.skew_ns + 100000 * number);
	rank.communicator = nccl_fixture_communicator(&rank.fixture, 0xfeedbeef, count, number,
						      "world \"x\"\n");
	rank.fixture.header->world_rank = number;
	rank.fixture.header->world_size = count;
	all_reduces(&rank);
	all_gathers(&rank);
	sends(&rank);
	hang(&rank);
	rank.fixture.header->heartbeat_ticks = START + rank.skew_ns + 30 * SECOND_NS;
	rank.fixture.header->losses[NCCL_LOSS_RESTARTED] = 3;
	snprintf(path, sizeof(path), "%s/rank%d", directory, number);
	mkdir(path, 0777);
	nccl_fixture_write(&rank.fixture, path);
	nccl_fixture_deinit(&rank.fixture);
}

static void write_chain(const char *directory)
{
	struct small_job job;

	small_job_begin(&job, 4, 1, 2);
	small_job_add_communicator(&job, "tp0", "01");
	small_job_add_communicator(&job, "tp1", "23");
	small_job_add_communicator(&job, "dp0", "02");
	for (unsigned step = 0; step < 10; step++) {
		small_job_work_all(&job, 200 * US);
		small_job_work(&job, 3, 5 * MS);
		small_job_all_reduce(&job, 1);
		small_job_all_reduce(&job, 2);
		small_job_all_reduce(&job, 0);
	}
	small_job_write(&job, directory, 0);
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 4;

	if (argc > 2 && strcmp(argv[2], "chain") == 0) {
		write_chain(argv[1]);
		return 0;
	}
	if (argc < 2 || count < 4)
		return 2;
	for (int i = 0; i < count; i++)
		write_rank(argv[1], i, count);
	return 0;
}
