/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of one list, as api_set_ and SET. Included once a list, with SET (a name), LIST
 * (the header), API_DOMAIN, and for all of a runtime API_DATA and API_STATUS; see api_wrappers.h.
 */
#include "libkymo-sdk/api_wrappers.h"

enum {
#define ROCP_F(name, args) API_JOIN(SET, _number_##name),
#include LIST
#undef ROCP_F
	API_JOIN(SET, _count)
};

static api_function *API_JOIN(SET, _originals)[API_JOIN(SET, _count)];

#define ROCP_F(name, args) API_FUNCTION(SET, name args)
#include LIST
#undef ROCP_F

static api_function *const API_JOIN(SET, _wrappers)[] = {
#define ROCP_F(name, args) (api_function *)API_JOIN(SET, _##name),
#include LIST
#undef ROCP_F
};

const struct api_set API_JOIN(api_set_, SET) = {API_JOIN(SET, _wrappers), API_JOIN(SET, _originals),
						API_JOIN(SET, _count)};

#undef SET
#undef LIST
#undef API_DOMAIN
