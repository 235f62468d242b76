/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of one list, as api_set_ and API_LIST_NAME. Included once a list, with
 * API_LIST_NAME (a name), API_LIST_INCLUDE_FILE (the header), API_DOMAIN, and for all of a runtime
 * API_CALL_DATA_TYPE and API_STATUS_TYPE; see api_wrappers.h.
 */
#include "libkymo-sdk/runtimes/api_wrappers.h"

enum {
#define ROCP_F(name, args) API_JOIN(API_LIST_NAME, _number_##name),
#include API_LIST_INCLUDE_FILE
#undef ROCP_F
	API_JOIN(API_LIST_NAME, _count)
};

static api_function *API_JOIN(API_LIST_NAME, _originals)[API_JOIN(API_LIST_NAME, _count)];

#define ROCP_F(name, args) API_DEFINE_FUNCTION_WRAPPER(API_LIST_NAME, name args)
#include API_LIST_INCLUDE_FILE
#undef ROCP_F

static api_function *const API_JOIN(API_LIST_NAME, _wrappers)[] = {
#define ROCP_F(name, args) (api_function *)API_JOIN(API_LIST_NAME, _##name),
#include API_LIST_INCLUDE_FILE
#undef ROCP_F
};

const struct api_wrapper_set API_JOIN(api_set_, API_LIST_NAME) = {
	API_JOIN(API_LIST_NAME, _wrappers), API_JOIN(API_LIST_NAME, _originals),
	API_JOIN(API_LIST_NAME, _count)};

#undef API_LIST_NAME
#undef API_LIST_INCLUDE_FILE
#undef API_DOMAIN
