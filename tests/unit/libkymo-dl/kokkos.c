/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The Kokkos tool, driven as Kokkos drives one: the library that KOKKOS_TOOLS_LIBS names is opened
 * and each function looked up by its name (Kokkos_Profiling.cpp, initialize()). No Debian package
 * has Kokkos, so this stands in for it.
 */
#include "front_test.h"

#include "libkymo-dl/kokkos.h"

static void *kokkos_initialize(void)
{
	void *tool = front_open(getenv("KOKKOS_TOOLS_LIBS"), RTLD_GLOBAL);
	struct kokkos_tool_settings settings = {.requires_global_fencing = true};

	FUNCTION(tool, kokkosp_init_library)(0, 20240906, 0, NULL);
	FUNCTION(tool, kokkosp_request_tool_settings)(1, &settings);
	CHECK(!settings.requires_global_fencing);
	front_seen();
	return tool;
}

static void environment(void)
{
	front_environment();
	setenv("KOKKOS_TOOLS_LIBS", DL_LIBRARY, 1);
}

static void kernels_are_regions(void)
{
	uint64_t outer, inner, fence;
	void *tool;

	environment();
	tool = kokkos_initialize();
	FUNCTION(tool, kokkosp_begin_parallel_for)("saxpy", 3, &outer);
	FUNCTION(tool, kokkosp_begin_parallel_reduce)("sum", 0, &inner);
	FUNCTION(tool, kokkosp_end_parallel_reduce)(inner);
	FUNCTION(tool, kokkosp_end_parallel_for)(outer);
	FUNCTION(tool, kokkosp_begin_parallel_scan)("saxpy", 0, &inner);
	FUNCTION(tool, kokkosp_end_parallel_scan)(inner);
	CHECK(inner == outer);
	FUNCTION(tool, kokkosp_begin_fence)("Kokkos::fence: all", 0, &fence);
	FUNCTION(tool, kokkosp_end_fence)(fence);
	CHECK_TEXT(front_seen(), "begin kokkos/saxpy\n  construct = 'parallel_for'\n  device = 3\n"
				 "begin kokkos/sum\n  construct = 'parallel_reduce'\n  device = 0\n"
				 "end kokkos/sum\nend kokkos/saxpy\n"
				 "begin kokkos/saxpy\n  construct = 'parallel_scan'\n  device = 0\n"
				 "end kokkos/saxpy\n"
				 "begin kokkos/Kokkos::fence: all\n  construct = 'fence'\n"
				 "  device = 0\nend kokkos/Kokkos::fence: all\n");
	FUNCTION(tool, kokkosp_finalize_library)();
	FUNCTION(tool, kokkosp_begin_parallel_for)("late", 0, &outer);
	FUNCTION(tool, kokkosp_end_parallel_for)(outer);
	CHECK_TEXT(front_seen(), "");
}
IN_CHILD(kernels_are_regions)

static void regions_and_copies_nest(void)
{
	struct kokkos_space host = {"Host"}, device;
	void *tool;

	environment();
	tool = kokkos_initialize();
	memset(device.name, 'D', sizeof(device.name)); /* not terminated */
	FUNCTION(tool, kokkosp_pop_profile_region)();
	FUNCTION(tool, kokkosp_push_profile_region)("step");
	FUNCTION(tool, kokkosp_begin_deep_copy)(device, "d", (void *)16, host, "h", (void *)32, 64);
	FUNCTION(tool, kokkosp_end_deep_copy)();
	FUNCTION(tool, kokkosp_pop_profile_region)();
	CHECK_TEXT(
		front_seen(),
		"begin kokkos/step\nbegin kokkos/kokkos_deep_copy\n  bytes = 64\n"
		"  to_label = 'd'\n"
		"  to_space = 'DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD'\n"
		"  to = @10\n  from_label = 'h'\n  from_space = 'Host'\n  from = @20\n"
		"end kokkos/kokkos_deep_copy\nend kokkos/step\n");
	for (int i = 0; i < 1000; i++)
		FUNCTION(tool, kokkosp_push_profile_region)("deep");
	for (int i = 0; i < 1001; i++)
		FUNCTION(tool, kokkosp_pop_profile_region)();
	front_seen();
	FUNCTION(tool, kokkosp_push_profile_region)("again");
	CHECK_TEXT(front_seen(), "begin kokkos/again\n");
}
IN_CHILD(regions_and_copies_nest)

static void sections_overlap(void)
{
	uint32_t a = 7, b = 7, c = 7;
	void *tool;

	environment();
	tool = kokkos_initialize();
	FUNCTION(tool, kokkosp_create_profile_section)("a", &a);
	FUNCTION(tool, kokkosp_create_profile_section)("b", &b);
	CHECK(a && b && a != b);
	FUNCTION(tool, kokkosp_start_profile_section)(a);
	FUNCTION(tool, kokkosp_start_profile_section)(b);
	FUNCTION(tool, kokkosp_stop_profile_section)(a);
	FUNCTION(tool, kokkosp_stop_profile_section)(b);
	FUNCTION(tool, kokkosp_destroy_profile_section)(a);
	FUNCTION(tool, kokkosp_start_profile_section)(a);
	FUNCTION(tool, kokkosp_start_profile_section)(123456);
	CHECK_TEXT(front_seen(), "begin kokkos/a\nbegin kokkos/b\nend kokkos/a\nend kokkos/b\n");
	for (int i = 0; i < 2000; i++) {
		FUNCTION(tool, kokkosp_create_profile_section)("again", &c);
		CHECK(c);
		FUNCTION(tool, kokkosp_destroy_profile_section)(c);
	}
	for (int i = 0; i < 2000; i++)
		FUNCTION(tool, kokkosp_create_profile_section)("kept", &c);
	CHECK(!c); /* no room: left out */
	FUNCTION(tool, kokkosp_start_profile_section)(c);
	CHECK_TEXT(front_seen(), "");
}
IN_CHILD(sections_overlap)

static void data_and_events_are_marks(void)
{
	struct kokkos_space space = {"Cuda"};
	void *tool;

	environment();
	tool = kokkos_initialize();
	FUNCTION(tool, kokkosp_allocate_data)(space, "x", (void *)4096, 800);
	FUNCTION(tool, kokkosp_deallocate_data)(space, NULL, (void *)4096, 800);
	FUNCTION(tool, kokkosp_dual_view_sync)("v", (void *)1, true);
	FUNCTION(tool, kokkosp_dual_view_modify)("v", (void *)1, false);
	FUNCTION(tool, kokkosp_profile_event)("event");
	FUNCTION(tool, kokkosp_declare_metadata)("k", "v");
	CHECK_TEXT(front_seen(),
		   "mark kokkos/kokkos_allocate\n  label = 'x'\n  space = 'Cuda'\n"
		   "  address = @1000\n  bytes = 800\n"
		   "mark kokkos/kokkos_deallocate\n  label = ''\n  space = 'Cuda'\n"
		   "  address = @1000\n  bytes = 800\n"
		   "mark kokkos/kokkos_dual_view_sync\n  label = 'v'\n  address = @1\n"
		   "  side = 'device'\n"
		   "mark kokkos/kokkos_dual_view_modify\n  label = 'v'\n  address = @1\n"
		   "  side = 'host'\n"
		   "mark kokkos/event\n"
		   "mark kokkos/kokkos_metadata\n  key = 'k'\n  value = 'v'\n");
}
IN_CHILD(data_and_events_are_marks)

static void settings_count(void)
{
	struct kokkos_space host = {"Host"};
	uint64_t id;
	uint32_t section;
	void *tool;

	environment();
	setenv("KYMO_KOKKOSP_PREFIX", "[k] ", 1);
	setenv("ROCPROFSYS_KOKKOSP_NAME_LENGTH_MAX", "5", 1);
	setenv("KYMO_KOKKOSP_DEEP_COPY", "off", 1);
	tool = kokkos_initialize();
	FUNCTION(tool, kokkosp_begin_parallel_for)("short", 0, &id);
	FUNCTION(tool, kokkosp_end_parallel_for)(id);
	FUNCTION(tool, kokkosp_begin_parallel_for)("longer", 0, &id);
	FUNCTION(tool, kokkosp_end_parallel_for)(id);
	FUNCTION(tool, kokkosp_push_profile_region)("in");
	FUNCTION(tool, kokkosp_begin_deep_copy)(host, "d", NULL, host, "h", NULL, 64);
	FUNCTION(tool, kokkosp_end_deep_copy)();
	FUNCTION(tool, kokkosp_pop_profile_region)();
	FUNCTION(tool, kokkosp_create_profile_section)("s", &section);
	FUNCTION(tool, kokkosp_start_profile_section)(section);
	CHECK_TEXT(front_seen(),
		   "begin kokkos/[k] short\n  construct = 'parallel_for'\n  device = 0\n"
		   "end kokkos/[k] short\nbegin kokkos/[k] in\nend kokkos/[k] in\n"
		   "begin kokkos/[k] s\n");
}
IN_CHILD(settings_count)

static void off_is_off(void)
{
	uint64_t id = 9;
	void *tool;

	environment();
	setenv("KYMO_USE_KOKKOSP", "off", 1);
	tool = kokkos_initialize();
	FUNCTION(tool, kokkosp_begin_parallel_for)("kernel", 0, &id);
	FUNCTION(tool, kokkosp_end_parallel_for)(id);
	FUNCTION(tool, kokkosp_push_profile_region)("r");
	FUNCTION(tool, kokkosp_profile_event)("e");
	CHECK(!dlopen(FAKE_RUNTIME, RTLD_NOW | RTLD_NOLOAD));
}
IN_CHILD(off_is_off)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_child_kernels_are_regions),
		cmocka_unit_test(in_child_regions_and_copies_nest),
		cmocka_unit_test(in_child_sections_overlap),
		cmocka_unit_test(in_child_data_and_events_are_marks),
		cmocka_unit_test(in_child_settings_count),
		cmocka_unit_test(in_child_off_is_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
