/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One rank of a job without GPUs: loads a profiler plugin as NCCL's loader does and calls it as
 * NCCL does, with GPU times of its own making. What happens comes line by line from standard
 * input, each answered with "ok", so that several ranks can be led through a story step by step:
 *
 *   gpu OFFSET_NS                 the GPU's clock is CLOCK_REALTIME plus this from now on
 *   comm HASH NRANKS RANK NAME    makes a communicator; further lines are about the last one
 *   use N                         ... about the Nth one, from 0
 *   coll FUNC SEQ COUNT TYPE CHANNELS   enqueues a collective; its channels begin on the GPU
 *   p2p FUNC PEER COUNT TYPE CHANNELS   the same for Send and Recv
 *   begin CHANNEL | end CHANNEL | done  a channel of it begins or ends on the GPU; all end
 *   proxy CHANNEL PEER send|recv STEPS | step N BYTES | proxydone    the network's side of it
 *   loop N COUNT NS               N complete AllReduce of NS each, as fast as they can be told
 *   tid                           says the thread's id
 *   pause SECONDS | finalize | kill | abort | exit STATUS
 *
 *   nccl_job PLUGIN [v2]
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	GROUP = 1,
	COLL = 2,
	P2P = 4,
	PROXY_OP = 8,
	PROXY_STEP = 0x10,
	KERNEL_CHANNEL = 0x40,
	GROUP_API = 0x100,
	COLL_API = 0x200,
	P2P_API = 0x400,
	KERNEL_LAUNCH = 0x800,

	STATE_SEND_GPU_WAIT = 8,
	STATE_SEND_WAIT = 9,
	STATE_RECV_WAIT = 10,
	STATE_RECV_GPU_WAIT = 12,
	STATE_PROXY_OP_IN_PROGRESS = 19,
	STATE_SEND_PEER_WAIT = 20,
	STATE_KERNEL_CHANNEL_STOP = 22,
	STATE_GROUP_START_API_STOP = 23,
	STATE_GROUP_END_API_START = 24,

	CHANNELS = 64,
	COMMUNICATORS = 4096,
	DESCRIPTOR_SIZE = 136,
};

typedef void (*logger)(int level, unsigned long flags, const char *file, int line,
		       const char *format, ...);

/* ncclProfiler_v5_t and ncclProfiler_v2_t have the same functions but for init. */
struct profiler {
	const char *name;
	void (*init)(void);
	int (*start)(void *context, void **handle, void *descriptor);
	int (*stop)(void *handle);
	int (*record)(void *handle, int state, void *arguments);
	int (*finalize)(void *context);
};
typedef int (*init_v5)(void **context, uint64_t id, int *mask, const char *name, int nodes,
		       int ranks, int rank, logger log);
typedef int (*init_v2)(void **context, int *mask);

struct communicator {
	void *context;
	uint64_t hash;
	int ranks, rank;
	char name[64];
};

static const struct profiler *profiler;
static int is_v2;
static int mask;
static int64_t gpu_offset_ns;
static struct communicator communicators[COMMUNICATORS], *current;
static int communicator_count;
static void *operation, *channels[CHANNELS], *proxy_op, *group;
static int proxy_sends;

static void say(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
	va_list arguments;

	(void)flags, (void)file, (void)line;
	va_start(arguments, format);
	fprintf(stderr, "NCCL %d: ", level);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

static uint64_t gpu_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)((int64_t)now.tv_sec * 1000000000 + now.tv_nsec + gpu_offset_ns);
}

/* ---- descriptors, at the offsets that NCCL's headers give them ---- */

static void put(void *descriptor, size_t offset, const void *value, size_t size)
{
	memcpy((char *)descriptor + offset, value, size);
}

static void put_number(void *descriptor, size_t offset, uint64_t value, size_t size)
{
	put(descriptor, offset, &value, size);
}

static void put_text(void *descriptor, size_t offset, const char *value)
{
	put(descriptor, offset, &value, sizeof(value));
}

static void *start(uint64_t type, void *parent, unsigned char descriptor[DESCRIPTOR_SIZE])
{
	void *handle = NULL;

	if (!(mask & (int)type))
		return NULL;
	put_number(descriptor, 0, type, is_v2 ? 1 : 8);
	put(descriptor, 8, &parent, sizeof(parent));
	put_number(descriptor, 16, (uint64_t)current->rank, 4);
	profiler->start(current->context, &handle, descriptor);
	return handle;
}

static void stop(void *handle)
{
	if (handle)
		profiler->stop(handle);
}

/* Functions and types must outlive the call: they are NCCL's own constants. */
static const char *constant(const char *text)
{
	static const char *const known[] = {
		"AllReduce", "AllGather", "ReduceScatter", "Broadcast",   "Reduce",      "Send",
		"Recv",      "ncclInt8",  "Unknown",       "ncclFloat32", "ncclBfloat16"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (!strcmp(known[i], text))
			return known[i];
	}
	return "Unknown";
}

/* ---- one operation ---- */

static void *start_api(int type, void *group_api, const char *function, uint64_t count,
		       const char *datatype)
{
	unsigned char descriptor[DESCRIPTOR_SIZE] = {0};

	put_text(descriptor, 24, constant(function));
	put_number(descriptor, 32, count, 8);
	put_text(descriptor, 40, constant(datatype));
	put_number(descriptor, type == COLL_API ? 56 : 48, 0x5000, 8);
	return start((uint64_t)type, group_api, descriptor);
}

static void *start_coll(void *api, const char *function, uint64_t sequence, uint64_t count,
			const char *datatype, uint64_t channel_count)
{
	unsigned char descriptor[DESCRIPTOR_SIZE] = {0};

	if (is_v2) {
		put_text(descriptor, 24, current->name);
		put_number(descriptor, 32, current->hash, 8);
		put_number(descriptor, 40, sequence, 8);
		put_text(descriptor, 48, constant(function));
		put_number(descriptor, 72, count, 8);
		put_text(descriptor, 88, constant(datatype));
		put_number(descriptor, 104, channel_count, 1);
		put_text(descriptor, 112, "RING");
		put_text(descriptor, 120, "SIMPLE");
		return start(COLL, api, descriptor);
	}
	put_number(descriptor, 24, sequence, 8);
	put_text(descriptor, 32, constant(function));
	put_number(descriptor, 40, 0x1000, 8);
	put_number(descriptor, 48, 0x2000, 8);
	put_number(descriptor, 56, count, 8);
	put_text(descriptor, 72, constant(datatype));
	put_number(descriptor, 80, channel_count, 1);
	put_number(descriptor, 81, 16, 1);
	put_text(descriptor, 88, "RING");
	put_text(descriptor, 96, "SIMPLE");
	put(descriptor, 104, &group, sizeof(group));
	return start(COLL, api, descriptor);
}

static void *start_p2p(void *api, const char *function, int peer, uint64_t count,
		       const char *datatype, uint64_t channel_count)
{
	unsigned char descriptor[DESCRIPTOR_SIZE] = {0};

	if (is_v2) {
		put_text(descriptor, 24, current->name);
		put_number(descriptor, 32, current->hash, 8);
		put_text(descriptor, 40, constant(function));
		put_text(descriptor, 56, constant(datatype));
		put_number(descriptor, 64, count, 8);
		put_number(descriptor, 72, (uint64_t)peer, 4);
		return start(P2P, api, descriptor);
	}
	put_text(descriptor, 24, constant(function));
	put_number(descriptor, 32, 0x1000, 8);
	put_text(descriptor, 40, constant(datatype));
	put_number(descriptor, 48, count, 8);
	put_number(descriptor, 56, (uint64_t)peer, 4);
	put_number(descriptor, 60, channel_count, 1);
	put(descriptor, 64, &group, sizeof(group));
	return start(P2P, api, descriptor);
}

static void begin_channel(int channel)
{
	unsigned char descriptor[DESCRIPTOR_SIZE] = {0};

	put_number(descriptor, 24, (uint64_t)channel, 1);
	put_number(descriptor, 32, gpu_clock(), 8);
	channels[channel] = start(KERNEL_CHANNEL, operation, descriptor);
}

static void end_channel(int channel)
{
	uint64_t clock = gpu_clock();

	if (!channels[channel])
		return;
	profiler->record(channels[channel], STATE_KERNEL_CHANNEL_STOP, &clock);
	stop(channels[channel]);
	channels[channel] = NULL;
}

static void enqueue(int api_type, const char *function, uint64_t sequence, int peer, uint64_t count,
		    const char *datatype, int channel_count)
{
	unsigned char descriptor[DESCRIPTOR_SIZE] = {0};
	void *group_api, *api, *launch;

	group_api = start(GROUP_API, NULL, descriptor);
	if (group_api)
		profiler->record(group_api, STATE_GROUP_START_API_STOP, NULL);
	api = start_api(api_type, group_api, function, count, datatype);
	stop(api);
	if (group_api)
		profiler->record(group_api, STATE_GROUP_END_API_START, NULL);
	memset(descriptor, 0, sizeof(descriptor));
	put_number(descriptor, 24, 0x5000, 8);
	launch = start(KERNEL_LAUNCH, group_api, descriptor);
	stop(launch);
	memset(descriptor, 0, sizeof(descriptor));
	group = start(GROUP, NULL, descriptor);
	operation = api_type == COLL_API ? start_coll(api, function, sequence, count, datatype,
						      (uint64_t)channel_count)
					 : start_p2p(api, function, peer, count, datatype,
						     (uint64_t)channel_count);
	stop(operation);
	stop(group);
	stop(group_api);
	for (int i = 0; i < channel_count && i < CHANNELS; i++)
		begin_channel(i);
}

static void end_all(void)
{
	for (int i = 0; i < CHANNELS; i++)
		end_channel(i);
}

/* ---- the network's side ---- */

static void begin_proxy(int channel, int peer, const char *direction, int steps)
{
	unsigned char descriptor[DESCRIPTOR_SIZE] = {0};

	proxy_sends = !strcmp(direction, "send");
	put_number(descriptor, 24, (uint64_t)getpid(), 4);
	put_number(descriptor, 28, (uint64_t)channel, 1);
	put_number(descriptor, 32, (uint64_t)peer, 4);
	put_number(descriptor, 36, (uint64_t)steps, 4);
	put_number(descriptor, 40, 1 << 19, 4);
	put_number(descriptor, 44, (uint64_t)proxy_sends, 4);
	proxy_op = start(PROXY_OP, operation, descriptor);
	if (proxy_op && !is_v2)
		profiler->record(proxy_op, STATE_PROXY_OP_IN_PROGRESS, NULL);
}

static void take_step(int number, uint64_t bytes)
{
	unsigned char descriptor[DESCRIPTOR_SIZE] = {0};
	void *step;

	put_number(descriptor, 24, (uint64_t)number, 4);
	step = start(PROXY_STEP, proxy_op, descriptor);
	if (!step)
		return;
	if (proxy_sends) {
		profiler->record(step, STATE_SEND_GPU_WAIT, is_v2 ? NULL : &(uint64_t){0});
		if (!is_v2)
			profiler->record(step, STATE_SEND_PEER_WAIT, &(uint64_t){0});
		profiler->record(step, STATE_SEND_WAIT, is_v2 ? NULL : &bytes);
	} else {
		profiler->record(step, STATE_RECV_WAIT, is_v2 ? NULL : &(uint64_t){0});
		profiler->record(step, STATE_RECV_GPU_WAIT, is_v2 ? NULL : &bytes);
	}
	stop(step);
}

/* ---- the story ---- */

static void make_communicator(const char *line)
{
	unsigned long hash;
	struct communicator *comm = &communicators[communicator_count];

	if (communicator_count == COMMUNICATORS ||
	    sscanf(line, "%lx %d %d %63[^\n]", &hash, &comm->ranks, &comm->rank, comm->name) < 3)
		abort();
	communicator_count++;
	comm->hash = hash;
	current = comm;
	if (is_v2)
		((init_v2)profiler->init)(&comm->context, &mask);
	else
		((init_v5)profiler->init)(&comm->context, comm->hash, &mask, comm->name, 1,
					  comm->ranks, comm->rank, say);
}

static void wait_ns(uint64_t ns)
{
	struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&time, NULL);
}

static void loop(unsigned long count, unsigned long elements, unsigned long ns)
{
	for (unsigned long i = 0; i < count; i++) {
		enqueue(COLL_API, "AllReduce", i, 0, elements, "ncclFloat32", 1);
		if (ns)
			wait_ns(ns);
		end_all();
	}
}

static int obey(const char *line)
{
	char word[32] = "", function[32] = "", datatype[32] = "";
	unsigned long a = 0, b = 0, c = 0;
	int channel_count = 0, used = 0;
	double seconds;

	sscanf(line, "%31s %n", word, &used);
	line += used;
	if (!strcmp(word, "gpu")) {
		gpu_offset_ns = strtoll(line, NULL, 10);
	} else if (!strcmp(word, "comm")) {
		make_communicator(line);
	} else if (!strcmp(word, "use")) {
		current = &communicators[atoi(line)];
	} else if (!strcmp(word, "coll") && sscanf(line, "%31s %lu %lu %31s %d", function, &a, &b,
						   datatype, &channel_count) == 5) {
		enqueue(COLL_API, function, a, 0, b, datatype, channel_count);
	} else if (!strcmp(word, "p2p") && sscanf(line, "%31s %lu %lu %31s %d", function, &a, &b,
						  datatype, &channel_count) == 5) {
		enqueue(P2P_API, function, 0, (int)a, b, datatype, channel_count);
	} else if (!strcmp(word, "begin")) {
		begin_channel(atoi(line) % CHANNELS);
	} else if (!strcmp(word, "end")) {
		end_channel(atoi(line) % CHANNELS);
	} else if (!strcmp(word, "done")) {
		end_all();
	} else if (!strcmp(word, "proxy") &&
		   sscanf(line, "%lu %lu %31s %lu", &a, &b, function, &c) == 4) {
		begin_proxy((int)a, (int)b, function, (int)c);
	} else if (!strcmp(word, "step") && sscanf(line, "%lu %lu", &a, &b) == 2) {
		take_step((int)a, b);
	} else if (!strcmp(word, "proxydone")) {
		stop(proxy_op);
	} else if (!strcmp(word, "loop") && sscanf(line, "%lu %lu %lu", &a, &b, &c) == 3) {
		loop(a, b, c);
	} else if (!strcmp(word, "tid")) {
		printf("%ld\n", syscall(SYS_gettid));
	} else if (!strcmp(word, "pause") && sscanf(line, "%lf", &seconds) == 1) {
		wait_ns((uint64_t)(seconds * 1e9));
	} else if (!strcmp(word, "finalize")) {
		profiler->finalize(current->context);
	} else if (!strcmp(word, "kill")) {
		raise(SIGKILL);
	} else if (!strcmp(word, "abort")) {
		abort();
	} else if (!strcmp(word, "exit")) {
		exit(atoi(line));
	} else {
		fprintf(stderr, "nccl_job: what is '%s %s'\n", word, line);
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char line[256];
	void *library;

	setvbuf(stdout, NULL, _IOLBF, 0);
	is_v2 = argc > 2 && !strcmp(argv[2], "v2");
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		fprintf(stderr, "nccl_job: %s\n", argc > 1 ? dlerror() : "which plugin?");
		return 2;
	}
	profiler = dlsym(library, is_v2 ? "ncclProfiler_v2" : "ncclProfiler_v5");
	if (!profiler) {
		fprintf(stderr, "nccl_job: %s\n", dlerror());
		return 2;
	}
	while (fgets(line, sizeof(line), stdin)) {
		int status = obey(line);

		if (status)
			return status;
		puts("ok");
	}
	return 0;
}
