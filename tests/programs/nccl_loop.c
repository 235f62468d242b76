/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL in loops, for machines that have it: one process with a thread a GPU, or one rank of several
 * processes. libnccl and libcudart are opened at run time, so that this builds everywhere. Times
 * are by hand, around the loop, with the stream empty at both ends.
 *
 *   nccl_loop [-n GPUS] [-i ITERATIONS] [-s BYTES,...] [-o OPERATION] [-c COMMUNICATORS]
 *             [-r RANK -f FILE]   rank RANK of GPUS processes; rank 0 leaves the id in FILE
 *             [-d DEVICE]         on that GPU, not on that of the rank's number
 *             [-g]                capture each operation into a CUDA graph and launch that
 *             [-w MICROSECONDS]   pause before each operation
 *             [-e]                end without destroying the communicators
 *
 * OPERATION: allreduce (default), allgather, reducescatter, broadcast, sendrecv, group (three
 * all-reduces of different sizes in one group), mixed (all of them in turn).
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GPUS_MAX  8
#define SIZES_MAX 8
#define COMMS_MAX 64

/* nccl.h and cuda_runtime_api.h, as much as is needed */
struct unique_id {
	char bytes[128];
};
enum { FLOAT = 7, SUM = 0, NON_BLOCKING = 1, CAPTURE_RELAXED = 2 };
typedef void *handle;

static struct {
	int (*get_version)(int *);
	int (*get_unique_id)(struct unique_id *);
	int (*init_rank)(handle *, int, struct unique_id, int);
	int (*destroy)(handle);
	int (*all_reduce)(const void *, void *, size_t, int, int, handle, handle);
	int (*all_gather)(const void *, void *, size_t, int, handle, handle);
	int (*reduce_scatter)(const void *, void *, size_t, int, int, handle, handle);
	int (*broadcast)(const void *, void *, size_t, int, int, handle, handle);
	int (*send)(const void *, size_t, int, int, handle, handle);
	int (*receive)(void *, size_t, int, int, handle, handle);
	int (*group_start)(void);
	int (*group_end)(void);
} nccl;

static struct {
	int (*set_device)(int);
	int (*allocate)(void **, size_t);
	int (*set)(void *, int, size_t);
	int (*stream_create)(handle *, unsigned);
	int (*stream_wait)(handle);
	int (*begin_capture)(handle, int);
	int (*end_capture)(handle, handle *);
	int (*instantiate)(handle *, handle, unsigned long long);
	int (*launch)(handle, handle);
	int (*destroy_graph)(handle);
	int (*destroy_executable)(handle);
} cuda;

static struct {
	int gpus, iterations, communicators, rank, device, sizes;
	size_t size[SIZES_MAX];
	const char *operation, *file;
	useconds_t pause;
	int graph, no_destroy;
} options = {2, 1000, 1, -1, -1, 1, {8}, "allreduce", NULL, 0, 0, 0};

static struct unique_id ids[COMMS_MAX];
static pthread_barrier_t barrier;

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int result_ = (call);                                                              \
		if (result_) {                                                                     \
			fprintf(stderr, "%s gives %d\n", #call, result_);                          \
			_exit(3);                                                                  \
		}                                                                                  \
	} while (0)

static void *open_library(const char *const *names)
{
	for (; *names; names++) {
		void *library = dlopen(*names, RTLD_NOW | RTLD_GLOBAL);

		if (library)
			return library;
	}
	fprintf(stderr, "%s\n", dlerror());
	exit(77);
}

static void bind(void *library, const char *name, void *function)
{
	*(void **)function = dlsym(library, name);
	if (!*(void **)function) {
		fprintf(stderr, "there is no %s\n", name);
		exit(77);
	}
}

static void bind_all(void)
{
	static const char *const cudart[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so",
					     NULL};
	static const char *const libnccl[] = {"libnccl.so.2", "libnccl.so", NULL};
	void *library = open_library(cudart);

	bind(library, "cudaSetDevice", &cuda.set_device);
	bind(library, "cudaMalloc", &cuda.allocate);
	bind(library, "cudaMemset", &cuda.set);
	bind(library, "cudaStreamCreateWithFlags", &cuda.stream_create);
	bind(library, "cudaStreamSynchronize", &cuda.stream_wait);
	bind(library, "cudaStreamBeginCapture", &cuda.begin_capture);
	bind(library, "cudaStreamEndCapture", &cuda.end_capture);
	bind(library, "cudaGraphInstantiate", &cuda.instantiate);
	bind(library, "cudaGraphLaunch", &cuda.launch);
	bind(library, "cudaGraphDestroy", &cuda.destroy_graph);
	bind(library, "cudaGraphExecDestroy", &cuda.destroy_executable);
	library = open_library(libnccl);
	bind(library, "ncclGetVersion", &nccl.get_version);
	bind(library, "ncclGetUniqueId", &nccl.get_unique_id);
	bind(library, "ncclCommInitRank", &nccl.init_rank);
	bind(library, "ncclCommDestroy", &nccl.destroy);
	bind(library, "ncclAllReduce", &nccl.all_reduce);
	bind(library, "ncclAllGather", &nccl.all_gather);
	bind(library, "ncclReduceScatter", &nccl.reduce_scatter);
	bind(library, "ncclBroadcast", &nccl.broadcast);
	bind(library, "ncclSend", &nccl.send);
	bind(library, "ncclRecv", &nccl.receive);
	bind(library, "ncclGroupStart", &nccl.group_start);
	bind(library, "ncclGroupEnd", &nccl.group_end);
}

struct rank {
	int number;
	handle communicators[COMMS_MAX], stream;
	void *from, *to;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void send_receive(struct rank *rank, size_t count, handle communicator)
{
	int next = (rank->number + 1) % options.gpus;
	int previous = (rank->number + options.gpus - 1) % options.gpus;

	CHECK(nccl.group_start());
	CHECK(nccl.send(rank->from, count, FLOAT, next, communicator, rank->stream));
	CHECK(nccl.receive(rank->to, count, FLOAT, previous, communicator, rank->stream));
	CHECK(nccl.group_end());
}

static void one_operation(struct rank *rank, const char *name, size_t bytes, int iteration)
{
	handle communicator = rank->communicators[iteration % options.communicators];
	size_t count = bytes / 4 ? bytes / 4 : 1, part = count / (size_t)options.gpus;
	handle stream = rank->stream;
	void *from = rank->from, *to = rank->to;

	if (!strcmp(name, "allreduce")) {
		CHECK(nccl.all_reduce(from, to, count, FLOAT, SUM, communicator, stream));
	} else if (!strcmp(name, "allgather")) {
		CHECK(nccl.all_gather(from, to, part ? part : 1, FLOAT, communicator, stream));
	} else if (!strcmp(name, "reducescatter")) {
		CHECK(nccl.reduce_scatter(from, to, part ? part : 1, FLOAT, SUM, communicator,
					  stream));
	} else if (!strcmp(name, "broadcast")) {
		CHECK(nccl.broadcast(from, to, count, FLOAT, 0, communicator, stream));
	} else if (!strcmp(name, "sendrecv")) {
		send_receive(rank, count, communicator);
	} else if (!strcmp(name, "group")) {
		CHECK(nccl.group_start());
		for (size_t i = 1; i <= 3; i++)
			CHECK(nccl.all_reduce(from, to, count / i + 1, FLOAT, SUM, communicator,
					      stream));
		CHECK(nccl.group_end());
	} else {
		fprintf(stderr, "unknown operation %s\n", name);
		_exit(2);
	}
}

static void run_operation(struct rank *rank, size_t bytes, int iteration)
{
	static const char *const all[] = {"allreduce", "allgather", "reducescatter",
					  "broadcast", "sendrecv",  "group"};

	if (options.pause)
		usleep(options.pause);
	if (!strcmp(options.operation, "mixed"))
		one_operation(rank, all[iteration % 6], bytes, iteration);
	else
		one_operation(rank, options.operation, bytes, iteration);
}

static void meet(void)
{
	if (options.rank < 0)
		pthread_barrier_wait(&barrier);
}

/* Submits `iterations`; returns seconds until the stream is empty. */
static double run_loop(struct rank *rank, size_t bytes, int iterations, handle graph)
{
	double start;

	meet();
	start = now();
	for (int i = 0; i < iterations; i++) {
		if (graph)
			CHECK(cuda.launch(graph, rank->stream));
		else
			run_operation(rank, bytes, i);
	}
	CHECK(cuda.stream_wait(rank->stream));
	return now() - start;
}

static handle make_graph(struct rank *rank, size_t bytes)
{
	handle graph, executable;

	/* NCCL connects and allocates with the first operation, which cannot be captured. */
	run_operation(rank, bytes, 0);
	CHECK(cuda.stream_wait(rank->stream));
	meet();
	CHECK(cuda.begin_capture(rank->stream, CAPTURE_RELAXED));
	run_operation(rank, bytes, 0);
	CHECK(cuda.end_capture(rank->stream, &graph));
	CHECK(cuda.instantiate(&executable, graph, 0));
	CHECK(cuda.destroy_graph(graph));
	return executable;
}

static void run_size(struct rank *rank, size_t bytes)
{
	int iterations = bytes > 1 << 20 ? options.iterations / 10 + 1 : options.iterations;
	handle graph = options.graph ? make_graph(rank, bytes) : NULL;
	double seconds, microseconds, bus;

	run_loop(rank, bytes, iterations < 20 ? iterations : 20, graph);
	seconds = run_loop(rank, bytes, iterations, graph);
	/* ncclCommDestroy() waits for graphs that hold its operations. */
	if (graph)
		CHECK(cuda.destroy_executable(graph));
	microseconds = seconds / iterations * 1e6;
	bus = (double)bytes / microseconds * 1e-3 * 2 * (options.gpus - 1) / options.gpus;
	if (!rank->number)
		printf("size %zu iterations %d us_per_op %.3f busbw_allreduce_GBs %.3f\n", bytes,
		       iterations, microseconds, bus);
	fflush(stdout);
}

static void *run_rank(void *argument)
{
	struct rank *rank = argument;
	size_t largest = 0;

	for (int i = 0; i < options.sizes; i++)
		largest = options.size[i] > largest ? options.size[i] : largest;
	CHECK(cuda.set_device(options.device < 0 ? rank->number : options.device));
	for (int i = 0; i < options.communicators; i++)
		CHECK(nccl.init_rank(&rank->communicators[i], options.gpus, ids[i], rank->number));
	CHECK(cuda.allocate(&rank->from, largest + 4096));
	CHECK(cuda.allocate(&rank->to, largest + 4096));
	CHECK(cuda.set(rank->from, 0, largest));
	CHECK(cuda.stream_create(&rank->stream, NON_BLOCKING));
	for (int i = 0; i < options.sizes; i++)
		run_size(rank, options.size[i]);
	for (int i = 0; i < options.communicators && !options.no_destroy; i++)
		CHECK(nccl.destroy(rank->communicators[i]));
	return NULL;
}

/* The ids go through a file: rank 0 writes it under another name first. */
static void share_ids(void)
{
	char temporary[4096];
	FILE *file;

	snprintf(temporary, sizeof(temporary), "%s.new", options.file);
	if (!options.rank) {
		for (int i = 0; i < options.communicators; i++)
			CHECK(nccl.get_unique_id(&ids[i]));
		file = fopen(temporary, "w");
		if (!file || fwrite(ids, sizeof(ids), 1, file) != 1 || fclose(file) ||
		    rename(temporary, options.file))
			exit(4);
		return;
	}
	for (int i = 0; i < 6000; i++) {
		file = fopen(options.file, "r");
		if (file && fread(ids, sizeof(ids), 1, file) == 1) {
			fclose(file);
			return;
		}
		if (file)
			fclose(file);
		usleep(10000);
	}
	exit(4);
}

static void parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "n:i:s:o:c:r:f:d:gw:e")) > 0) {
		switch (option) {
		case 'n':
			options.gpus = atoi(optarg);
			break;
		case 'i':
			options.iterations = atoi(optarg);
			break;
		case 's':
			options.sizes = 0;
			for (char *at = strtok(optarg, ","); at && options.sizes < SIZES_MAX;
			     at = strtok(NULL, ","))
				options.size[options.sizes++] = strtoull(at, NULL, 10);
			break;
		case 'o':
			options.operation = optarg;
			break;
		case 'c':
			options.communicators = atoi(optarg);
			break;
		case 'r':
			options.rank = atoi(optarg);
			break;
		case 'f':
			options.file = optarg;
			break;
		case 'd':
			options.device = atoi(optarg);
			break;
		case 'g':
			options.graph = 1;
			break;
		case 'w':
			options.pause = (useconds_t)atoi(optarg);
			break;
		case 'e':
			options.no_destroy = 1;
			break;
		default:
			exit(2);
		}
	}
	if (options.gpus < 1 || options.gpus > GPUS_MAX || options.communicators < 1 ||
	    options.communicators > COMMS_MAX || (options.rank >= 0 && !options.file))
		exit(2);
}

int main(int argc, char **argv)
{
	static struct rank ranks[GPUS_MAX];
	pthread_t threads[GPUS_MAX];
	int version = 0;

	parse(argc, argv);
	bind_all();
	CHECK(nccl.get_version(&version));
	if (options.rank >= 0) {
		share_ids();
		ranks[0].number = options.rank;
		run_rank(&ranks[0]);
		return 0;
	}
	printf("NCCL %d\n", version);
	for (int i = 0; i < options.communicators; i++)
		CHECK(nccl.get_unique_id(&ids[i]));
	pthread_barrier_init(&barrier, NULL, (unsigned)options.gpus);
	for (int i = 0; i < options.gpus; i++) {
		ranks[i].number = i;
		pthread_create(&threads[i], NULL, run_rank, &ranks[i]);
	}
	for (int i = 0; i < options.gpus; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
