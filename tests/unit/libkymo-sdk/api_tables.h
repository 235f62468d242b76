/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Stand-ins for the functions of AMD's runtimes, made of the same lists as what goes into their
 * tables, and a call of each: arguments are filled with a pattern, which has to arrive at the
 * stand-in and at the tool; the result has to come back to both.
 *
 * Included by api_tables.c once a list, with API_LIST_NAME (a name), API_LIST_INCLUDE_FILE,
 * API_CALL_DATA_TYPE and API_STATUS_TYPE.
 */
/* clang-format off */
#undef API_DEFINE_WRAPPER_EXPANDED
#define API_DEFINE_WRAPPER_EXPANDED(set, name, kind, type, ...)                                                    \
	typedef type set##_type_##name(API_MAP_WITH_COMMAS(API_PARAMETER, __VA_ARGS__));                      \
                                                                                                   \
	static type set##_fake_##name(API_MAP_WITH_COMMAS(API_PARAMETER, __VA_ARGS__))                        \
	{                                                                                          \
		API_CALL_DATA_TYPE api_data;                                                                 \
		__typeof__(api_data.args.name) *api_kept = &api_data.args.name;                    \
                                                                                                   \
		memset(&api_data, 0, sizeof(api_data));                                            \
		API_MAP(API_STORE_ARGUMENT, __VA_ARGS__)                                                     \
		api_arrived(#name, api_kept, sizeof(*api_kept));                                       \
		TEST_RESULT_##kind(type)                                                           \
	}                                                                                          \
                                                                                                   \
	static void set##_call_##name(api_function *entry)                                         \
	{                                                                                          \
		API_CALL_DATA_TYPE api_data;                                                                 \
		__typeof__(api_data.args.name) *api_kept = &api_data.args.name;                    \
		unsigned char api_pattern = 0x10;                                                  \
                                                                                                   \
		memset(&api_data, 0, sizeof(api_data));                                            \
		(void)api_pattern;                                                                 \
		API_MAP(TEST_FILL, __VA_ARGS__)                                                    \
		api_expect(#name, api_kept, sizeof(*api_kept), TEST_SIZE_##kind(type));                \
		TEST_CALL_##kind(type,                                                             \
			((set##_type_##name *)entry)(API_MAP_WITH_COMMAS(TEST_ARGUMENT, __VA_ARGS__)))        \
	}
/* clang-format on */

#define ROCP_F(name, args) API_DEFINE_FUNCTION_WRAPPER(API_LIST_NAME, name args)
#include API_LIST_INCLUDE_FILE
#undef ROCP_F

static api_function *API_JOIN(API_LIST_NAME, _table)[] = {
#define ROCP_F(name, args) (api_function *)API_JOIN(API_LIST_NAME, _fake_##name),
#include API_LIST_INCLUDE_FILE
#undef ROCP_F
};

static void (*const API_JOIN(API_LIST_NAME, _calls)[])(api_function *) = {
#define ROCP_F(name, args) API_JOIN(API_LIST_NAME, _call_##name),
#include API_LIST_INCLUDE_FILE
#undef ROCP_F
};

#undef API_LIST_NAME
#undef API_LIST_INCLUDE_FILE
