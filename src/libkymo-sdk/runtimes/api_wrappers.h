/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that go into a runtime's tables: each tells of the call and makes it. They are made of
 * the lists of the public headers (hsa/core_api_list.h and so on), in which an argument becomes
 * ", (VALUE, type, name)": API_MAP_WITH_COMMAS() and API_MAP() apply a macro to each of those.
 *
 * Entries of AMD's tables lie in the order of the lists, so an entry's number is its operation. Who
 * includes api_set.h defines API_CALL_DATA_TYPE, the struct of arguments and result that tools get;
 * API_STATUS_TYPE, what functions return; those that return something else are in api_returns.h:
 *
 *   #define API_RETURNS_function ~, VALUE, const char *
 *   #define API_RETURNS_function ~, VOID, void
 *
 * Names of locals begin with api_, because those of parameters may be any.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_API_WRAPPERS_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_API_WRAPPERS_H

#include <stdint.h>
#include <string.h>

#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/runtimes/api_returns.h"
#include "libkymo-sdk/runtimes/api_tables.h"

/* clang-format off */

#define API_PASTE_TOKENS(a, b) a##b
#define API_JOIN(a, b)  API_PASTE_TOKENS(a, b)

#define ROCP_A(type, name)             , (VALUE, type, name)
#define ROCP_P(type, name, parameters) , (FUNCTION_POINTER, type, name, parameters)
#define ROCP_N(name)                   , (NONE, none, name)

#define API_MAP_WITH_COMMAS_1(m, a)       m a
#define API_MAP_WITH_COMMAS_2(m, a, ...)  m a, API_MAP_WITH_COMMAS_1(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_3(m, a, ...)  m a, API_MAP_WITH_COMMAS_2(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_4(m, a, ...)  m a, API_MAP_WITH_COMMAS_3(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_5(m, a, ...)  m a, API_MAP_WITH_COMMAS_4(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_6(m, a, ...)  m a, API_MAP_WITH_COMMAS_5(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_7(m, a, ...)  m a, API_MAP_WITH_COMMAS_6(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_8(m, a, ...)  m a, API_MAP_WITH_COMMAS_7(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_9(m, a, ...)  m a, API_MAP_WITH_COMMAS_8(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_10(m, a, ...) m a, API_MAP_WITH_COMMAS_9(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_11(m, a, ...) m a, API_MAP_WITH_COMMAS_10(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_12(m, a, ...) m a, API_MAP_WITH_COMMAS_11(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_13(m, a, ...) m a, API_MAP_WITH_COMMAS_12(m, __VA_ARGS__)
#define API_MAP_WITH_COMMAS_14(m, a, ...) m a, API_MAP_WITH_COMMAS_13(m, __VA_ARGS__)
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
#define API_FIFTEENTH_ARGUMENT(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, ...) o
#define API_SELECT_BY_ARGUMENT_COUNT(how, ...)                                                                     \
	API_FIFTEENTH_ARGUMENT(__VA_ARGS__, how##14, how##13, how##12, how##11, how##10, how##9, how##8, how##7, \
		 how##6, how##5, how##4, how##3, how##2, how##1, ~)
#define API_MAP_WITH_COMMAS(m, ...) API_SELECT_BY_ARGUMENT_COUNT(API_MAP_WITH_COMMAS_, __VA_ARGS__)(m, __VA_ARGS__)
#define API_MAP(m, ...)  API_SELECT_BY_ARGUMENT_COUNT(API_MAP_, __VA_ARGS__)(m, __VA_ARGS__)

#define API_PARAMETER(how, ...)             API_PARAMETER_##how(__VA_ARGS__)
#define API_PARAMETER_VALUE(type, name)         type name
#define API_PARAMETER_FUNCTION_POINTER(type, name, others) type(*name) others
#define API_PARAMETER_NONE(type, name)         void
#define API_ARGUMENT(how, ...)              API_ARGUMENT_##how(__VA_ARGS__)
#define API_ARGUMENT_VALUE(type, name)          name
#define API_ARGUMENT_FUNCTION_POINTER(type, name, others)  name
#define API_ARGUMENT_NONE(type, name)
#define API_STORE_ARGUMENT(how, ...)                  API_STORE_ARGUMENT_##how(__VA_ARGS__)
#define API_STORE_ARGUMENT_VALUE(type, name)              api_kept->name = name;
#define API_STORE_ARGUMENT_FUNCTION_POINTER(type, name, others)      api_kept->name = name;
#define API_STORE_ARGUMENT_NONE(type, name)              (void)api_kept;

#define API_CALL_AND_STORE_VALUE(type, call)                                                               \
	type api_result = call;                                                                    \
	_Static_assert(sizeof(api_result) <= sizeof(api_data.retval), "room for it");              \
	memcpy(&api_data.retval, &api_result, sizeof(api_result));
#define API_CALL_AND_STORE_VOID(type, call)        call;
#define API_RETURN_VALUE                   return api_result;
#define API_RETURN_VOID
#define API_RETURN_CALL_VALUE(call)               return call;
#define API_RETURN_CALL_VOID(call)                call;

/* A function of the set, and what it returns. Where there is no macro API_RETURNS_name, its name is
 * `first`, and the usual follows. */
#define API_DEFINE_FUNCTION_WRAPPER(set, ...)             API_DEFINE_FUNCTION_WRAPPER_EXPANDED(set, __VA_ARGS__)
#define API_DEFINE_FUNCTION_WRAPPER_EXPANDED(set, name, ...)                                                              \
	API_DEFINE_BY_RETURN_KIND(set, name, (__VA_ARGS__), API_RETURNS_##name, VALUE, API_STATUS_TYPE, ~)
#define API_DEFINE_BY_RETURN_KIND(...)                    API_DEFINE_BY_RETURN_KIND_EXPANDED(__VA_ARGS__)
#define API_DEFINE_BY_RETURN_KIND_EXPANDED(set, name, arguments, first, kind, type, ...)                                  \
	API_DEFINE_WRAPPER(set, name, kind, type, API_STRIP_PARENTHESES arguments)
#define API_STRIP_PARENTHESES(...)                     __VA_ARGS__
#define API_DEFINE_WRAPPER(...)                    API_DEFINE_WRAPPER_EXPANDED(__VA_ARGS__)
#define API_DEFINE_WRAPPER_EXPANDED(set, name, kind, type, ...)                                                    \
	typedef type set##_type_##name(API_MAP_WITH_COMMAS(API_PARAMETER, __VA_ARGS__));                      \
                                                                                                   \
	__attribute__((noinline)) static type set##_tell_##name(                                   \
		API_MAP_WITH_COMMAS(API_PARAMETER, __VA_ARGS__))                                              \
	{                                                                                          \
		set##_type_##name *api_original =                                                  \
			(set##_type_##name *)set##_originals[set##_number_##name];                 \
		API_CALL_DATA_TYPE api_data;                                                                 \
		__typeof__(api_data.args.name) *api_kept = &api_data.args.name;                    \
		struct sdk_call_state api_call;                                                          \
		bool api_told;                                                                     \
                                                                                                   \
		memset(&api_data, 0, sizeof(api_data));                                            \
		api_data.size = sizeof(api_data);                                                  \
		API_MAP(API_STORE_ARGUMENT, __VA_ARGS__)                                                     \
		api_told = sdk_call_enter(&api_call, API_DOMAIN, set##_number_##name, &api_data);\
		API_CALL_AND_STORE_##kind(type, api_original(API_MAP_WITH_COMMAS(API_ARGUMENT, __VA_ARGS__)))         \
		if (api_told)                                                                      \
			sdk_call_exit(&api_call, &api_data);                                       \
		API_RETURN_##kind                                                                  \
	}                                                                                          \
                                                                                                   \
	/* What nobody wants costs a load and a jump. */                                           \
	static type set##_##name(API_MAP_WITH_COMMAS(API_PARAMETER, __VA_ARGS__))                             \
	{                                                                                          \
		set##_type_##name *api_original =                                                  \
			(set##_type_##name *)set##_originals[set##_number_##name];                 \
                                                                                                   \
		if (__builtin_expect(sdk_is_operation_wanted(API_DOMAIN, set##_number_##name), 0))             \
			api_original = set##_tell_##name;                                          \
		API_RETURN_CALL_##kind(api_original(API_MAP_WITH_COMMAS(API_ARGUMENT, __VA_ARGS__)))                 \
	}
/* clang-format on */

#endif
