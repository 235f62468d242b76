/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code objects: the order in which they and their kernels are told, to contexts that come late, at
 * their end, and at the end of the process.
 */
#include "scenario.h"

#include "libkymo-sdk/emit.h"

#define KIND ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT

static char journal[1024];
static rocprofiler_context_id_t contexts[2];

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	const rocprofiler_callback_tracing_code_object_load_data_t *object = record.payload;
	const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t *kernel =
		record.payload;
	const rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t *host =
		record.payload;
	bool load = record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD;
	uint64_t expected = 0;
	char text[32];

	CHECK_EQUAL(record.correlation_id.internal, 0);
	CHECK(load || record.phase == ROCPROFILER_CALLBACK_PHASE_UNLOAD);
	if (record.operation == ROCPROFILER_CODE_OBJECT_LOAD) {
		CHECK_EQUAL(object->size, sizeof(*object));
		expected = object->code_object_id;
		snprintf(text, sizeof(text), "o%s", object->uri);
	} else if (record.operation == ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER) {
		CHECK_EQUAL(kernel->size, sizeof(*kernel));
		expected = 100 + kernel->kernel_id;
		snprintf(text, sizeof(text), "k%s", kernel->kernel_name);
	} else {
		CHECK_EQUAL(record.operation, ROCPROFILER_CODE_OBJECT_HOST_KERNEL_SYMBOL_REGISTER);
		expected = 200 + host->host_function_id;
		snprintf(text, sizeof(text), "h%s", host->device_function);
	}
	/* What is left at LOAD comes back at UNLOAD, for each context. */
	if (load) {
		CHECK_EQUAL(user_data->value, 0);
		user_data->value = expected + 1000 * (uint64_t)(intptr_t)data;
	}
	CHECK_EQUAL(user_data->value, expected + 1000 * (uint64_t)(intptr_t)data);
	CHECK(strlen(journal) + 40 < sizeof(journal));
	sprintf(journal + strlen(journal), "%s%d%s ", load ? "+" : "-", (int)(intptr_t)data, text);
}

static int initialize(void)
{
	for (int i = 0; i < 2; i++) {
		OK(rocprofiler_create_context(&contexts[i]));
		OK(rocprofiler_configure_callback_tracing_service(contexts[i], KIND, NULL, 0, tell,
								  (void *)(intptr_t)i));
	}
	return 0;
}

static uint64_t load(const char *uri)
{
	char text[16];
	rocprofiler_callback_tracing_code_object_load_data_t data = {.uri = text};
	uint64_t id;

	snprintf(text, sizeof(text), "%s", uri);
	id = sdk_code_object_add(&data);
	memset(text, 'X', sizeof(text)); /* it was copied */
	return id;
}

static uint64_t kernel(uint64_t object, const char *name)
{
	rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t data = {
		.code_object_id = object, .kernel_name = name};

	return sdk_kernel_symbol_add(&data);
}

static void host(uint64_t object, uint64_t kernel_id, const char *name)
{
	rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t data = {
		.code_object_id = object, .kernel_id = kernel_id, .device_function = name};

	CHECK(sdk_host_kernel_symbol_add(&data) != 0);
}

static void expect(const char *text)
{
	if (strcmp(journal, text)) {
		fprintf(stderr, "told:     %s\nexpected: %s\n", journal, text);
		_exit(1);
	}
	journal[0] = '\0';
}

static void objects_before_kernels_both_ways(void)
{
	uint64_t object;

	scenario_tool(initialize);
	OK(rocprofiler_start_context(contexts[0]));
	object = load("a");
	CHECK_EQUAL(object, 1);
	host(object, kernel(object, "k1"), "h1");
	CHECK_EQUAL(kernel(object, "k2"), 2);
	expect("");
	sdk_code_object_complete_and_report(object);
	expect("+0oa +0kk1 +0hh1 +0kk2 ");
	sdk_code_object_complete_and_report(object);
	expect("");
	sdk_code_object_report_unload(object);
	expect("-0oa -0kk1 -0hh1 -0kk2 ");
	sdk_code_object_report_unload(object);
	expect("");
}

/* ---- records that name kernels ---- */

static rocprofiler_buffer_id_t buffer;
static _Atomic int handed_over;
static int forgotten;

static void take(rocprofiler_context_id_t context, rocprofiler_buffer_id_t id,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	(void)context;
	(void)id;
	(void)headers;
	(void)data;
	CHECK_EQUAL(dropped, 0);
	handed_over += (int)count;
}

/* A tool that looks at kernels alone, and forgets them. */
static void forget(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		   void *data)
{
	(void)user_data;
	(void)data;
	CHECK_EQUAL(record.operation, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER);
	if (record.phase != ROCPROFILER_CALLBACK_PHASE_UNLOAD)
		return;
	CHECK_EQUAL(handed_over, 3);
	forgotten++;
}

static int initialize_forgetful(void)
{
	const rocprofiler_tracing_operation_t kernels =
		ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER;

	for (int i = 0; i < 2; i++)
		OK(rocprofiler_create_context(&contexts[i]));
	OK(rocprofiler_configure_callback_tracing_service(contexts[0], KIND, &kernels, 1, forget,
							  NULL));
	OK(rocprofiler_create_buffer(contexts[1], 65536, 65536, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     take, NULL, &buffer));
	OK(rocprofiler_configure_buffer_tracing_service(
		contexts[1], ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH, NULL, 0, buffer));
	OK(rocprofiler_start_context(contexts[0]));
	OK(rocprofiler_start_context(contexts[1]));
	return 0;
}

/* Records of kernels come before the end of the kernels, whatever the buffer's watermark. */
static void records_before_the_end_of_what_they_name(void)
{
	uint64_t object;

	scenario_tool(initialize_forgetful);
	object = load("a");
	for (int i = 0; i < 3; i++) {
		rocprofiler_kernel_dispatch_info_t info = {.size = 72,
							   .kernel_id = kernel(object, "k")};
		struct sdk_device_work *work;

		sdk_code_object_complete_and_report(object);
		work = sdk_dispatch_report_enqueue(&info);
		CHECK(work != NULL);
		sdk_dispatch_report_submitted(work, false);
		sdk_dispatch_report_complete(work, NULL, sdk_clock_read_now_ns(),
					     sdk_clock_read_now_ns());
	}
	CHECK_EQUAL(handed_over, 0);
	sdk_code_object_report_unload(object);
	CHECK_EQUAL(forgotten, 3);
}

static void late_contexts_hear_with_the_next_load(void)
{
	uint64_t a, b, gone;

	scenario_tool(initialize);
	OK(rocprofiler_start_context(contexts[0]));
	gone = load("gone");
	sdk_code_object_complete_and_report(gone);
	a = load("a");
	kernel(a, "k");
	sdk_code_object_complete_and_report(a);
	expect("+0ogone +0oa +0kk ");
	sdk_code_object_report_unload(gone);
	expect("-0ogone ");
	OK(rocprofiler_start_context(contexts[1]));
	expect(""); /* nothing at the start itself */
	b = load("b");
	sdk_code_object_complete_and_report(b);
	expect("+1oa +1kk +0ob +1ob ");
	OK(rocprofiler_stop_context(contexts[0]));
	sdk_code_object_report_unload(a);
	expect("-1oa -1kk ");
	sdk_code_object_report_unload(b);
	expect("-1ob ");
}

/* A kernel that is found in an object that has been told already. */
static void late_kernels(void)
{
	uint64_t object;

	scenario_tool(initialize);
	OK(rocprofiler_start_context(contexts[0]));
	object = load("a");
	sdk_code_object_complete_and_report(object);
	kernel(object, "late");
	expect("+0oa +0klate ");
	CHECK_EQUAL(kernel(77, "nowhere"), 0);
	sdk_code_object_report_unload(object);
	expect("-0oa -0klate ");
	sdk_code_object_report_unload(77);
	sdk_code_object_complete_and_report(77);
	expect("");
}

static void check_at_exit(void)
{
	expect("-1oa -1kk -0oa -0kk ");
}

static void what_is_loaded_is_unloaded_at_exit(void)
{
	uint64_t object;

	atexit(check_at_exit);
	scenario_tool(initialize);
	OK(rocprofiler_start_context(contexts[1]));
	OK(rocprofiler_start_context(contexts[0]));
	object = load("a");
	kernel(object, "k");
	sdk_code_object_complete_and_report(object);
	expect("+1oa +1kk +0oa +0kk ");
}

/* More than fit one go. */
static void many_objects_oldest_first(void)
{
	static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
	char expected[512] = "";

	scenario_tool(initialize);
	for (int i = 0; i < 150; i++) {
		uint64_t object = load(names[i % 10]);

		sdk_code_object_complete_and_report(object);
		if (i < 140)
			sdk_code_object_report_unload(object);
	}
	OK(rocprofiler_start_context(contexts[0]));
	sdk_code_object_complete_and_report(load("last"));
	for (int i = 0; i < 10; i++)
		sprintf(expected + strlen(expected), "+0o%d ", i);
	strcat(expected, "+0olast ");
	expect(expected);
}

#define TESTS(TEST)                                                                                \
	TEST(objects_before_kernels_both_ways)                                                     \
	TEST(records_before_the_end_of_what_they_name)                                             \
	TEST(late_contexts_hear_with_the_next_load)                                                \
	TEST(late_kernels)                                                                         \
	TEST(what_is_loaded_is_unloaded_at_exit)                                                   \
	TEST(many_objects_oldest_first)

TESTS(SCENARIO)

#define ENTRY(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ENTRY)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
