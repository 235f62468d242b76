/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The settings table: the one source of every setting's name, type, default, choices, help and
 * command-line option.
 *
 * Both halves read it: the library in the profiled process reads values from the environment
 * (KYMO_NAME, then the aliases ROCPROFSYS_NAME and OMNITRACE_NAME where `alias` says the meaning is
 * the same); the kymo command merges options > environment > config file > default, checks
 * everything, and hands the result on as KYMO_* variables. `kymo avail`, --help, the man pages, the
 * shell completion and docs/reference/settings.md are generated from it.
 *
 * No state, no allocation; usable anywhere.
 */
#ifndef KYMO_COMMON_SETTINGS_H
#define KYMO_COMMON_SETTINGS_H

#include <stdint.h>

enum setting_type {
	SETTING_BOOL,     /* on/off, true/false, yes/no, 1/0; any case */
	SETTING_INTEGER,  /* decimal, within [minimum, maximum] */
	SETTING_NUMBER,   /* decimal with fraction, within [minimum, maximum] */
	SETTING_SIZE,     /* bytes, with optional suffix K M G (powers of 1024) */
	SETTING_DURATION, /* seconds, with optional suffix ns us ms s m h */
	SETTING_STRING,
	SETTING_CHOICE,  /* one of `choices` */
	SETTING_LIST,    /* comma- or blank-separated words; of `choices` where given */
	SETTING_TIDS,    /* list of thread numbers and ranges, 0-3,7 */
	SETTING_PERIODS, /* clock:delay:duration:cycles … */
	SETTING_PATH,    /* may hold %keys% */
	SETTING_PATTERN  /* POSIX extended regular expression */
};

enum setting_visibility {
	SETTING_BASIC,    /* in every listing */
	SETTING_ADVANCED, /* with --advanced or --all */
	SETTING_INTERNAL  /* between kymo's own halves; never listed, never accepted from users */
};

enum setting_id {
#define SETTING_ID(id) SETTING_##id,
#include "common/settings_ids.h"
#undef SETTING_ID
	SETTING_COUNT
};

struct setting {
	const char *name;          /* without prefix: SAMPLING_FREQ */
	const char *default_value; /* as a user would write it */
	const char *choices;       /* comma-separated, or NULL */
	const char *category;      /* heading in listings: "sampling", … */
	const char *help;          /* one sentence */
	const char *long_option; /* long option without dashes where it differs from the name; NULL:
			       derived */
	const char *metavar;     /* shown after the option: HZ, S, DIR; NULL: by type */
	const char *fallback_setting; /* name of the setting whose value counts while this one
				 is unset, or NULL */
	double minimum, maximum;      /* both 0: unbounded */
	enum setting_type type;
	enum setting_visibility visibility;
	char short_option;     /* 0: none */
	char has_peer_aliases; /* 1: ROCPROFSYS_ and OMNITRACE_ names are read as well */
};

/* In libraries that are loaded into programs category, help, long_option and metavar are NULL. */
extern const struct setting settings_table[SETTING_COUNT];

#endif
