/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that go into a runtime's tables: each tells of the call and makes it. They are made of
 * the lists of the public headers (hsa/core_api_list.h and so on), in which an argument becomes
 * ", (A, type, name)": API_LIST() and API_MAP() apply a macro to each of those.
 *
 * Entries of AMD's tables lie in the order of the lists, so an entry's number is its operation. Who
 * includes api_set.h defines API_DATA, the struct of arguments and result that tools get;
 * API_STATUS, what functions return; those that return something else are in api_returns.h:
 *
 *   #define API_RETURNS_function ~, VALUE, const char *
 *   #define API_RETURNS_function ~, VOID, void
 *
 * Names of locals begin with api_, because those of parameters may be any.
 */
#ifndef KYMO_LIBKYMO_SDK_API_WRAPPERS_H
#define KYMO_LIBKYMO_SDK_API_WRAPPERS_H

#include <stdint.h>
#include <string.h>

#include "libkymo-sdk/api_returns.h"
#include "libkymo-sdk/api_tables.h"
#include "libkymo-sdk/emit.h"

/* clang-format off */

#define API_JOIN_(a, b) a##b
#define API_JOIN(a, b)  API_JOIN_(a, b)

#define ROCP_A(type, name)             , (A, type, name)
#define ROCP_P(type, name, parameters) , (P, type, name, parameters)
#define ROCP_N(name)                   , (N, none, name)

#define API_LIST_1(m, a)       m a
#define API_LIST_2(m, a, ...)  m a, API_LIST_1(m, __VA_ARGS__)
#define API_LIST_3(m, a, ...)  m a, API_LIST_2(m, __VA_ARGS__)
#define API_LIST_4(m, a, ...)  m a, API_LIST_3(m, __VA_ARGS__)
#define API_LIST_5(m, a, ...)  m a, API_LIST_4(m, __VA_ARGS__)
#define API_LIST_6(m, a, ...)  m a, API_LIST_5(m, __VA_ARGS__)
#define API_LIST_7(m, a, ...)  m a, API_LIST_6(m, __VA_ARGS__)
#define API_LIST_8(m, a, ...)  m a, API_LIST_7(m, __VA_ARGS__)
#define API_LIST_9(m, a, ...)  m a, API_LIST_8(m, __VA_ARGS__)
#define API_LIST_10(m, a, ...) m a, API_LIST_9(m, __VA_ARGS__)
#define API_LIST_11(m, a, ...) m a, API_LIST_10(m, __VA_ARGS__)
#define API_LIST_12(m, a, ...) m a, API_LIST_11(m, __VA_ARGS__)
#define API_LIST_13(m, a, ...) m a, API_LIST_12(m, __VA_ARGS__)
#define API_LIST_14(m, a, ...) m a, API_LIST_13(m, __VA_ARGS__)
#define API_MAP_1(m, a)        m a
#define API_MAP_2(m, a, ...)   m a API_MAP_1(m, __VA_ARGS__)
#define API_MAP_3(m, a, ...)   m a API_MAP_2(m, __VA_ARGS__)
#define API_MAP_4(m, a, ...)   m a API_MAP_3(m, __VA_ARGS__)
#define API_MAP_5(m, a, ...)   m a API_MAP_4(m, __VA_ARGS__)
#define API_MAP_6(m, a, ...)   m a API_MAP_5(m, __VA_ARGS__)
#define API_MAP_7(m, a, ...)   m a API_MAP_6(m, __VA_ARGS__)
#define API_MAP_8(m, a, ...)   m a API_MAP_7(m, __VA_ARGS__)
#define API_MAP_9(m, a, ...)   m a API_MAP_8(m, __VA_ARGS__)
#define API_MAP_10(m, a, ...)  m a API_MAP_9(m, __VA_ARGS__)
#define API_MAP_11(m, a, ...)  m a API_MAP_10(m, __VA_ARGS__)
#define API_MAP_12(m, a, ...)  m a API_MAP_11(m, __VA_ARGS__)
#define API_MAP_13(m, a, ...)  m a API_MAP_12(m, __VA_ARGS__)
#define API_MAP_14(m, a, ...)  m a API_MAP_13(m, __VA_ARGS__)
#define API_15TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, ...) o
#define API_OF_COUNT(how, ...)                                                                     \
	API_15TH(__VA_ARGS__, how##14, how##13, how##12, how##11, how##10, how##9, how##8, how##7, \
		 how##6, how##5, how##4, how##3, how##2, how##1, ~)
#define API_LIST(m, ...) API_OF_COUNT(API_LIST_, __VA_ARGS__)(m, __VA_ARGS__)
#define API_MAP(m, ...)  API_OF_COUNT(API_MAP_, __VA_ARGS__)(m, __VA_ARGS__)

#define API_PARAMETER(how, ...)             API_PARAMETER_##how(__VA_ARGS__)
#define API_PARAMETER_A(type, name)         type name
#define API_PARAMETER_P(type, name, others) type(*name) others
#define API_PARAMETER_N(type, name)         void
#define API_ARGUMENT(how, ...)              API_ARGUMENT_##how(__VA_ARGS__)
#define API_ARGUMENT_A(type, name)          name
#define API_ARGUMENT_P(type, name, others)  name
#define API_ARGUMENT_N(type, name)
#define API_KEEP(how, ...)                  API_KEEP_##how(__VA_ARGS__)
#define API_KEEP_A(type, name)              api_kept->name = name;
#define API_KEEP_P(type, name, others)      api_kept->name = name;
#define API_KEEP_N(type, name)              (void)api_kept;

#define API_RESULT_VALUE(type, call)                                                               \
	type api_result = call;                                                                    \
	_Static_assert(sizeof(api_result) <= sizeof(api_data.retval), "room for it");              \
	memcpy(&api_data.retval, &api_result, sizeof(api_result));
#define API_RESULT_VOID(type, call)        call;
#define API_RETURN_VALUE                   return api_result;
#define API_RETURN_VOID
#define API_PASS_VALUE(call)               return call;
#define API_PASS_VOID(call)                call;

/* A function of the set, and what it returns. Where there is no macro API_RETURNS_name, its name is
 * `first`, and the usual follows. */
#define API_FUNCTION(set, ...)             API_FUNCTION_(set, __VA_ARGS__)
#define API_FUNCTION_(set, name, ...)                                                              \
	API_CHOOSE(set, name, (__VA_ARGS__), API_RETURNS_##name, VALUE, API_STATUS, ~)
#define API_CHOOSE(...)                    API_CHOOSE_(__VA_ARGS__)
#define API_CHOOSE_(set, name, arguments, first, kind, type, ...)                                  \
	API_DEFINE(set, name, kind, type, API_PLAIN arguments)
#define API_PLAIN(...)                     __VA_ARGS__
#define API_DEFINE(...)                    API_DEFINE_(__VA_ARGS__)
#define API_DEFINE_(set, name, kind, type, ...)                                                    \
	typedef type set##_type_##name(API_LIST(API_PARAMETER, __VA_ARGS__));                      \
                                                                                                   \
	__attribute__((noinline)) static type set##_tell_##name(                                   \
		API_LIST(API_PARAMETER, __VA_ARGS__))                                              \
	{                                                                                          \
		set##_type_##name *api_original =                                                  \
			(set##_type_##name *)set##_originals[set##_number_##name];                 \
		API_DATA api_data;                                                                 \
		__typeof__(api_data.args.name) *api_kept = &api_data.args.name;                    \
		struct sdk_call api_call;                                                          \
		bool api_told;                                                                     \
                                                                                                   \
		memset(&api_data, 0, sizeof(api_data));                                            \
		api_data.size = sizeof(api_data);                                                  \
		API_MAP(API_KEEP, __VA_ARGS__)                                                     \
		api_told = sdk_call_enter(&api_call, API_DOMAIN, set##_number_##name, &api_data);\
		API_RESULT_##kind(type, api_original(API_LIST(API_ARGUMENT, __VA_ARGS__)))         \
		if (api_told)                                                                      \
			sdk_call_exit(&api_call, &api_data);                                       \
		API_RETURN_##kind                                                                  \
	}                                                                                          \
                                                                                                   \
	/* What nobody wants costs a load and a jump. */                                           \
	static type set##_##name(API_LIST(API_PARAMETER, __VA_ARGS__))                             \
	{                                                                                          \
		set##_type_##name *api_original =                                                  \
			(set##_type_##name *)set##_originals[set##_number_##name];                 \
                                                                                                   \
		if (__builtin_expect(sdk_wants(API_DOMAIN, set##_number_##name), 0))             \
			api_original = set##_tell_##name;                                          \
		API_PASS_##kind(api_original(API_LIST(API_ARGUMENT, __VA_ARGS__)))                 \
	}
/* clang-format on */

#endif
