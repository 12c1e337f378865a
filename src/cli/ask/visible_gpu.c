/* SPDX-License-Identifier: Apache-2.0 */
/* The back end of the device knows the variables of its vendor's runtime. */
#include "cli/ask/visible_gpu.h"

#include <errno.h>
#include <string.h>

#include "gpu/backends.h"

static const char *name_of(struct json_object *device)
{
	const char *name = gp_field_text(device, "name");

	return name ? name : "this GPU";
}

/* `index`: the device's number among those of its back end. */
static int choose(struct json_object *device, unsigned index, struct gp_error *err)
{
	const char *backend = gp_field_text(device, "backend");
	const struct gp_gpu_ops *ops = backend ? gp_backend_find(backend) : NULL;
	int r = ops ? gp_backend_make_visible(ops, index, name_of(device),
					      gp_field_text(device, "bus"), err)
		    : -ENOTSUP;

	return r == -ENOTSUP ? gp_fail(err, r, "no environment variable makes a program use %s",
				       name_of(device))
			     : r;
}

static struct json_object *find(struct json_object *devices, unsigned device, unsigned *index)
{
	struct json_object *found = NULL;

	*index = 0;
	for (size_t i = 0; i < json_object_array_length(devices); i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);

		if (gp_field_number_or(d, "device", i) == device)
			found = d;
	}
	for (size_t i = 0; found && i < json_object_array_length(devices); i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);
		const char *a = gp_field_text(d, "backend"), *b = gp_field_text(found, "backend");

		*index += gp_field_number_or(d, "device", i) < device && a && b && !strcmp(a, b);
	}
	return found;
}

int gp_choose_gpu(struct gp_client *client, unsigned device, struct gp_error *err)
{
	struct json_object *devices, *found;
	unsigned index;
	int r = gp_ask_devices(client, &devices, err);

	if (r)
		return r;
	found = find(devices, device, &index);
	r = found ? choose(found, index, err)
		  : gp_fail(err, -ENODEV, "there is no GPU %u; gpreempt ps lists them", device);
	json_object_put(devices);
	return r;
}
