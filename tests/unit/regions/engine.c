/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What programs do with regions, and what the reader finds. Each case runs with the trace and with
 * the profile that the process keeps; both must give the same counts.
 */
#include "unit/regions/engine_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/regions/regions.h"
#include "core/runtime.h"
#include "unit/analysis/test_directory.h"

static const char *const trace[] = {"KYMO_TRACE=on", NULL};
static const char *const profile[] = {"KYMO_TRACE=off", NULL};

static void begin(const char *name)
{
	region_begin_by_name(NULL, name);
}

static void end(const char *name)
{
	region_end_by_name(NULL, name);
}

/* The same body recorded both ways, in directories of their own. */
static void both_ways(void **state, void (*body)(void), const char *expected)
{
	const char *const *ways[] = {trace, profile};
	char directory[4096];

	for (int i = 0; i < 2; i++) {
		struct session *session;

		snprintf(directory, sizeof(directory), "%s/%d", (const char *)*state, i);
		mkdir(directory, 0700);
		session = engine_run(directory, ways[i], body, ENGINE_EXIT);
		assert_string_equal(engine_profile(session), expected);
		assert_int_equal(session_get_regions(session)->was_aggregated_in_process, i == 1);
		session_close(session);
	}
}

static void nested(void)
{
	for (int i = 0; i < 3; i++) {
		begin("a");
		begin("b");
		end("b");
		begin("b");
		end("b");
		begin("c");
		begin("b");
		end("b");
		end("c");
		end("a");
	}
}

static void calls_are_counted_by_path(void **state)
{
	both_ways(state, nested, "a 3+0\na;b 6+0\na;c 3+0\na;c;b 3+0\n");
}

static void recurse(int depth)
{
	begin("r");
	if (depth)
		recurse(depth - 1);
	end("r");
}

static void recursion(void)
{
	recurse(3);
	recurse(1);
}

static void recursion_is_a_path_a_level(void **state)
{
	both_ways(state, recursion, "r 2+0\nr;r 2+0\nr;r;r 1+0\nr;r;r;r 1+0\n");
}

static void left_by_longjmp(void)
{
	region_id outer = region_find_or_add_name(REGION_INSTRUMENTED, "outer"),
		  inner = region_find_or_add_name(REGION_INSTRUMENTED, "inner");

	region_begin(outer);
	region_begin(inner);
	region_begin(inner);
	region_end(outer);
	region_begin(outer);
	region_end(outer);
	region_end(inner); /* not open any more */
}

static void the_end_of_an_outer_region_ends_those_inside(void **state)
{
	struct session *session = engine_run(*state, trace, left_by_longjmp, ENGINE_EXIT);

	assert_string_equal(engine_profile(session),
			    "outer 2+0\nouter;inner 1+0\nouter;inner;inner 1+0\n");
	assert_int_equal(engine_loss(session, SPOOL_LOSS_REGION_UNBALANCED), 3);
	session_close(session);
}

/* From one of several depths of the stack. */
static __attribute__((noinline)) void jump_out(region_id region, jmp_buf *target, int deeper)
{
	volatile char room[256 * (deeper + 1)];

	__asm__ volatile("" ::"r"(room));
	region_begin_around_call(region);
	longjmp(*target, 1);
}

static void calls_left_by_longjmp(void)
{
	region_id call = region_find_or_add_name(REGION_IO, "call");
	jmp_buf target;

	begin("main");
	for (volatile int i = 0; i < 300; i++) {
		if (!setjmp(target))
			jump_out(call, &target, i % 3);
	}
	region_begin_around_call(call);
	region_end(call);
	end("main");
}

static void calls_that_were_left_do_not_pile_up(void **state)
{
	struct session *session = engine_run(*state, trace, calls_left_by_longjmp, ENGINE_EXIT);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < session_get_regions(session)->node_count; i++)
		sum += session_get_regions(session)->nodes[i].count;
	assert_int_equal(sum, 302);
	assert_true(session_get_regions(session)->node_count <= 4);
	assert_true(engine_loss(session, SPOOL_LOSS_REGION_UNBALANCED) >= 299);
	session_close(session);
}

static void overlapping(void)
{
	begin("a");
	begin("b");
	end("a");
	begin("c");
	end("c");
	end("b");
	begin("d");
	end("d");
}

static void named_regions_may_overlap(void **state)
{
	both_ways(state, overlapping, "a 1+0\na;b 1+0\na;b;c 1+0\nd 1+0\n");
}

static void left_open(void)
{
	begin("main");
	begin("inside");
}

static void open_regions_are_kept_by_a_killed_process(void **state)
{
	struct session *session = engine_run(*state, profile, left_open, ENGINE_KILL);

	assert_string_equal(engine_profile(session), "main 0+1\nmain;inside 0+1\n");
	session_close(session);
}

static void switched(void)
{
	region_id host = region_find_or_add_name(REGION_INSTRUMENTED, "host"),
		  late = region_find_or_add_name(REGION_INSTRUMENTED, "late");

	region_begin(host);
	regions_add_closed_reason(REGIONS_CLOSED_BY_STOP);
	region_begin(late);
	begin("user"); /* the program's own regions pass a stop */
	end("user");
	regions_remove_closed_reason(REGIONS_CLOSED_BY_STOP);
	region_begin(host);
	region_end(host);
	region_end(late); /* began unrecorded: ends unrecorded */
	region_end(host);
	regions_add_closed_reason(REGIONS_CLOSED_BY_WINDOW);
	begin("user");
	end("user");
	regions_remove_closed_reason(REGIONS_CLOSED_BY_WINDOW);
	regions_stop_in_this_thread();
	region_begin(host);
	region_end(host);
	regions_start_in_this_thread();
	region_begin(late);
	region_end(late);
}

static void switches_keep_begin_and_end_together(void **state)
{
	both_ways(state, switched, "host 1+0\nhost;host 1+0\nhost;user 1+0\nlate 1+0\n");
}

#define THREADS 8
#define CALLS   5000

static void *work(void *argument)
{
	region_id outer = region_find_or_add_name(REGION_INSTRUMENTED, "outer"),
		  inner = region_find_or_add_name(REGION_INSTRUMENTED, "inner");

	for (int i = 0; i < CALLS; i++) {
		region_begin(outer);
		region_begin(inner);
		region_end(inner);
		region_end(outer);
	}
	return argument;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void every_call_of_every_thread_is_counted(void **state)
{
	both_ways(state, run_threads, "outer 40000+0\nouter;inner 40000+0\n");
}

static void forking(void)
{
	region_id host = region_find_or_add_name(REGION_INSTRUMENTED, "host");
	int child;

	region_begin(host);
	child = fork();
	if (!child) {
		runtime_restart_in_forked_child();
		for (int i = 0; i < 10; i++) {
			region_begin(host);
			region_end(host);
		}
		region_end(host);
		runtime_finish();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	region_end(host);
}

static void a_forked_child_goes_on_with_its_own_file(void **state)
{
	const char *const *ways[] = {trace, profile};
	char directory[4096];

	for (int i = 0; i < 2; i++) {
		struct session *session;

		snprintf(directory, sizeof(directory), "%s/%d", (const char *)*state, i);
		mkdir(directory, 0700);
		session = engine_run(directory, ways[i], forking, ENGINE_EXIT);
		assert_int_equal(session->process_count, 2);
		assert_string_equal(engine_profile(session), "host 2+0\nhost;host 10+0\n");
		session_close(session);
	}
}

static void deep(void)
{
	region_id host = region_find_or_add_name(REGION_INSTRUMENTED, "deep");

	for (int i = 0; i < 3000; i++)
		region_begin(host);
	for (int i = 0; i < 3000; i++)
		region_end(host);
	begin("after");
	end("after");
}

static void deeper_regions_than_allowed_are_counted(void **state)
{
	static const char *const settings[] = {"KYMO_MAX_DEPTH=2", NULL};
	struct session *session = engine_run(*state, settings, deep, ENGINE_EXIT);

	assert_string_equal(engine_profile(session), "after 1+0\ndeep 1+0\ndeep;deep 1+0\n");
	assert_int_equal(engine_loss(session, SPOOL_LOSS_REGION_DEPTH), 2998);
	session_close(session);
}

static void deep_stacks_cross_chunks(void **state)
{
	struct session *session = engine_run(*state, trace, deep, ENGINE_EXIT);
	const struct model_regions *regions = session_get_regions(session);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < regions->node_count; i++)
		sum += regions->nodes[i].count;
	assert_int_equal(regions->node_count, 3001);
	assert_int_equal(sum, 3001);
	session_close(session);
}

static void selecting(void)
{
	begin("before");
	end("before");
	begin("wanted");
	begin("inside");
	end("inside");
	end("wanted");
	begin("after");
	end("after");
}

static void only_selected_regions_are_recorded(void **state)
{
	static const char *const settings[] = {"KYMO_SELECTED_REGIONS=wanted,other", NULL};
	struct session *session = engine_run(*state, settings, selecting, ENGINE_EXIT);

	assert_string_equal(engine_profile(session), "wanted 1+0\nwanted;inside 1+0\n");
	session_close(session);
}

static void categories(void)
{
	region_id mpi = region_find_or_add_name(REGION_MPI, "MPI_Send");

	region_begin(mpi);
	begin("user");
	region_begin_by_name("mine", "own");
	region_end_by_name("mine", "own");
	end("user");
	region_end(mpi);
}

static void categories_can_be_turned_off(void **state)
{
	static const char *const settings[] = {"KYMO_DISABLE_CATEGORIES=mpi,mine", NULL};
	static const char *const only[] = {"KYMO_ENABLE_CATEGORIES=mine", NULL};
	char directory[4096];
	struct session *session = engine_run(*state, settings, categories, ENGINE_EXIT);

	assert_string_equal(engine_profile(session), "user 1+0\n");
	session_close(session);
	snprintf(directory, sizeof(directory), "%s/only", (const char *)*state);
	mkdir(directory, 0700);
	session = engine_run(directory, only, categories, ENGINE_EXIT);
	assert_string_equal(engine_profile(session), "own 1+0\n");
	session_close(session);
}

static void many_names(void)
{
	char name[32];

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		begin(name);
		begin("inside");
		end("inside");
		end(name);
	}
}

static void nodes_are_bounded(void **state)
{
	static const char *const settings[] = {"KYMO_TRACE=off", "KYMO_PROFILE_MAX_NODES=16", NULL};
	struct session *session = engine_run(*state, settings, many_names, ENGINE_EXIT);
	const struct model_regions *regions = session_get_regions(session);
	uint64_t sum = 0;

	assert_true(regions->node_count <= 24);
	for (uint32_t i = 0; i < regions->node_count; i++)
		sum += regions->nodes[i].count;
	assert_int_equal(sum, 400);
	assert_true(engine_node(session, "(more)") != MODEL_ENTRY_INDEX_NONE);
	assert_true(engine_loss(session, SPOOL_LOSS_PROFILE_NODES) > 0);
	session_close(session);
}

static void names_that_share_a_buffer_are_told_apart(void **state)
{
	struct session *session = engine_run(*state, trace, many_names, ENGINE_EXIT);

	assert_int_equal(session_get_regions(session)->node_count, 400);
	assert_true(engine_node(session, "name199;inside") != MODEL_ENTRY_INDEX_NONE);
	session_close(session);
}

static void *short_thread(void *argument)
{
	begin("short");
	end("short");
	return argument;
}

static void churn(void)
{
	pthread_t thread;

	for (int i = 0; i < 50; i++) {
		pthread_create(&thread, NULL, short_thread, NULL);
		pthread_join(thread, NULL);
	}
}

static void ended_threads_hand_their_trees_on(void **state)
{
	static const char *const settings[] = {"KYMO_TRACE=off", "KYMO_PROFILE_MAX_THREADS=3",
					       NULL};
	struct session *session = engine_run(*state, settings, churn, ENGINE_EXIT);

	assert_string_equal(engine_profile(session), "short 50+0\n");
	assert_true(session_get_regions(session)->node_count <= 4);
	session_close(session);
}

static volatile sig_atomic_t handled;

static void handler(int signal)
{
	(void)signal;
	begin("handler");
	end("handler");
	handled++;
}

static void interrupted(void)
{
	struct itimerval interval = {{0, 200}, {0, 200}}, none = {{0, 0}, {0, 0}};
	region_id host = region_find_or_add_name(REGION_INSTRUMENTED, "host");
	unsigned rounds = 0;

	begin("handler"); /* the name is known before the storm */
	end("handler");
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &interval, NULL);
	while (handled < 500 && rounds++ < 20000000) {
		region_begin(host);
		region_end(host);
	}
	setitimer(ITIMER_REAL, &none, NULL);
	region_write_counter(region_find_or_add_name(REGION_INSTRUMENTED, "handled"),
			     (uint64_t)handled);
}

static void signal_handlers_may_use_regions(void **state)
{
	struct session *session = engine_run(*state, profile, interrupted, ENGINE_EXIT);
	uint32_t host = engine_node(session, "host");

	assert_true(host != MODEL_ENTRY_INDEX_NONE);
	assert_true(session_get_regions(session)->nodes[host].count > 1000);
	assert_int_equal(session_get_regions(session)->nodes[host].open, 0);
	session_close(session);
}

static void much(void)
{
	region_id host = region_find_or_add_name(REGION_INSTRUMENTED, "host");

	for (int i = 0; i < 1000000; i++) {
		region_begin(host);
		region_end(host);
	}
}

static void no_event_of_a_fast_loop_is_lost(void **state)
{
	struct session *session = engine_run(*state, trace, much, ENGINE_EXIT);

	assert_string_equal(engine_profile(session), "host 1000000+0\n");
	assert_int_equal(engine_loss(session, SPOOL_LOSS_REGION_EVENTS), 0);
	session_close(session);
}

static void a_ring_keeps_its_profile(void **state)
{
	static const char *const settings[] = {"KYMO_SPOOL_LIMIT=4M", "KYMO_SPOOL_RING=on", NULL};
	struct session *session = engine_run(*state, settings, much, ENGINE_EXIT);

	assert_true(engine_loss(session, SPOOL_LOSS_RING_OVERWRITE) > 0);
	assert_true(session_get_regions(session)->was_aggregated_in_process);
	assert_string_equal(engine_profile(session), "host 1000000+0\n");
	session_close(session);
}

#define PAGES 100

static void touching(void)
{
	volatile char *memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	begin("warm");
	end("warm");
	begin("touch");
	for (int i = 0; i < PAGES; i++)
		memory[i * 4096] = 1;
	end("touch");
	begin("sleep");
	usleep(20000);
	end("sleep");
	for (int i = 0; i < PAGES; i++) {
		begin("brief");
		end("brief");
	}
}

static const struct model_component_statistics *statistics(const struct session *session,
							   const char *path, const char *component)
{
	const struct model_regions *regions = session_get_regions(session);
	uint32_t node = engine_node(session, path);

	assert_true(node != MODEL_ENTRY_INDEX_NONE);
	for (uint32_t i = 0; i < regions->component_count; i++) {
		if (!strcmp(regions->components[i].name, component))
			return &regions->statistics[node * regions->component_count + i];
	}
	fail_msg("no component %s", component);
	return NULL;
}

static void components_measure(void **state)
{
	static const char *const settings[] = {
		"KYMO_COMPONENTS=wall_clock,num_minor_page_faults,page-faults,page_rss,"
		"voluntary_context_switch,thread_cpu_util,trip_count,read_char",
		"KYMO_COMPONENT_EVENTS=1:2", NULL};
	struct session *session = engine_run(*state, settings, touching, ENGINE_EXIT);

	assert_true(session_get_regions(session)->was_aggregated_in_process);
	assert_in_range((uint64_t)statistics(session, "touch", "num_minor_page_faults")->sum, PAGES,
			PAGES + 50);
	assert_true(statistics(session, "touch", "page_rss")->sum > 100000);
	assert_true(statistics(session, "sleep", "voluntary_context_switch")->sum >= 1);
	/* What kymo's own readings wait is not the program's. */
	assert_true(statistics(session, "brief", "voluntary_context_switch")->sum < PAGES / 4.0);
	assert_true(statistics(session, "sleep", "wall_clock")->sum > 15e6);
	assert_true(statistics(session, "sleep", "thread_cpu_util")->sum < 50);
	assert_int_equal((int)statistics(session, "touch", "trip_count")->sum, 1);
	session_close(session);
}

static void raw_forking(void)
{
	begin("before");
	end("before");
	if (!syscall(SYS_fork)) {
		begin("child"); /* must not go into its parent's file */
		end("child");
		syscall(SYS_exit_group, 0);
	}
	wait(NULL);
}

static void a_raw_fork_records_nothing(void **state)
{
	struct session *session = engine_run(*state, trace, raw_forking, ENGINE_EXIT);

	assert_string_equal(engine_profile(session), "before 1+0\n");
	session_close(session);
}

static void quick_calls(void)
{
	region_id quick = region_find_or_add_name(REGION_INSTRUMENTED, "quick"),
		  slow = region_find_or_add_name(REGION_INSTRUMENTED, "slow");

	for (int i = 0; i < 1000; i++) {
		region_begin(quick);
		region_end(quick);
	}
	for (int i = 0; i < 20; i++) {
		region_begin(slow);
		usleep(2000);
		region_end(slow);
	}
}

static void short_regions_can_be_throttled(void **state)
{
	static const char *const settings[] = {"KYMO_THROTTLE_COUNT=10",
					       "KYMO_THROTTLE_VALUE=1000000", NULL};
	struct session *session = engine_run(*state, settings, quick_calls, ENGINE_EXIT);

	assert_string_equal(engine_profile(session), "quick 10+0\nslow 20+0\n");
	assert_int_equal(engine_loss(session, SPOOL_LOSS_REGION_THROTTLED), 990);
	session_close(session);
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(calls_are_counted_by_path),
		TEST(recursion_is_a_path_a_level),
		TEST(the_end_of_an_outer_region_ends_those_inside),
		TEST(calls_that_were_left_do_not_pile_up),
		TEST(named_regions_may_overlap),
		TEST(open_regions_are_kept_by_a_killed_process),
		TEST(switches_keep_begin_and_end_together),
		TEST(every_call_of_every_thread_is_counted),
		TEST(a_forked_child_goes_on_with_its_own_file),
		TEST(deeper_regions_than_allowed_are_counted),
		TEST(deep_stacks_cross_chunks),
		TEST(only_selected_regions_are_recorded),
		TEST(categories_can_be_turned_off),
		TEST(nodes_are_bounded),
		TEST(names_that_share_a_buffer_are_told_apart),
		TEST(ended_threads_hand_their_trees_on),
		TEST(signal_handlers_may_use_regions),
		TEST(no_event_of_a_fast_loop_is_lost),
		TEST(a_ring_keeps_its_profile),
		TEST(components_measure),
		TEST(a_raw_fork_records_nothing),
		TEST(short_regions_can_be_throttled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
