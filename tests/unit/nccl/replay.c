/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls that NCCL really made, recorded by the plugin on machines with GPUs (NCCL_CALL_TRACE;
 * src/nccl/call_trace.h), made once more: in the same order, each by a thread that stands for its
 * own, with the handles of this run in the place of the recorded ones. What the file then holds is
 * compared with what the lines say, counted here.
 *
 *   test_nccl_replay [FILE.calls...]
 *
 * Without files: a trace of calls made here, so that the recorder of calls is tested everywhere.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "drive.h"

#define LINES_MAX   100000
#define THREADS_MAX 64
#define MAP_SIZE    262144

struct line {
	unsigned thread;
	char *text; /* behind time and thread */
};

static struct line lines[LINES_MAX];
static unsigned line_count, thread_count, thread_ids[THREADS_MAX];
static _Atomic unsigned turn;
static char *const *trace_files;
static int trace_file_count;

/* ---- reading ---- */

static unsigned thread_number(unsigned tid)
{
	for (unsigned i = 0; i < thread_count; i++) {
		if (thread_ids[i] == tid)
			return i;
	}
	assert_true(thread_count < THREADS_MAX);
	thread_ids[thread_count] = tid;
	return thread_count++;
}

static void read_trace(const char *path)
{
	static char text[4096];
	gzFile file = gzopen(path, "r"); /* compressed or not */
	uint64_t time;
	unsigned tid;
	int skip;

	assert_non_null(file);
	line_count = thread_count = 0;
	while (gzgets(file, text, sizeof(text))) {
		assert_int_equal(sscanf(text, "%" SCNu64 " %u %n", &time, &tid, &skip), 2);
		assert_true(line_count < LINES_MAX);
		text[strcspn(text, "\n")] = 0;
		lines[line_count++] = (struct line){thread_number(tid), strdup(text + skip)};
	}
	gzclose(file);
	assert_true(line_count > 0);
}

static void forget_trace(void)
{
	for (unsigned i = 0; i < line_count; i++)
		free(lines[i].text);
	line_count = 0;
}

/* ---- handles of then and now ---- */

static struct {
	uint64_t then;
	void *now;
} map[MAP_SIZE];

static unsigned map_slot(uint64_t then)
{
	unsigned at = (unsigned)(then * 0x9e3779b97f4a7c15ull >> 46);

	while (map[at].then && map[at].then != then)
		at = (at + 1) % MAP_SIZE;
	return at;
}

static void remember(uint64_t then, void *now)
{
	unsigned at = map_slot(then);

	map[at].then = then;
	map[at].now = now;
}

/* What the trace does not know of stays what it was: an address of another process. */
static void *translate(uint64_t then)
{
	unsigned at = map_slot(then);

	return map[at].then ? map[at].now : (void *)(uintptr_t)then;
}

/* ---- calls ---- */

static struct driver drivers[VERSIONS + 1];
static unsigned version_of_trace;

static struct driver *driver_of_trace(void)
{
	return &drivers[version_of_trace];
}

static void replay_init(const char *text)
{
	struct drive_identity identity = {.name = "replayed"};
	uint64_t context;
	unsigned version, mask;

	require(sscanf(text, "%" SCNx64 " %u %d %d %d %" SCNx64 " %u", &context, &version,
		       &identity.rank, &identity.ranks, &identity.nodes, &identity.hash,
		       &mask) == 7);
	require(version >= 1 && version <= VERSIONS);
	version_of_trace = version;
	if (!drivers[version].table)
		drivers[version] = drive_open(version);
	remember(context, drive_init(&drivers[version], &identity));
}

/* One address a name, as in NCCL. Calls are made one at a time. */
static const char *keep(const char *word)
{
	static char words[128][64];

	if (!strcmp(word, "-"))
		return NULL;
	for (unsigned i = 0; i < 128; i++) {
		if (!*words[i])
			strncpy(words[i], word, sizeof(words[i]) - 1);
		if (!strncmp(words[i], word, sizeof(words[i]) - 1))
			return words[i];
	}
	return "too many names";
}

static void operation_words(const char *text, struct plugin_event_start_arguments *event)
{
	char function[64], type[64], algorithm[64], protocol[64], name[256] = "";
	uint64_t group;
	unsigned channels, warps;

	require(sscanf(text,
		       "%63s %63s %" SCNu64 " %d %" SCNu64 " %u %u %63s %63s %" SCNx64 " %" SCNx64
		       " %255s",
		       function, type, &event->count, &event->root, &event->sequence, &channels,
		       &warps, algorithm, protocol, &group, &event->communicator_hash, name) >= 10);
	event->function = keep(function);
	event->data_type = keep(type);
	event->algorithm = keep(algorithm);
	event->protocol = keep(protocol);
	event->communicator_name = *name ? keep(name) : NULL;
	event->group = translate(group);
	event->channel_count = (uint8_t)channels;
	event->warp_count = (uint8_t)warps;
}

static void call_words(const char *text, struct plugin_event_start_arguments *event)
{
	char function[64], type[64];
	uint64_t stream;
	int captured;

	require(sscanf(text, "%63s %63s %" SCNu64 " %d %" SCNx64 " %d", function, type,
		       &event->count, &event->root, &stream, &captured) == 6);
	event->function = keep(function);
	event->data_type = keep(type);
	event->stream = (void *)(uintptr_t)stream;
	event->is_captured = captured;
}

static void describe(const char *text, struct plugin_event_start_arguments *event)
{
	unsigned channel = 0, phase = 0;
	int captured = 0, is_send = 0;
	uint64_t stream = 0;

	switch (event->kind) {
	case NCCL_KIND_COLLECTIVE:
	case NCCL_KIND_P2P:
	case NCCL_KIND_CE_COLLECTIVE:
		operation_words(text, event);
		return;
	case NCCL_KIND_COLLECTIVE_API:
	case NCCL_KIND_P2P_API:
		call_words(text, event);
		return;
	case NCCL_KIND_GROUP_API:
		require(sscanf(text, "%d %d", &event->depth, &captured) == 2);
		event->is_captured = captured;
		return;
	case NCCL_KIND_KERNEL_LAUNCH:
		require(sscanf(text, "%" SCNx64, &stream) == 1);
		event->stream = (void *)(uintptr_t)stream;
		return;
	case NCCL_KIND_PROXY_OP:
		require(sscanf(text, "%d %u %d %d %d %d", &event->pid, &channel, &event->root,
			       &event->steps, &event->chunk_bytes, &is_send) == 6);
		event->channel = (uint8_t)channel;
		event->is_send = is_send;
		return;
	case NCCL_KIND_PROXY_STEP:
		require(sscanf(text, "%d", &event->step) == 1);
		return;
	case NCCL_KIND_KERNEL_CHANNEL:
	case NCCL_KIND_KERNEL_PHASE:
		require(sscanf(text, "%u %u %" SCNu64, &channel, &phase, &event->gpu_timestamp) ==
			3);
		event->channel = (uint8_t)channel;
		event->phase = (uint8_t)phase;
		return;
	default:
		return;
	}
}

static void replay_start(const char *text)
{
	struct plugin_event_start_arguments event = {0};
	uint64_t context, then, parent;
	unsigned kind;
	void *handle = NULL;
	int skip;

	require(sscanf(text, "%" SCNx64 " %" SCNx64 " %u %" SCNx64 " %d %n", &context, &then, &kind,
		       &parent, &event.rank, &skip) == 5);
	event.kind = (uint8_t)kind;
	event.api = (uint8_t)version_of_trace;
	event.parent = translate(parent);
	describe(text + skip, &event);
	drive_start(driver_of_trace(), translate(context), &handle, &event);
	if (then)
		remember(then, handle);
}

static void replay_state(const char *text)
{
	struct event_state_arguments state = {0};
	uint64_t handle, value;
	int number, known;

	require(sscanf(text, "%" SCNx64 " %d %d %" SCNu64, &handle, &number, &known, &value) == 4);
	state.bytes = value;
	state.gpu_time = value;
	state.appended = (int)value;
	drive_state(driver_of_trace(), translate(handle), number, known ? &state : NULL);
}

static void replay(const char *text)
{
	uint64_t handle;
	char what[16];
	int skip;

	require(sscanf(text, "%15s %n", what, &skip) == 1);
	text += skip;
	if (!strcmp(what, "init")) {
		replay_init(text);
	} else if (!strcmp(what, "start")) {
		replay_start(text);
	} else if (!strcmp(what, "state")) {
		replay_state(text);
	} else {
		require(sscanf(text, "%" SCNx64, &handle) == 1);
		if (!strcmp(what, "stop"))
			drive_stop(driver_of_trace(), translate(handle));
		else
			drive_finalize(driver_of_trace(), translate(handle));
	}
}

static void *run_thread(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;

	for (unsigned i = 0; i < line_count; i++) {
		if (lines[i].thread != thread)
			continue;
		while (atomic_load(&turn) != i)
			sched_yield();
		replay(lines[i].text);
		atomic_store(&turn, i + 1);
	}
	return NULL;
}

static void body(void)
{
	pthread_t threads[THREADS_MAX];

	for (uintptr_t i = 0; i < thread_count; i++)
		pthread_create(&threads[i], NULL, run_thread, (void *)i);
	for (unsigned i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	usleep(300000);
}

/* ---- what the lines say ---- */

struct expected {
	uint64_t id; /* then */
	uint64_t gpu_start, gpu_stop, channels;
};

static struct expected expected[20000];
static unsigned expected_count;

static void expect_channel(uint64_t parent, uint64_t start, uint64_t stop, unsigned channel)
{
	for (unsigned i = 0; i < expected_count; i++) {
		struct expected *of = &expected[i];

		if (of->id != parent)
			continue;
		of->channels |= 1ull << channel;
		if (!of->gpu_start || start < of->gpu_start)
			of->gpu_start = start;
		if (stop > of->gpu_stop)
			of->gpu_stop = stop;
	}
}

/* The end of a channel that began at line `from`: the first such state of its handle. */
static uint64_t find_end(unsigned from, uint64_t handle)
{
	for (unsigned i = from + 1; i < line_count; i++) {
		uint64_t of, value;
		int number, known;

		if (sscanf(lines[i].text, "state %" SCNx64 " %d %d %" SCNu64, &of, &number, &known,
			   &value) == 4 &&
		    of == handle && number == NCCL_STATE_KERNEL_CHANNEL_STOP)
			return value;
	}
	return 0;
}

static void count_expected(void)
{
	expected_count = 0;
	for (unsigned i = 0; i < line_count; i++) {
		uint64_t context, then, parent, time;
		unsigned kind, channel, phase;
		int rank, skip = 0;

		if (sscanf(lines[i].text, "start %" SCNx64 " %" SCNx64 " %u %" SCNx64 " %d %n",
			   &context, &then, &kind, &parent, &rank, &skip) != 5 ||
		    !then)
			continue;
		if (kind == NCCL_KIND_COLLECTIVE || kind == NCCL_KIND_P2P) {
			assert_true(expected_count < 20000);
			expected[expected_count++] = (struct expected){.id = then};
		} else if (kind == NCCL_KIND_KERNEL_CHANNEL &&
			   sscanf(lines[i].text + skip, "%u %u %" SCNu64, &channel, &phase,
				  &time) == 3) {
			expect_channel(parent, time, find_end(i, then), channel);
		}
	}
}

/* Operations in the order of their starts: as the file has them by communicator and number. */
static int by_start(const void *left, const void *right)
{
	const struct nccl_operation *a = *(const struct nccl_operation *const *)left;
	const struct nccl_operation *b = *(const struct nccl_operation *const *)right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static void check(const char *path)
{
	static const struct nccl_operation *operations[65536];
	const struct recording *recording = drive_read();
	const uint64_t *losses = recording->header->losses;
	size_t done = 0, timed = 0, aliased = 0, batched = 0, late = 0;

	assert_int_equal(losses[NCCL_LOSS_OPERATIONS] + losses[NCCL_LOSS_EVENTS], 0);
	assert_int_equal(losses[NCCL_LOSS_UNKNOWN_TYPE] + losses[NCCL_LOSS_UNKNOWN_STATE], 0);
	assert_int_equal(losses[NCCL_LOSS_FOREIGN_CONTEXT], 0);
	assert_int_equal(recording->operations, expected_count);
	memcpy(operations, recording->operation, recording->operations * sizeof(*operations));
	qsort(operations, recording->operations, sizeof(*operations), by_start);
	for (size_t i = 0; i < recording->operations; i++) {
		const struct nccl_operation *operation = operations[i];

		assert_true(operation->stop >= operation->start);
		/* Paused for longer than the plugin waits for more: what came later is left out. */
		if (operation->flags & NCCL_OPERATION_LATE) {
			assert_true(losses[NCCL_LOSS_LATE] >= operation->late);
			assert_int_equal(operation->channels_started & ~expected[i].channels, 0);
			late++;
			continue;
		}
		assert_int_equal(operation->channels_started, expected[i].channels);
		assert_int_equal(operation->gpu_start, expected[i].gpu_start);
		assert_int_equal(operation->gpu_stop, expected[i].gpu_stop);
		done += operation->state == NCCL_OPERATION_DONE;
		timed += operation->gpu_stop > 0;
		aliased += (operation->flags & NCCL_OPERATION_ALIASED) != 0;
		batched += (operation->flags & NCCL_OPERATION_BATCHED) != 0;
	}
	assert_int_equal(aliased, 0);
	assert_true(late <= recording->operations / 2);
	/* Several all-reduces of one group share channels. */
	if (strstr(path, "/group."))
		assert_true(batched + late >= recording->operations * 2 / 3);
	print_message("%s: %u calls by %u threads, %zu operations, %zu done, %zu timed, %zu "
		      "batched, double stops "
		      "%" PRIu64 ", restarted %" PRIu64 ", late %" PRIu64 "\n",
		      path, line_count, thread_count, recording->operations, done, timed, batched,
		      losses[NCCL_LOSS_DOUBLE_STOP], losses[NCCL_LOSS_RESTARTED],
		      losses[NCCL_LOSS_LATE]);
}

static void replay_file(const char *path)
{
	read_trace(path);
	count_expected();
	/* A machine that is busy may pause the calls for longer than the plugin waits for more. */
	for (int tries = 0; tries < 3; tries++) {
		drive_directory();
		drive_setenv("KYMO_NCCL_EVENTS", "all");
		assert_child(body);
		if (!drive_read()->header->losses[NCCL_LOSS_LATE])
			break;
	}
	check(path);
	forget_trace();
}

static void test_files(void **state)
{
	(void)state;
	for (int i = 0; i < trace_file_count; i++)
		replay_file(trace_files[i]);
}

/* ---- a trace of our own ---- */

static void make_calls(void)
{
	const struct drive_identity identity = {"own", 5, 1, 2, 1};
	struct driver driver = drive_open(6);
	void *context = drive_init(&driver, &identity), *call, *channels[3], *proxy, *step;

	for (uint64_t i = 0; i < 50; i++) {
		void *operation;

		call = drive_simple(&driver, context, NULL, NCCL_KIND_COLLECTIVE_API);
		drive_stop(&driver, call);
		operation = drive_collective(&driver, context, call, "AllReduce", i, 3);
		proxy = drive_proxy_op(&driver, context, operation, 0, 1, getpid());
		drive_state(&driver, proxy, NCCL_STATE_OP_IN_PROGRESS, NULL);
		step = drive_proxy_step(&driver, context, proxy, (int)i);
		drive_stop(&driver, operation);
		for (unsigned j = 0; j < 3; j++)
			channels[j] = drive_channel(&driver, context, operation, j,
						    1700000000000000000u + i * 1000 + j);
		for (unsigned j = 0; j < 3; j++)
			drive_channel_stop(&driver, channels[j],
					   1700000000000000000u + i * 1000 + 100 + j);
		drive_stop(&driver, step);
		drive_stop(&driver, proxy);
	}
	drive_finalize(&driver, context);
}

static void test_own(void **state)
{
	static char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/kymo-nccl-calls-%ld", (long)getpid());
	drive_directory();
	drive_setenv("KYMO_NCCL_CALL_TRACE", path);
	assert_child(make_calls);
	replay_file(path);
	assert_int_equal(drive_read()->operations, 50);
	unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_own),
					   cmocka_unit_test(test_files)};

	trace_files = argv + 1;
	trace_file_count = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
