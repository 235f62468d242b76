/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How the user API finds libkymo: in every order of loading, or not at all.
 */
#include "front_test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "kymo/user.h"
#include "libkymo-dl/kymo_dl.h"

static bool is_open(const char *path)
{
	return dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL;
}

static void nothing_happens_without_kymo(void)
{
	void *user = front_open(USER_LIBRARY, RTLD_LOCAL);

	front_environment();
	CHECK(FUNCTION(user, kymo_push_region)("a") == KYMO_NO_BINDING);
	CHECK(FUNCTION(user, kymo_pop_region)("a") == KYMO_NO_BINDING);
	CHECK(FUNCTION(user, kymo_counter)("a", 1) == KYMO_NO_BINDING);
	CHECK(FUNCTION(user, kymo_flush)() == KYMO_NO_BINDING);
	CHECK(FUNCTION(user, kymo_push_region)(NULL) == KYMO_BAD_VALUE);
	CHECK(FUNCTION(user, kymo_version)() == KYMO_VERSION);
	CHECK(!is_open(FAKE_RUNTIME));
}
IN_CHILD(nothing_happens_without_kymo)

static void push_and_pop(void *user)
{
	CHECK(FUNCTION(user, kymo_push_region)("a") == KYMO_SUCCESS);
	CHECK(FUNCTION(user, kymo_pop_region)("a") == KYMO_SUCCESS);
}

static void libkymo_is_opened_on_first_use(void)
{
	void *user;

	front_environment();
	front_open(DL_LIBRARY, RTLD_GLOBAL);
	user = front_open(USER_LIBRARY, RTLD_GLOBAL);
	CHECK(!is_open(FAKE_RUNTIME));
	push_and_pop(user);
	/* the call from its constructor does nothing, and returns */
	CHECK_TEXT(front_seen(), "opened\nfrom inside: 0\nbegin user/a\nend user/a\n");
	push_and_pop(user);
	CHECK_TEXT(front_seen(), "begin user/a\nend user/a\n");
}
IN_CHILD(libkymo_is_opened_on_first_use)

/* As Python's ctypes opens it. */
static void a_local_user_library_is_bound(void)
{
	front_environment();
	front_open(DL_LIBRARY, RTLD_LOCAL);
	push_and_pop(front_open(USER_LIBRARY, RTLD_LOCAL));
	CHECK_TEXT(front_seen(), "opened\nbegin user/a\nend user/a\n");
}
IN_CHILD(a_local_user_library_is_bound)

static void a_user_library_that_was_there_first_is_bound(void)
{
	void *user = front_open(USER_LIBRARY, RTLD_LOCAL);

	front_environment();
	CHECK(FUNCTION(user, kymo_push_region)("a") == KYMO_NO_BINDING);
	front_open(DL_LIBRARY, RTLD_LOCAL);
	push_and_pop(user);
	CHECK_TEXT(front_seen(), "opened\nbegin user/a\nend user/a\n");
}
IN_CHILD(a_user_library_that_was_there_first_is_bound)

/* This program has libkymo-user.a in it, and exports nothing. */
static void a_copy_in_the_program_is_bound(void)
{
	void *user;

	front_environment();
	CHECK(kymo_push_region("static") == KYMO_NO_BINDING);
	front_open(DL_LIBRARY, RTLD_LOCAL);
	user = front_open(USER_LIBRARY, RTLD_LOCAL);
	CHECK(kymo_push_region("static") == KYMO_SUCCESS);
	push_and_pop(user);
	CHECK_TEXT(front_seen(), "opened\nbegin user/static\nbegin user/a\nend user/a\n");
}
IN_CHILD(a_copy_in_the_program_is_bound)

static void an_unloaded_copy_is_forgotten(void)
{
	front_environment();
	front_open(DL_LIBRARY, RTLD_LOCAL);
	for (int i = 0; i < 3; i++) {
		void *user = front_open(USER_LIBRARY, RTLD_LOCAL);
		CHECK(dlclose(user) == 0);
		CHECK(!is_open(USER_LIBRARY));
	}
	/* binds every copy that it knows */
	CHECK(kymo_push_region("a") == KYMO_SUCCESS);
	push_and_pop(front_open(USER_LIBRARY, RTLD_LOCAL));
	CHECK_TEXT(front_seen(), "opened\nbegin user/a\nbegin user/a\nend user/a\n");
}
IN_CHILD(an_unloaded_copy_is_forgotten)

static void enabled_off_binds_nothing(void)
{
	void *dl;

	front_environment();
	setenv("KYMO_ENABLED", "off", 1);
	dl = front_open(DL_LIBRARY, RTLD_LOCAL);
	CHECK(kymo_push_region("a") == KYMO_NO_BINDING);
	CHECK(FUNCTION(dl, kymo_dl_region_define)(NULL, "a") == 0);
	CHECK(!is_open(FAKE_RUNTIME));
}
IN_CHILD(enabled_off_binds_nothing)

static void a_process_without_a_session_binds_nothing(void)
{
	void *dl;

	setenv("KYMO_LIBRARY", FAKE_RUNTIME, 1);
	dl = front_open(DL_LIBRARY, RTLD_LOCAL);
	CHECK(kymo_push_region("a") == KYMO_NO_BINDING);
	CHECK(!FUNCTION(dl, kymo_dl_active)());
	CHECK(!is_open(FAKE_RUNTIME));
}
IN_CHILD(a_process_without_a_session_binds_nothing)

static void enabled_on_is_enough(void)
{
	setenv("KYMO_LIBRARY", FAKE_RUNTIME, 1);
	setenv("KYMO_ENABLED", "yes", 1);
	front_open(DL_LIBRARY, RTLD_LOCAL);
	CHECK(kymo_push_region("a") == KYMO_SUCCESS);
	CHECK_TEXT(front_seen(), "opened\nbegin user/a\n");
}
IN_CHILD(enabled_on_is_enough)

/* As after kymo attach: nothing in the environment, but libkymo is there and at work. */
static void a_libkymo_that_is_at_work_is_found(void)
{
	setenv("KYMO_LIBRARY", FAKE_RUNTIME, 1);
	front_open(FAKE_RUNTIME, RTLD_LOCAL);
	front_open(DL_LIBRARY, RTLD_LOCAL);
	CHECK(kymo_push_region("a") == KYMO_SUCCESS);
	CHECK_TEXT(front_seen(), "opened\nbegin user/a\n");
}
IN_CHILD(a_libkymo_that_is_at_work_is_found)

static void a_libkymo_that_cannot_be_opened_is_no_harm(void)
{
	void *dl;

	front_environment();
	setenv("KYMO_LIBRARY", "/dev/null", 1);
	dl = front_open(DL_COPY, RTLD_LOCAL);
	CHECK(kymo_push_region("a") == KYMO_NO_BINDING);
	CHECK(kymo_push_region("a") == KYMO_NO_BINDING);
	CHECK(FUNCTION(dl, kymo_dl_region_define)(NULL, "a") == 0);
	FUNCTION(dl, kymo_dl_enter)(0);
	FUNCTION(dl, kymo_dl_leave)(0);
	CHECK(!dlerror());
}
IN_CHILD(a_libkymo_that_cannot_be_opened_is_no_harm)

static void entries_go_to_libkymo(void)
{
	uint32_t named, function;
	void *dl;

	front_environment();
	dl = front_open(DL_LIBRARY, RTLD_LOCAL);
	FUNCTION(dl, kymo_dl_enter)(1); /* nothing is defined yet */
	named = FUNCTION(dl, kymo_dl_region_define)("mine", "named");
	function = FUNCTION(dl, kymo_dl_function_define)(0x1234);
	CHECK(named && function && named != function);
	CHECK(FUNCTION(dl, kymo_dl_region_define)("mine", "named") == named);
	CHECK(FUNCTION(dl, kymo_dl_region_define)(NULL, NULL) == 0);
	FUNCTION(dl, kymo_dl_enter)(function);
	FUNCTION(dl, kymo_dl_enter)(named);
	FUNCTION(dl, kymo_dl_leave)(named);
	FUNCTION(dl, kymo_dl_leave)(function);
	CHECK(FUNCTION(dl, kymo_dl_active)());
	CHECK_TEXT(front_seen(), "opened\nbegin host/0x1234\nbegin mine/named\nend mine/named\n"
				 "end host/0x1234\n");
}
IN_CHILD(entries_go_to_libkymo)

/* ---- many threads at once ---- */

enum { THREADS = 8 };
static atomic_int ready;

static void *first_use(void *push)
{
	int status;

	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < THREADS)
		;
	/* Those that come while libkymo is being opened do not wait for it. */
	do
		status = ((__typeof__(&kymo_push_region))push)("a");
	while (status == KYMO_NO_BINDING);
	CHECK(status == KYMO_SUCCESS);
	return NULL;
}

static void threads_may_come_first_together(void)
{
	pthread_t threads[THREADS];
	const char *seen;
	size_t begun = 0;

	front_environment();
	front_open(DL_LIBRARY, RTLD_LOCAL);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, first_use, (void *)kymo_push_region));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	seen = front_seen();
	CHECK(!strncmp(seen, "opened\n", 7) && !strstr(seen + 7, "opened"));
	while ((seen = strstr(seen, "begin user/a\n"))) {
		begun++;
		seen++;
	}
	CHECK(begun == THREADS);
}
IN_CHILD(threads_may_come_first_together)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_child_nothing_happens_without_kymo),
		cmocka_unit_test(in_child_libkymo_is_opened_on_first_use),
		cmocka_unit_test(in_child_a_local_user_library_is_bound),
		cmocka_unit_test(in_child_a_user_library_that_was_there_first_is_bound),
		cmocka_unit_test(in_child_a_copy_in_the_program_is_bound),
		cmocka_unit_test(in_child_an_unloaded_copy_is_forgotten),
		cmocka_unit_test(in_child_enabled_off_binds_nothing),
		cmocka_unit_test(in_child_a_process_without_a_session_binds_nothing),
		cmocka_unit_test(in_child_enabled_on_is_enough),
		cmocka_unit_test(in_child_a_libkymo_that_is_at_work_is_found),
		cmocka_unit_test(in_child_a_libkymo_that_cannot_be_opened_is_no_harm),
		cmocka_unit_test(in_child_entries_go_to_libkymo),
		cmocka_unit_test(in_child_threads_may_come_first_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
