/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is opened of what others made, and which paths nobody else can change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/foreign_file.h"
#include "common/trusted_path.h"

static char directory[64];

static int prepare(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/kymo-foreign-XXXXXX");
	return mkdtemp(directory) && !chdir(directory) ? 0 : -1;
}

static int clean(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return chdir("/") || system(command);
}

static void make_file(const char *path, const char *text)
{
	FILE *stream = fopen(path, "we");

	assert_non_null(stream);
	fputs(text, stream);
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(chmod(path, 0644), 0);
}

static int try(unsigned trust, uid_t owner, const char *path)
{
	struct foreign_open_policy how = {
		.directory = AT_FDCWD, .trust_flags = trust, .owner = owner};
	int file = foreign_open_file(&how, path, NULL);

	if (file < 0)
		return file;
	close(file);
	return 0;
}

static void test_kinds(void **state)
{
	(void)state;
	make_file("file", "text");
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(mkfifo("pipe", 0666), 0);
	assert_int_equal(mkdir("folder", 0777), 0);
	assert_int_equal(try(FOREIGN_TRUST_ANY, 0, "file"), 0);
	assert_int_equal(try(FOREIGN_TRUST_ANY, 0, "link"), 0);
	assert_int_equal(try(FOREIGN_REFUSE_LINKS, 0, "file"), 0);
	assert_int_equal(try(FOREIGN_REFUSE_LINKS, 0, "link"), -ELOOP);
	assert_int_equal(try(FOREIGN_ONLY_OWN_LINKS, 0, "link"), 0);
	if (!geteuid()) {
		assert_int_equal(lchown("link", 12345, 0), 0);
		assert_int_equal(try(FOREIGN_ONLY_OWN_LINKS, 0, "link"), -ELOOP);
	}
	/* Neither waits for somebody to write, nor rewinds a tape. */
	alarm(10);
	assert_int_equal(try(FOREIGN_TRUST_ANY, 0, "pipe"), -ENODEV);
	assert_int_equal(try(FOREIGN_TRUST_ANY, 0, "/dev/tty"), -ENODEV);
	assert_int_equal(try(FOREIGN_TRUST_ANY, 0, "/dev/zero"), -ENODEV);
	assert_int_equal(try(FOREIGN_TRUST_ANY, 0, "folder"), -EISDIR);
	assert_int_equal(try(FOREIGN_TRUST_ANY, 0, "missing"), -ENOENT);
	alarm(0);
	assert_string_equal(foreign_error_to_text(-ENODEV), "it is not a regular file");
}

static void test_owners(void **state)
{
	(void)state;
	make_file("mine", "text");
	assert_int_equal(try(FOREIGN_ONLY_OWN_FILES, 0, "mine"), 0);
	assert_int_equal(try(FOREIGN_ONLY_OWN_FILES, 0, "/etc/passwd"), 0);
	assert_int_equal(chmod("mine", 0664), 0);
	assert_int_equal(try(FOREIGN_ONLY_OWN_FILES, 0, "mine"), -EPERM);
	assert_int_equal(try(FOREIGN_ONLY_OWNER_OR_ROOT, 0, "mine"), 0);
	if (geteuid())
		skip();
	assert_int_equal(chown("mine", 12345, 0), 0);
	assert_int_equal(try(FOREIGN_ONLY_OWN_FILES, 0, "mine"), -EPERM);
	assert_int_equal(try(FOREIGN_ONLY_OWNER_OR_ROOT, 0, "mine"), -EPERM);
	assert_int_equal(try(FOREIGN_ONLY_OWNER_OR_ROOT, 12345, "mine"), 0);
	assert_int_equal(try(FOREIGN_TRUST_ANY, 0, "mine"), 0);
}

static void test_read(void **state)
{
	struct foreign_open_policy how = {.directory = AT_FDCWD};
	char *text;
	size_t size;

	(void)state;
	make_file("text", "some text");
	assert_int_equal(foreign_read_whole_file(&how, "text", 100, &text, &size), 0);
	assert_int_equal(size, 9);
	assert_string_equal(text, "some text");
	free(text);
	assert_int_equal(foreign_read_whole_file(&how, "text", 8, &text, &size), -EFBIG);
	make_file("empty", "");
	assert_int_equal(foreign_read_whole_file(&how, "empty", 8, &text, &size), 0);
	assert_string_equal(text, "");
	free(text);
}

static void test_paths(void **state)
{
	char resolved[PATH_MAX], inner[PATH_MAX];
	struct untrusted_path_part_info doubt;
	struct stat status;

	(void)state;
	snprintf(inner, sizeof(inner), "%s/a/b/c", directory);
	assert_int_equal(trusted_path_resolve_and_check(inner, resolved, &doubt), -ENOENT);
	assert_int_equal(trusted_path_make_directories(inner, 0755, resolved, &doubt), 0);
	assert_string_equal(resolved, inner);
	assert_int_equal(trusted_path_make_directories("a/b/../b/d", 0755, resolved, &doubt), 0);
	assert_int_equal(symlink("a", "way"), 0);
	assert_int_equal(trusted_path_resolve_and_check("way/b/c", resolved, &doubt), 0);
	assert_string_equal(resolved, inner);
	/* Others can exchange what lies in `a`, but not with the sticky bit. */
	assert_int_equal(chmod("a", 0777), 0);
	assert_int_equal(trusted_path_resolve_and_check("way/b/c", resolved, &doubt), -EPERM);
	assert_true(doubt.writable);
	assert_string_equal(strrchr(doubt.path, '/'), "/a");
	assert_int_equal(chmod("a", 01777), 0);
	assert_int_equal(trusted_path_resolve_and_check("way/b/c", resolved, &doubt), 0);
	if (geteuid())
		skip();
	assert_int_equal(chown("a", 12345, 0), 0);
	assert_int_equal(trusted_path_resolve_and_check("a/b/c", resolved, &doubt), -EPERM);
	assert_int_equal(doubt.owner, 12345);
	/* and nothing is made in there */
	assert_int_equal(trusted_path_make_directories("a/new/file", 0755, resolved, &doubt),
			 -EPERM);
	assert_int_equal(stat("a/new", &status), -1);
}

/* Step by step: what is missing is made, our own links are followed, those of others are not. */
static void test_steps(void **state)
{
	struct opened_directory_with_trust at;
	char inner[PATH_MAX];
	struct stat status;

	(void)state;
	snprintf(inner, sizeof(inner), "%s/a/b", directory);
	assert_int_equal(trusted_path_open_or_make_directory("a/b", 0, &at), -ENOENT);
	assert_int_equal(trusted_path_open_or_make_directory("a/./b//", 0755, &at), 0);
	assert_true(at.trusted);
	assert_string_equal(at.path, inner);
	assert_int_equal(fstat(at.descriptor, &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	close(at.descriptor);
	assert_int_equal(symlink(inner, "way"), 0);
	assert_int_equal(symlink("circle", "circle"), 0);
	assert_int_equal(trusted_path_open_or_make_directory("way/../c", 0755, &at), 0);
	snprintf(inner, sizeof(inner), "%s/a/c", directory);
	assert_string_equal(at.path, inner);
	close(at.descriptor);
	assert_int_equal(trusted_path_open_or_make_directory("circle", 0755, &at), -EMLINK);
	make_file("file", "");
	assert_int_equal(trusted_path_open_or_make_directory("file/d", 0755, &at), -ENOTDIR);
	assert_int_equal(trusted_path_open_or_make_directory("/", 0, &at), 0);
	assert_string_equal(at.path, "/");
	close(at.descriptor);
	assert_int_equal(chmod("a", 0777), 0);
	assert_int_equal(trusted_path_open_or_make_directory("a/b", 0, &at), 0);
	assert_false(at.trusted);
	assert_true(at.doubt.writable);
	close(at.descriptor);
	if (geteuid())
		skip();
	assert_int_equal(lchown("way", 12345, 0), 0);
	assert_int_equal(trusted_path_open_or_make_directory("way/c", 0755, &at), -ELOOP);
	assert_int_equal(at.doubt.owner, 12345);
	assert_non_null(strstr(at.doubt.path, "/way"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kinds, prepare, clean),
		cmocka_unit_test_setup_teardown(test_owners, prepare, clean),
		cmocka_unit_test_setup_teardown(test_read, prepare, clean),
		cmocka_unit_test_setup_teardown(test_paths, prepare, clean),
		cmocka_unit_test_setup_teardown(test_steps, prepare, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
