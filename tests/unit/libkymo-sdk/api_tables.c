/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of HSA, HIP, RCCL, rocDecode and rocJPEG, against stand-ins for all of their functions:
 * what arrives, what is told, what comes back; and tables of other lengths and versions.
 */
#include "scenario.h"

#include "libkymo-sdk/runtimes/api_wrappers.h"

/* ---- what stand-ins and calls have in common ---- */

enum { ARGUMENTS_MAX = 512 };

static struct {
	const char *name;
	unsigned char arguments[ARGUMENTS_MAX];
	size_t arguments_size, result_size;
	int arrived, entered, left;
	const void *payload_arguments, *payload_result;
	int operation;
} now;

static void api_expect(const char *name, const void *arguments, size_t size, size_t result_size)
{
	memset(&now, 0, sizeof(now));
	CHECK(size <= sizeof(now.arguments));
	now.name = name;
	now.arguments_size = size;
	now.result_size = result_size;
	memcpy(now.arguments, arguments, size);
}

static void same_arguments(const char *name, const void *arguments)
{
	if (!strcmp(name, now.name) && !memcmp(arguments, now.arguments, now.arguments_size))
		return;
	fprintf(stderr, "%s: other arguments, or %s\n", now.name, name);
	_exit(1);
}

/* The library itself asks for HSA's agents, and nobody is to hear of that. */
static void api_arrived(const char *name, const void *arguments, size_t size)
{
	if (!now.name && !strcmp(name, "hsa_iterate_agents"))
		return;
	CHECK_EQUAL(size, now.arguments_size);
	same_arguments(name, arguments);
	CHECK_EQUAL(now.left, 0);
	now.arrived++;
}

static void is_result(const unsigned char *bytes, size_t size)
{
	CHECK_EQUAL(size, now.result_size);
	for (size_t i = 0; i < size; i++)
		CHECK_EQUAL(bytes[i], 0x5a);
}

#define TEST_FILL(how, ...) TEST_FILL_##how(__VA_ARGS__)
#define TEST_FILL_VALUE(type, name)                                                                \
	api_pattern++;                                                                             \
	memset(&api_kept->name,                                                                    \
	       _Generic(api_kept->name, bool : 1, default                                          \
			: api_pattern),                                                            \
	       sizeof(api_kept->name));
#define TEST_FILL_FUNCTION_POINTER(type, name, others) TEST_FILL_VALUE(type, name)
#define TEST_FILL_NONE(type, name)
#define TEST_ARGUMENT(how, ...)                            TEST_ARGUMENT_##how(__VA_ARGS__)
#define TEST_ARGUMENT_VALUE(type, name)                    api_kept->name
#define TEST_ARGUMENT_FUNCTION_POINTER(type, name, others) api_kept->name
#define TEST_ARGUMENT_NONE(type, name)
#define TEST_RESULT_VALUE(type)                                                                    \
	type api_result;                                                                           \
	memset(&api_result, 0x5a, sizeof(api_result));                                             \
	return api_result;
#define TEST_RESULT_VOID(type)
#define TEST_SIZE_VALUE(type) sizeof(type)
#define TEST_SIZE_VOID(type)  0
#define TEST_CALL_VALUE(type, call)                                                                \
	type api_result = call;                                                                    \
	is_result((const unsigned char *)&api_result, sizeof(api_result));
#define TEST_CALL_VOID(type, call) call;

/* ---- the lists ---- */

#define API_CALL_DATA_TYPE    rocprofiler_callback_tracing_hsa_api_data_t
#define API_STATUS_TYPE       hsa_status_t
#define API_LIST_NAME         hsa_core
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/core_api_list.h>
#include "api_tables.h"
#define API_LIST_NAME         hsa_amd_ext
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/amd_ext_api_list.h>
#include "api_tables.h"
#define API_LIST_NAME         hsa_image_ext
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/image_ext_api_list.h>
#include "api_tables.h"
#define API_LIST_NAME         hsa_finalize_ext
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
#include "api_tables.h"
#undef API_CALL_DATA_TYPE
#undef API_STATUS_TYPE

#define API_CALL_DATA_TYPE    rocprofiler_callback_tracing_hip_api_data_t
#define API_STATUS_TYPE       hipError_t
#define API_LIST_NAME         hip_runtime
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hip/runtime_api_list.h>
#include "api_tables.h"
#define API_LIST_NAME         hip_compiler
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hip/compiler_api_list.h>
#include "api_tables.h"
#undef API_CALL_DATA_TYPE
#undef API_STATUS_TYPE

#define API_CALL_DATA_TYPE    rocprofiler_callback_tracing_rccl_api_data_t
#define API_STATUS_TYPE       ncclResult_t
#define API_LIST_NAME         rccl
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/rccl/api_list.h>
#include "api_tables.h"
#undef API_CALL_DATA_TYPE
#undef API_STATUS_TYPE

#define API_CALL_DATA_TYPE    rocprofiler_callback_tracing_rocdecode_api_data_t
#define API_STATUS_TYPE       rocDecStatus
#define API_LIST_NAME         rocdecode
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/rocdecode/api_list.h>
#include "api_tables.h"
#undef API_CALL_DATA_TYPE
#undef API_STATUS_TYPE

#define API_CALL_DATA_TYPE    rocprofiler_callback_tracing_rocjpeg_api_data_t
#define API_STATUS_TYPE       RocJpegStatus
#define API_LIST_NAME         rocjpeg
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/rocjpeg/api_list.h>
#include "api_tables.h"
#undef API_CALL_DATA_TYPE
#undef API_STATUS_TYPE

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct list {
	const char *library;
	api_function **functions;
	void (*const *calls)(api_function *entry);
	int count;
	rocprofiler_callback_tracing_kind_t kind;
	rocprofiler_buffer_tracing_kind_t buffer, buffer_ext;
	size_t result;
} lists[] = {
#define ENTRY(library, set, kind, ext, data)                                                       \
	{library,                                                                                  \
	 set##_table,                                                                              \
	 set##_calls,                                                                              \
	 COUNT(set##_table),                                                                       \
	 ROCPROFILER_CALLBACK_TRACING_##kind,                                                      \
	 ROCPROFILER_BUFFER_TRACING_##kind,                                                        \
	 ROCPROFILER_BUFFER_TRACING_##ext,                                                         \
	 offsetof(rocprofiler_callback_tracing_##data##_api_data_t, retval)},
	ENTRY("hsa", hsa_core, HSA_CORE_API, NONE,
	      hsa) ENTRY("hsa", hsa_amd_ext, HSA_AMD_EXT_API, NONE,
			 hsa) ENTRY("hsa", hsa_finalize_ext, HSA_FINALIZE_EXT_API, NONE,
				    hsa) ENTRY("hsa", hsa_image_ext, HSA_IMAGE_EXT_API, NONE, hsa)
		ENTRY("hip", hip_runtime, HIP_RUNTIME_API, HIP_RUNTIME_API_EXT, hip) ENTRY(
			"hip_compiler", hip_compiler, HIP_COMPILER_API, HIP_COMPILER_API_EXT,
			hip) ENTRY("rccl", rccl, RCCL_API, NONE, rccl)
			ENTRY("rocdecode", rocdecode, ROCDECODE_API, ROCDECODE_API_EXT, rocdecode)
				ENTRY("rocjpeg", rocjpeg, ROCJPEG_API, NONE, rocjpeg)
#undef ENTRY
};

enum { LISTS = COUNT(lists), HSA_LISTS = 4, ENTRIES_MAX = 512 };

/* hsa_api_trace.h: minor is the length of the table in bytes. */
struct hsa_version {
	uint32_t major, minor, step, reserved;
};

static union table {
	uint64_t size;
	struct {
		struct hsa_version version;
		api_function *entries[ENTRIES_MAX];
	} hsa;
	struct {
		uint64_t size;
		api_function *entries[ENTRIES_MAX];
	} plain;
} tables[LISTS];

static struct hsa_root {
	struct hsa_version version;
	union table *parts[HSA_LISTS];
	void *more[2];
} root;

int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
			      uint64_t count);
bool OnLoad(struct hsa_root *root, uint64_t version, uint64_t failed_count,
	    const char *const *failed_names);
void OnUnload(void);

static api_function **entries(int list)
{
	return list < HSA_LISTS ? tables[list].hsa.entries : tables[list].plain.entries;
}

/* As a runtime makes them. */
static void fill(int list)
{
	size_t bytes = sizeof(api_function *) * (size_t)lists[list].count;

	memcpy(entries(list), lists[list].functions, bytes);
	if (list < HSA_LISTS)
		tables[list].hsa.version = (struct hsa_version){
			2, (uint32_t)(bytes + sizeof(struct hsa_version)), 0, 0};
	else
		tables[list].size = bytes + sizeof(uint64_t);
}

static void fill_hsa(void)
{
	for (int i = 0; i < HSA_LISTS; i++) {
		fill(i);
		root.parts[i] = &tables[i];
	}
	root.version = (struct hsa_version){3, sizeof(root), 1, 0};
}

static void announce(int list)
{
	void *of_hsa[] = {&root}, *plain[] = {&tables[list]};

	CHECK_EQUAL(rocprofiler_set_api_table(lists[list].library, 70000, 0,
					      list < HSA_LISTS ? of_hsa : plain, 1),
		    0);
}

static void announce_all(void)
{
	fill_hsa();
	announce(0);
	for (int i = HSA_LISTS; i < LISTS; i++) {
		fill(i);
		announce(i);
	}
}

/* ---- a tool that wants everything ---- */

static rocprofiler_context_id_t callbacks, buffered;
static rocprofiler_buffer_id_t buffer;
static int records[ROCPROFILER_BUFFER_TRACING_LAST], initializations;

static void called(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		   void *data)
{
	const struct list *list = data;
	const char *name = NULL;

	CHECK(now.name != NULL);
	CHECK_EQUAL(record.kind, list->kind);
	OK(rocprofiler_query_callback_tracing_kind_operation_name(record.kind, record.operation,
								  &name, NULL));
	same_arguments(name, (char *)record.payload + sizeof(uint64_t));
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
		CHECK_EQUAL(now.arrived, 0);
		now.entered++;
		now.operation = record.operation;
		user_data->value = record.correlation_id.internal;
		return;
	}
	CHECK_EQUAL(record.phase, ROCPROFILER_CALLBACK_PHASE_EXIT);
	CHECK_EQUAL(record.operation, now.operation);
	CHECK_EQUAL(user_data->value, record.correlation_id.internal);
	CHECK_EQUAL(now.arrived, 1);
	is_result((unsigned char *)record.payload + list->result, now.result_size);
	now.left++;
}

static void initialized(rocprofiler_callback_tracing_record_t record,
			rocprofiler_user_data_t *user_data, void *data)
{
	(void)user_data;
	(void)data;
	initializations += record.operation == ROCPROFILER_RUNTIME_INITIALIZATION_HSA;
}

static void recorded(rocprofiler_context_id_t context, rocprofiler_buffer_id_t id,
		     rocprofiler_record_header_t **headers, size_t count, void *data,
		     uint64_t dropped)
{
	(void)context;
	(void)id;
	(void)data;
	CHECK_EQUAL(dropped, 0);
	for (size_t i = 0; i < count; i++) {
		const rocprofiler_buffer_tracing_hsa_api_record_t *record = headers[i]->payload;

		/* In the order of the calls, which is that of the tables. */
		CHECK_EQUAL(record->operation, records[headers[i]->kind]);
		CHECK_EQUAL(record->kind, headers[i]->kind);
		CHECK(record->start_timestamp <= record->end_timestamp);
		records[headers[i]->kind]++;
	}
}

static int want_all(void)
{
	OK(rocprofiler_create_context(&callbacks));
	OK(rocprofiler_create_context(&buffered));
	OK(rocprofiler_create_buffer(buffered, 1 << 20, 1 << 19, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     recorded, NULL, &buffer));
	for (int i = 0; i < LISTS; i++) {
		OK(rocprofiler_configure_callback_tracing_service(callbacks, lists[i].kind, NULL, 0,
								  called, (void *)&lists[i]));
		OK(rocprofiler_configure_buffer_tracing_service(buffered, lists[i].buffer, NULL, 0,
								buffer));
		if (lists[i].buffer_ext)
			OK(rocprofiler_configure_buffer_tracing_service(
				buffered, lists[i].buffer_ext, NULL, 0, buffer));
	}
	OK(rocprofiler_configure_callback_tracing_service(
		callbacks, ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION, NULL, 0,
		initialized, NULL));
	OK(rocprofiler_start_context(callbacks));
	return 0;
}

/* Calls everything through the tables, as a program does. */
static void call_all(int from, int to, int told)
{
	for (int list = from; list < to; list++) {
		for (int i = 0; i < lists[list].count; i++) {
			lists[list].calls[i](entries(list)[i]);
			CHECK_EQUAL(now.arrived, 1);
			CHECK_EQUAL(now.entered, told);
			CHECK_EQUAL(now.left, told);
			if (told)
				CHECK_EQUAL(now.operation, i);
			now.name = NULL;
		}
	}
}

static void every_function(void)
{
	scenario_tool(want_all);
	announce_all();
	call_all(0, LISTS, 1);
	OK(rocprofiler_stop_context(callbacks));
	call_all(0, LISTS, 0);
	OK(rocprofiler_start_context(buffered));
	call_all(0, LISTS, 0);
	OK(rocprofiler_flush_buffer(buffer));
	for (int i = 0; i < LISTS; i++) {
		CHECK_EQUAL(records[lists[i].buffer], lists[i].count);
		if (lists[i].buffer_ext)
			CHECK_EQUAL(records[lists[i].buffer_ext], lists[i].count);
	}
	CHECK_EQUAL(initializations, 1);
}

/* Without a tool tables stay as they are; one that comes later gets them. */
static void late_tool(void)
{
	fill_hsa();
	announce(0);
	call_all(0, HSA_LISTS, 0);
	CHECK(entries(0)[0] == lists[0].functions[0]);
	scenario_tool(want_all);
	CHECK(entries(0)[0] != lists[0].functions[0]);
	call_all(0, HSA_LISTS, 1);
	CHECK_EQUAL(initializations, 1);
}

/* ---- HSA's own ways ---- */

/* By HSA_TOOLS_LIB, by both ways at once, and again after hsa_shut_down(). */
static void tools_interface(void)
{
	scenario_tool(want_all);
	fill_hsa();
	CHECK(OnLoad(&root, 1, 0, NULL));
	call_all(0, HSA_LISTS, 1);
	announce(0);
	CHECK(OnLoad(&root, 1, 0, NULL));
	call_all(0, HSA_LISTS, 1);
	CHECK_EQUAL(initializations, 1);
	OnUnload();
	fill_hsa();
	call_all(0, HSA_LISTS, 0);
	CHECK(OnLoad(&root, 1, 0, NULL));
	call_all(0, HSA_LISTS, 1);
	CHECK_EQUAL(initializations, 2);
}

/* Of an older runtime there is less, and it may be in another order. */
static void other_tables(void)
{
	scenario_tool(want_all);
	fill_hsa();
	tables[0].hsa.version.minor -= (uint32_t)(2 * sizeof(api_function *));
	tables[1].hsa.version.major = 1;
	tables[2].hsa.version.major = 3;
	tables[3].hsa.entries[3] = NULL;
	announce(0);
	CHECK(entries(0)[lists[0].count - 2] == lists[0].functions[lists[0].count - 2]);
	CHECK(entries(0)[lists[0].count - 3] != lists[0].functions[lists[0].count - 3]);
	CHECK(entries(1)[0] == lists[1].functions[0]);
	CHECK(entries(2)[0] == lists[2].functions[0]);
	CHECK(entries(3)[3] == NULL);
	CHECK(entries(3)[4] != lists[3].functions[4]);
}

static void short_roots(void)
{
	void *nothing[] = {NULL};

	scenario_tool(want_all);
	fill_hsa();
	root.version.minor = sizeof(root.version) + sizeof(void *);
	announce(0);
	CHECK(entries(0)[0] != lists[0].functions[0]);
	CHECK(entries(1)[0] == lists[1].functions[0]);
	CHECK_EQUAL(rocprofiler_set_api_table("hsa", 1, 0, nothing, 1), -1);
	CHECK_EQUAL(rocprofiler_set_api_table("rccl", 1, 0, nothing, 1), 0);
	for (uint64_t size = 0; size < 8; size++) {
		tables[HSA_LISTS].size = size;
		announce(HSA_LISTS);
	}
}

/* A second copy of a runtime is left alone: what its functions were is not known apart. */
static void second_copy(void)
{
	scenario_tool(want_all);
	fill(HSA_LISTS);
	announce(HSA_LISTS);
	call_all(HSA_LISTS, HSA_LISTS + 1, 1);
	fill(HSA_LISTS);
	announce(HSA_LISTS);
	call_all(HSA_LISTS, HSA_LISTS + 1, 0);
}

/* ---- a tool that changes tables itself ---- */

static int between;
static hsa_status_t (*beneath)(void);

static hsa_status_t own_init(void)
{
	between++;
	CHECK_EQUAL(now.entered, 1);
	return beneath();
}

static void change(rocprofiler_intercept_table_t type, uint64_t version, uint64_t instance,
		   void **all, uint64_t count, void *data)
{
	api_function **first =
		&((union table *)((struct hsa_root *)all[0])->parts[0])->hsa.entries[0];

	CHECK_EQUAL(type, ROCPROFILER_HSA_TABLE);
	CHECK_EQUAL(version, 70000);
	CHECK_EQUAL(instance, 0);
	CHECK_EQUAL(count, 1);
	CHECK(data == &between);
	beneath = (hsa_status_t(*)(void)) * first;
	*first = (api_function *)own_init;
}

static int want_tables(void)
{
	OK(rocprofiler_at_intercept_table_registration(change, ROCPROFILER_HSA_TABLE, &between));
	return want_all();
}

static void changed_by_tools(void)
{
	scenario_tool(want_tables);
	fill_hsa();
	announce(0);
	lists[0].calls[0](entries(0)[0]);
	CHECK_EQUAL(between, 1);
	CHECK_EQUAL(now.arrived, 1);
	CHECK_EQUAL(now.left, 1);
}

SCENARIO(every_function)
SCENARIO(late_tool)
SCENARIO(tools_interface)
SCENARIO(other_tables)
SCENARIO(short_roots)
SCENARIO(second_copy)
SCENARIO(changed_by_tools)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_function),   cmocka_unit_test(test_late_tool),
		cmocka_unit_test(test_tools_interface),  cmocka_unit_test(test_other_tables),
		cmocka_unit_test(test_short_roots),      cmocka_unit_test(test_second_copy),
		cmocka_unit_test(test_changed_by_tools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
