/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each vendor has an environment variable that selects GPUs. AMD's numbers follow the driver's
 * nodes, as the back end does, so the number is used. NVIDIA's order depends on the driver and on
 * the container, so the UUID of the GPU is used.
 */
#include "cli/ask/visible_gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(struct json_object *device)
{
	const char *name = gp_field_text(device, "name");

	return name ? name : "this GPU";
}

/* The UUID that CUDA uses, from the driver's file about the GPU at this PCI address. */
static int read_uuid(const char *bus, char *uuid, size_t size)
{
	char path[96], line[128];
	FILE *f;

	snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", bus);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	*uuid = 0;
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "GPU UUID:", 9)) {
			const char *begin = line + 9 + strspn(line + 9, " \t");

			snprintf(uuid, size, "%.*s", (int)strcspn(begin, " \t\n"), begin);
		}
	fclose(f);
	return *uuid ? 0 : -ENOENT;
}

static int choose_nvidia(struct json_object *device, struct gp_error *err)
{
	const char *bus = gp_field_text(device, "bus");
	char uuid[64];
	int r = bus ? read_uuid(bus, uuid, sizeof uuid) : -ENOENT;

	if (r)
		return gp_fail(err, -ENOTSUP,
		               "the id of %s cannot be read (%s); set CUDA_VISIBLE_DEVICES instead "
		               "of --gpu",
		               name_of(device), gp_error_name(r));
	return setenv("CUDA_VISIBLE_DEVICES", uuid, 1) ? -errno : 0;
}

static int choose_number(const char *variable, unsigned number)
{
	char text[16];

	snprintf(text, sizeof text, "%u", number);
	return setenv(variable, text, 1) ? -errno : 0;
}

/* `ref`: the number among the devices of its kind. */
static int choose(struct json_object *device, unsigned ref, struct gp_error *err)
{
	const char *backend = gp_field_text(device, "backend");

	if (backend && !strcmp(backend, "nvidia"))
		return choose_nvidia(device, err);
	if (backend && !strcmp(backend, "sim"))
		return choose_number("GPREEMPT_SIM_DEVICE", ref);
	if (!backend || strcmp(backend, "amd") != 0)
		return gp_fail(err, -ENOTSUP, "no environment variable makes a program use %s",
		               name_of(device));
	/* HIP counts among the GPUs that ROCR_VISIBLE_DEVICES leaves, so 1 would select none. */
	unsetenv("HIP_VISIBLE_DEVICES");
	return choose_number("ROCR_VISIBLE_DEVICES", ref);
}

static struct json_object *find(struct json_object *devices, unsigned device, unsigned *ref)
{
	struct json_object *found = NULL;

	*ref = 0;
	for (size_t i = 0; i < json_object_array_length(devices); i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);

		if (gp_field_number_or(d, "device", i) == device)
			found = d;
	}
	for (size_t i = 0; found && i < json_object_array_length(devices); i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);
		const char *a = gp_field_text(d, "backend"), *b = gp_field_text(found, "backend");

		*ref += gp_field_number_or(d, "device", i) < device && a && b && !strcmp(a, b);
	}
	return found;
}

int gp_choose_gpu(struct gp_client *client, unsigned device, struct gp_error *err)
{
	struct json_object *devices, *found;
	unsigned ref;
	int r = gp_ask_devices(client, &devices, err);

	if (r)
		return r;
	found = find(devices, device, &ref);
	r = found ? choose(found, ref, err)
	          : gp_fail(err, -ENODEV, "there is no GPU %u; gpreempt ps lists them", device);
	json_object_put(devices);
	return r;
}
