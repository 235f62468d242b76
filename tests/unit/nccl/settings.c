/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Settings, and what cannot be recorded to: one clear line each, and NCCL never learns of it. The
 * report of an operation that hangs, and the file for Prometheus.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drive.h"

#define GPU 1756135989724672000u
static const struct drive_identity identity = {"job \"a\\b\"\n\x01", 0xfeed, 1, 2, 0};

static void unwatched_operation(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity);
	void *operation = drive_collective(&driver, context, NULL, "AllReduce", 0, 1);

	drive_stop(&driver, operation);
	drive_channel_stop(&driver, drive_channel(&driver, context, operation, 0, GPU),
			   GPU + 20000);
}

static void one_operation(void)
{
	unwatched_operation();
	drive_wait_finished(1);
}

/* ---- events ---- */

static uint32_t mask_of(const char *events)
{
	drive_directory();
	drive_setenv("KYMO_NCCL_EVENTS", events);
	assert_child(one_operation);
	return drive_read()->header->mask;
}

static void test_events(void **state)
{
	(void)state;
	assert_int_equal(mask_of("all"), 0xfff);
	assert_int_equal(mask_of("none"), 0);
	assert_int_equal(mask_of("light"), 0xf0e);
	assert_int_equal(mask_of("coll, p2p kernel_launch"), 0x806);
	assert_int_equal(mask_of("DEFAULT,proxy-step"), 0xf5e);
	assert_int_equal(mask_of("default"), 0xf4e);
	assert_int_equal(drive_read()->header->mask_default, 0);
	assert_string_equal(drive_error_output(), "");
	/* The copy engine's are in none of version 5. */
	assert_int_equal(mask_of("ce,coll"), 2);
	/* Unknown names are told; the others count. */
	assert_int_equal(mask_of("coll,colls,kernel-channel"), 0x42);
	assert_non_null(
		strstr(drive_error_output(), "'colls' is not an event; the events are: default"));
	assert_null(strchr(strchr(drive_error_output(), '\n') + 1, '\n'));
	assert_int_equal(mask_of("bogus"), 0xf4e);
	assert_int_equal(mask_of(""), 0xf4e);
}

/* A call that is captured into a CUDA graph, after one that is not. */
static void capture(void)
{
	struct driver driver = drive_open(5), other = drive_open(5);
	struct plugin_event_start_arguments call = {.kind = NCCL_KIND_COLLECTIVE_API,
						    .function = "AllReduce",
						    .data_type = "ncclFloat32"};
	void *context = drive_init(&driver, &identity), *handle;
	bool fast = !strcmp(getenv("KYMO_NCCL_GRAPHS"), "fast");

	drive_start(&driver, context, &handle, &call);
	drive_stop(&driver, handle);
	require(driver.mask == 0xf4e);
	call.is_captured = true;
	drive_start(&driver, context, &handle, &call);
	drive_stop(&driver, handle);
	require(driver.mask == (fast ? 0xf0e : 0xf4e));
	drive_init(&other, &identity); /* later ones are not timed either */
	require(other.mask == driver.mask);
	drive_stop(&driver, drive_collective(&driver, context, NULL, "AllReduce", 0, 1));
}

static void captured_operation(void)
{
	capture();
	if (!strcmp(getenv("KYMO_NCCL_GRAPHS"), "fast"))
		drive_wait_finished(1);
}

static void test_graphs(void **state)
{
	const struct nccl_operation *operation;

	(void)state;
	drive_directory();
	drive_setenv("KYMO_NCCL_GRAPHS", "timed");
	assert_child(captured_operation);
	assert_int_equal(drive_read()->communicator[1]->mask, 0xf4e);
	assert_string_equal(drive_read()->header->problem, "");
	drive_directory();
	drive_setenv("KYMO_NCCL_GRAPHS", "fast");
	assert_child(captured_operation);
	assert_int_equal(drive_read()->communicator[0]->mask, 0xf0e);
	assert_int_equal(drive_read()->communicator[1]->mask, 0xf0e);
	assert_non_null(strstr(drive_read()->header->problem, "NCCL_GRAPHS=fast"));
	/* It is over, though nothing is ever told of its end. */
	operation = drive_find(drive_read(), "AllReduce", 0);
	assert_true(operation->flags & NCCL_OPERATION_ENQUEUE_ONLY);
	drive_directory();
	drive_setenv("KYMO_NCCL_GRAPHS", "quick");
	assert_child(one_operation);
	assert_non_null(strstr(drive_error_output(), "KYMO_NCCL_GRAPHS: 'quick' is neither"));
}

static void test_bad_values(void **state)
{
	(void)state;
	drive_directory();
	drive_setenv("KYMO_NCCL_STALL", "soon");
	drive_setenv("KYMO_NCCL_SIZE", "5X");
	drive_setenv("KYMO_NCCL_FULL", "burst");
	drive_setenv("KYMO_NCCL_GPU_CLOCK_HZ", "-5");
	assert_child(one_operation);
	assert_non_null(strstr(drive_error_output(), "KYMO_NCCL_STALL: 'soon'"));
	assert_non_null(strstr(drive_error_output(), "KYMO_NCCL_SIZE: '5X'"));
	assert_non_null(strstr(drive_error_output(), "KYMO_NCCL_FULL: 'burst'"));
	assert_non_null(strstr(drive_error_output(), "KYMO_NCCL_GPU_CLOCK_HZ: '-5'"));
	assert_int_equal(drive_read()->header->stall_limit_ns, 0);
	assert_int_equal(drive_read()->header->ring, 1);
	assert_int_equal(drive_read()->operations, 1);
}

static void expect_size(const char *asked, uint64_t used)
{
	drive_directory();
	drive_setenv("KYMO_NCCL_SIZE", asked);
	assert_child(one_operation);
	assert_int_equal(drive_read()->header->size_limit, used);
	assert_int_equal(drive_read()->operations, 1);
}

/* In range it is taken as it is; else it is told, by the job and by its results. */
static void test_sizes(void **state)
{
	(void)state;
	expect_size("4M", 4 << 20);
	assert_string_equal(drive_error_output(), "");
	assert_string_equal(drive_read()->header->problem, "");
	expect_size("64K", 4 << 20);
	assert_non_null(strstr(drive_error_output(),
			       "KYMO_NCCL_SIZE: '64K' is not from 4M to 16G; using 4M"));
	assert_non_null(strstr(drive_read()->header->problem, "NCCL_SIZE takes 4M to 16G"));
	expect_size("99999G", UINT64_C(16) << 30);
	assert_non_null(strstr(drive_error_output(), "using 16G"));
}

static void test_no_room_for_the_call_trace(void **state)
{
	const char *told;

	(void)state;
	drive_directory();
	drive_setenv("KYMO_NCCL_CALL_TRACE", "/dev/full");
	assert_child(one_operation);
	told = strstr(drive_error_output(),
		      "KYMO_NCCL_CALL_TRACE: '/dev/full' cannot be written: No space left");
	assert_non_null(told);
	assert_null(strstr(told + 1, "KYMO_NCCL_CALL_TRACE"));
	assert_true(drive_read()->header->losses[NCCL_LOSS_CALL_TRACE] > 0);
	assert_int_equal(drive_read()->operations, 1);
	drive_directory();
	drive_setenv("KYMO_NCCL_CALL_TRACE", "/nowhere/at/all");
	assert_child(one_operation);
	assert_non_null(strstr(drive_error_output(), "'/nowhere/at/all' cannot be written"));
	assert_non_null(strstr(drive_read()->header->problem, "NCCL_CALL_TRACE"));
}

/* ---- off ---- */

static void off(void)
{
	struct driver driver = drive_open(5);
	void *context, *handle = (void *)0xdead;
	struct plugin_event_start_arguments event = {.kind = NCCL_KIND_P2P, .function = "Send"};

	driver.mask = 0x1234;
	context = drive_init(&driver, &identity);
	require(context);
	require(driver.mask == 0x1234);
	drive_start(&driver, context, &handle, &event);
	require(handle == NULL);
	drive_stop(&driver, handle);
	drive_state(&driver, handle, 19, NULL);
	drive_finalize(&driver, context);
	require(drive_init(&driver, &identity));
}

static void test_off(void **state)
{
	char path[4200];

	(void)state;
	drive_directory();
	drive_setenv("KYMO_ENABLED", "off");
	assert_child(off);
	assert_string_equal(drive_error_output(), "");
	drive_directory();
	snprintf(path, sizeof(path), "%s/no/such", drive_path());
	drive_setenv("KYMO_SPOOL_DIRECTORY", path);
	assert_child(off);
	assert_non_null(strstr(drive_error_output(), "nothing is recorded: "));
	assert_non_null(strstr(drive_error_output(), "/no/such"));
	assert_non_null(strstr(drive_error_output(), "No such file or directory"));
	/* A file in the way of the result directory. */
	drive_directory();
	snprintf(path, sizeof(path), "%s/file", drive_path());
	fclose(fopen(path, "w"));
	strcat(path, "/results");
	drive_setenv("KYMO_OUTPUT_PATH", path);
	assert_child(off);
	assert_non_null(strstr(drive_error_output(), "Not a directory"));
}

/* ---- where results go ---- */

static void test_session(void **state)
{
	char path[4400], host[65] = "";
	struct stat status;

	(void)state;
	/* A session of the kymo command's. */
	drive_directory();
	snprintf(path, sizeof(path), "%s/spool", drive_path());
	assert_int_equal(mkdir(path, 0700), 0);
	drive_setenv("KYMO_SPOOL_DIRECTORY", path);
	assert_child(one_operation);
	assert_int_equal(drive_read()->operations, 1);
	snprintf(path, sizeof(path), "%s/launch.json", drive_path());
	assert_int_not_equal(stat(path, &status), 0);
	/* Its own, with keys in the path. */
	drive_directory();
	snprintf(path, sizeof(path), "%s/%%h-%%q{RANK}/%%n%%%%", drive_path());
	drive_setenv("KYMO_OUTPUT_PATH", path);
	drive_setenv("KYMO_TIME_OUTPUT", "on");
	drive_setenv("RANK", "a/b");
	assert_child(unwatched_operation);
	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "%s/%s-a_b/test_nccl_settings%%/latest/launch.json",
		 drive_path(), host);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size > 100);
}

/* ---- stalls ---- */

static bool is_told(const struct recording *recording)
{
	return recording->communicators && recording->communicator[0]->stall_operation;
}

static bool goes_on(const struct recording *recording)
{
	return recording->communicators && !recording->communicator[0]->stall_operation;
}

static void stalled(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity), *operation, *proxy, *step, *channel;

	operation = drive_collective(&driver, context, NULL, "AllReduce", 41, 2);
	proxy = drive_proxy_op(&driver, context, operation, 5, 1, getpid());
	drive_stop(&driver, operation);
	drive_state(&driver, proxy, NCCL_STATE_OP_IN_PROGRESS, NULL);
	step = drive_proxy_step(&driver, context, proxy, 2);
	drive_state(&driver, step, NCCL_STATE_SEND_PEER_WAIT, NULL);
	channel = drive_channel(&driver, context, operation, 4, GPU);
	drive_channel(&driver, context, operation, 5, GPU);
	drive_channel_stop(&driver, channel, GPU + 1);
	drive_stop(&driver, drive_collective(&driver, context, NULL, "AllReduce", 42, 2));
	require(drive_wait(is_told, 60));
	usleep(50000); /* the rest of its lines */
	drive_stop(&driver, step);
	require(drive_wait(goes_on, 60));
}

static void test_stall(void **state)
{
	const char *text;

	(void)state;
	drive_directory();
	drive_setenv("KYMO_NCCL_STALL", "300ms");
	assert_child(stalled);
	text = drive_error_output();
	assert_non_null(strstr(text,
			       "communicator 'job \"a\\b\"?\?' (000000000000feed) rank 0 of 2: "
			       "AllReduce number 41 (4000 bytes) makes no progress for 0."));
	assert_non_null(strstr(text, "channels 4-5 started, 5 have not ended"));
	assert_non_null(strstr(text, "channel 5 sends to rank 1: step 2 of 4 waits for the peer to "
				     "take it since"));
	assert_non_null(strstr(text, "started 1 operations of the communicator after it"));
	assert_non_null(strstr(text, "continues after"));
	assert_true(drive_read()->communicator[0]->stalls >= 1);
}

/* ---- Prometheus ---- */

static void test_prometheus(void **state)
{
	static char text[200000];
	char path[4200];
	struct stat status;
	FILE *file;

	(void)state;
	drive_directory();
	snprintf(path, sizeof(path), "%s/kymo-{rank}.prom", drive_path());
	drive_setenv("KYMO_NCCL_PROMETHEUS", path);
	drive_setenv("KYMO_NCCL_PROMETHEUS_PERIOD", "0.1");
	drive_setenv("RANK", "3");
	assert_child(one_operation);
	snprintf(path, sizeof(path), "%s/kymo-3.prom", drive_path());
	file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	assert_non_null(strstr(text, "# TYPE kymo_nccl_gpu_seconds histogram\n"));
	assert_non_null(strstr(text, "\nkymo_nccl_operations_total{host=\""));
	assert_non_null(strstr(text, ",world_rank=\"3\",pid=\""));
	assert_non_null(strstr(text, ",ranks=\"2\"} 0\n")); /* in flight: it has ended */
	assert_non_null(strstr(text,
			       ",communicator=\"job \\\"a\\\\b\\\"\\n?\","
			       "hash=\"000000000000feed\",creation=\"1\",rank=\"0\",ranks=\"2\","
			       "function=\"AllReduce\",size_below=\"4096\"} 1\n"));
	assert_non_null(strstr(text, "size_below=\"4096\",le=\"1.6e-05\"} 0\n"));
	assert_non_null(strstr(text, "size_below=\"4096\",le=\"3.2e-05\"} 1\n"));
	assert_non_null(strstr(text, "le=\"+Inf\"} 1\n"));
	assert_non_null(strstr(text, "kymo_nccl_gpu_seconds_sum{"));
	assert_non_null(strstr(text, ",reason=\"double_stop\"} 0\n"));
	assert_non_null(strstr(text, "\nkymo_nccl_stalled_operations{host=\""));
	assert_true(text[strlen(text) - 1] == '\n');
	/* A directory that is not there: one line. */
	drive_directory();
	drive_setenv("KYMO_NCCL_PROMETHEUS", "/nonexistent/kymo.prom");
	drive_setenv("KYMO_NCCL_PROMETHEUS_PERIOD", "100ms");
	assert_child(one_operation);
	assert_non_null(strstr(drive_error_output(), "'/nonexistent/kymo.prom' cannot be written"));
	assert_null(strstr(strstr(drive_error_output(), "cannot") + 1, "cannot"));
	assert_int_equal(drive_read()->operations, 1);
	/* What is no file stays what it is. */
	drive_directory();
	snprintf(path, sizeof(path), "%s/pipe", drive_path());
	assert_int_equal(mkfifo(path, 0600), 0);
	drive_setenv("KYMO_NCCL_PROMETHEUS", path);
	assert_child(one_operation);
	assert_non_null(strstr(drive_error_output(), "/pipe' cannot be written"));
	assert_int_equal(stat(path, &status), 0);
	assert_true(S_ISFIFO(status.st_mode));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_no_room_for_the_call_trace),
		cmocka_unit_test(test_graphs),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_prometheus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
