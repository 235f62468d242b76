/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of one list of the public headers, as sdk_function_list_of_NAME. Included once a
 * list by functions.c, with FUNCTION_LIST_NAME, FUNCTION_LIST_INCLUDE_FILE (the header) and
 * FUNCTION_NAME_PREFIX (a string before each name, "" for none). FUNCTION_LIST_END: rows that
 * follow those of the list.
 */
#define ROCP_A(type, name)             {sizeof(type), _Alignof(type), (uint8_t)TYPE_TO_SDK_VALUE_KIND(type)},
#define ROCP_P(type, name, parameters) {sizeof(void *), _Alignof(void *), SDK_VALUE_POINTER},
#define ROCP_N(name)                   {0, 1, SDK_VALUE_NONE},
#define ROCP_F(name, args)                                                                         \
	static const struct sdk_argument_layout FUNCTION_LIST_JOIN(FUNCTION_LIST_NAME,             \
								   _##name)[] = {args};
#include FUNCTION_LIST_INCLUDE_FILE
#undef ROCP_A
#undef ROCP_P
#undef ROCP_N
#undef ROCP_F

#define ROCP_A(type, name)             #type "\0" #name "\0"
#define ROCP_P(type, name, parameters) #type " (*)" #parameters "\0" #name "\0"
#define ROCP_N(name)                   "\0\0"
#define ROCP_F(name, args)                                                                         \
	{FUNCTION_NAME_PREFIX #name "\0" args, FUNCTION_LIST_JOIN(FUNCTION_LIST_NAME, _##name),    \
	 (uint32_t)ARRAY_SIZE(FUNCTION_LIST_JOIN(FUNCTION_LIST_NAME, _##name))},
static const struct sdk_function_description FUNCTION_LIST_JOIN(FUNCTION_LIST_NAME,
								_descriptions)[] = {
#include FUNCTION_LIST_INCLUDE_FILE
#ifdef FUNCTION_LIST_END
	FUNCTION_LIST_END
#endif
};
#undef ROCP_A
#undef ROCP_P
#undef ROCP_N
#undef ROCP_F

const struct sdk_function_description_list FUNCTION_LIST_JOIN(sdk_function_list_of_,
							      FUNCTION_LIST_NAME) = {
	FUNCTION_LIST_JOIN(FUNCTION_LIST_NAME, _descriptions),
	(int32_t)ARRAY_SIZE(FUNCTION_LIST_JOIN(FUNCTION_LIST_NAME, _descriptions))};

#undef FUNCTION_LIST_NAME
#undef FUNCTION_LIST_INCLUDE_FILE
#undef FUNCTION_LIST_END
