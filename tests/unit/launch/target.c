/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Finding the program, and telling what cannot be profiled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "console/message.h"
#include "launch/target.h"

static char scratch[] = "/tmp/kymo-test-XXXXXX";
static struct target target;
static struct problem problem;

static int setup(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/kymo-test-XXXXXX");
	return !mkdtemp(scratch) || chdir(scratch);
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return chdir("/") || system(command);
}

static void write_program(const char *name, const void *bytes, size_t size, mode_t mode)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
	assert_int_equal(chmod(name, mode), 0);
}

static void the_path_is_searched(void **state)
{
	(void)state;
	assert_int_equal(mkdir("a", 0755), 0);
	assert_int_equal(mkdir("b", 0755), 0);
	write_program("a/prog", "x", 1, 0644);
	write_program("b/prog", "x", 1, 0755);
	setenv("PATH", "/nonexistent:a:b", 1);
	assert_int_equal(target_find_program("prog", &target, &problem), 0);
	assert_string_equal(target.path, "b/prog");
	setenv("PATH", "a", 1);
	assert_int_equal(target_find_program("prog", &target, &problem),
			 EXIT_PROGRAM_NOT_EXECUTABLE);
	assert_int_equal(target_find_program("gorp", &target, &problem), EXIT_PROGRAM_NOT_FOUND);
	assert_int_equal(target_find_program("./gorp", &target, &problem), EXIT_PROGRAM_NOT_FOUND);
	assert_int_equal(target_find_program("", &target, &problem), EXIT_PROGRAM_NOT_FOUND);
	assert_int_equal(target_find_program("./a", &target, &problem),
			 EXIT_PROGRAM_NOT_EXECUTABLE);
	assert_non_null(strstr(problem.text, "directory"));
	assert_int_equal(target_find_program("a/prog/x", &target, &problem),
			 EXIT_PROGRAM_NOT_FOUND);
	setenv("PATH", "/usr/bin:/bin", 1);
}

/* An ELF header, optionally with one PT_INTERP. */
static void write_elf(const char *name, uint8_t class, uint16_t machine, const char *interpreter)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		char interpreter[64];
	} image = {.header = {.e_ident = {0x7f, 'E', 'L', 'F', class, ELFDATA2LSB, EV_CURRENT},
			      .e_type = ET_DYN,
			      .e_machine = machine,
			      .e_phoff = sizeof(Elf64_Ehdr),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 1}};

	image.segment.p_type = interpreter ? PT_INTERP : PT_LOAD;
	image.segment.p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
	image.segment.p_filesz = interpreter ? strlen(interpreter) + 1 : 0;
	snprintf(image.interpreter, sizeof(image.interpreter), "%s",
		 interpreter ? interpreter : "");
	write_program(name, &image, sizeof(image), 0755);
}

static const char *obstacle(const char *name)
{
	assert_int_equal(target_find_program(name, &target, &problem), 0);
	assert_int_equal(target_find_obstacle(&target, &problem), 0);
	return target.obstacle;
}

static void what_cannot_be_preloaded_is_told(void **state)
{
	char musl[64];

	(void)state;
	write_elf("dynamic", ELFCLASS64, EM_X86_64, "/lib64/ld-linux-x86-64.so.2");
	write_elf("static", ELFCLASS64, EM_X86_64, NULL);
	write_elf("small", ELFCLASS32, EM_386, "/lib/ld-linux.so.2");
	write_elf("arm", ELFCLASS64, EM_AARCH64, "/lib/ld-linux-aarch64.so.1");
	snprintf(musl, sizeof(musl), "%s/ld-musl-x86_64.so.1", scratch);
	write_program(musl, "", 0, 0755);
	write_elf("musl", ELFCLASS64, EM_X86_64, musl);
	write_elf("no-loader", ELFCLASS64, EM_X86_64, "/no/such/loader");
	assert_int_equal(target_find_program("./no-loader", &target, &problem), 0);
	assert_int_equal(target_find_obstacle(&target, &problem), EXIT_PROGRAM_NOT_FOUND);
	assert_string_equal(obstacle("./dynamic"), "");
	assert_non_null(strstr(obstacle("./static"), "statically linked"));
	assert_non_null(strstr(obstacle("./small"), "another kind of machine"));
	assert_non_null(strstr(obstacle("./arm"), "another kind of machine"));
	assert_non_null(strstr(obstacle("./musl"), "musl"));
}

static void scripts_are_judged_by_their_interpreter(void **state)
{
	char line[128];

	(void)state;
	write_elf("static", ELFCLASS64, EM_X86_64, NULL);
	snprintf(line, sizeof(line), "#! %s/static -x\nbody\n", scratch);
	write_program("script", line, strlen(line), 0755);
	write_program("plain", "#!/bin/sh\n", 10, 0755);
	write_program("loop", "#!./loop\n", 9, 0755);
	write_program("empty", "", 0, 0755);
	write_program("cut", "\177ELF", 4, 0755);
	write_program("gone", "#!/no/such/interpreter -x\n", 26, 0755);
	assert_int_equal(target_find_program("./gone", &target, &problem), 0);
	assert_int_equal(target_find_obstacle(&target, &problem), EXIT_PROGRAM_NOT_FOUND);
	assert_non_null(strstr(problem.text, "'/no/such/interpreter'"));
	assert_non_null(strstr(obstacle("./script"), "statically linked"));
	assert_string_equal(obstacle("./plain"), "");
	assert_string_equal(obstacle("./loop"), "");
	assert_string_equal(obstacle("./empty"), "");
	assert_string_equal(obstacle("./cut"), "");
}

static void set_user_id_programs_are_told(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	write_elf("setuid", ELFCLASS64, EM_X86_64, "/lib64/ld-linux-x86-64.so.2");
	assert_int_equal(chown("setuid", 65534, 65534), 0);
	assert_int_equal(chmod("setuid", 04755), 0);
	assert_non_null(strstr(obstacle("./setuid"), "set-user-id"));
	assert_int_equal(chown("setuid", 0, 0), 0);
	assert_int_equal(chmod("setuid", 04755), 0);
	assert_string_equal(obstacle("./setuid"), ""); /* root's own program for root */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_path_is_searched),
		TEST(what_cannot_be_preloaded_is_told),
		TEST(scripts_are_judged_by_their_interpreter),
		TEST(set_user_id_programs_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
