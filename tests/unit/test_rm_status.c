/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's status codes as names and as errors. */
#include "support/test.h"

#include <pthread.h>

#include "gpu/nvidia/rm.h"

TEST(the_codes_that_matter_have_a_name_and_an_error)
{
	static const struct {
		uint32_t status;
		const char *name;
		int error;
	} code[] = {
		{0x00, "NV_OK", 0},
		{0x03, "NV_ERR_BUSY_RETRY", -EBUSY},
		{0x0f, "NV_ERR_GPU_IS_LOST", -ENODEV},
		{0x1b, "NV_ERR_INSUFFICIENT_PERMISSIONS", -EPERM},
		{0x1f, "NV_ERR_INVALID_ARGUMENT", -EINVAL},
		{0x23, "NV_ERR_INVALID_CLIENT", -ENXIO},
		{0x31, "NV_ERR_INVALID_OBJECT", -ENXIO},
		{0x33, "NV_ERR_INVALID_OBJECT_HANDLE", -ENXIO},
		{0x40, "NV_ERR_INVALID_STATE", -EBUSY},
		{0x56, "NV_ERR_NOT_SUPPORTED", -ENOTSUP},
		{0x57, "NV_ERR_OBJECT_NOT_FOUND", -ENXIO},
		{0x65, "NV_ERR_TIMEOUT", -ETIMEDOUT},
	};

	for (unsigned i = 0; i < sizeof code / sizeof *code; i++) {
		assert_string_equal(gp_rm_status_name(code[i].status), code[i].name);
		assert_int_equal(gp_rm_errno(code[i].status), code[i].error);
	}
}

TEST(no_code_is_taken_for_success)
{
	for (uint32_t status = 1; status < 0x1000; status++) {
		assert_true(gp_rm_errno(status) < 0);
		assert_true(gp_rm_status_name(status)[0]);
	}
}

TEST(a_code_that_nobody_knows_is_shown_as_a_number)
{
	assert_non_null(strstr(gp_rm_status_name(0x7f), "0x7f"));
	assert_int_equal(gp_rm_errno(0x7f), -EIO);
	assert_non_null(strstr(gp_rm_status_name(0x1fffffff), "0x1fffffff"));
}

TEST(an_errno_of_the_call_stays_what_it_is)
{
	assert_int_equal(gp_rm_errno(GP_RM_ERRNO | ENOTTY), -ENOTTY);
	assert_int_equal(gp_rm_errno(GP_RM_ERRNO | EPERM), -EPERM);
	assert_string_equal(gp_rm_status_name(GP_RM_ERRNO | ENOTTY), gp_error_name(-ENOTTY));
}

static void *ask_for_another(void *arg)
{
	(void)arg;
	gp_rm_status_name(0x5555);
	return NULL;
}

TEST(a_name_is_the_calling_threads_own)
{
	const char *name = gp_rm_status_name(0x7e);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ask_for_another, NULL), 0);
	pthread_join(thread, NULL);
	assert_non_null(strstr(name, "0x7e"));
}
