/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs that can be emulated, and how large the driver makes their save areas. */
#include "kfd.h"

#define PAGE 4096u

static const struct model models[] = {
	{
		.option = "mi250",
		.name = "aldebaran",
		.gfx_target_version = 90010,
		.device_id = 0x740c,
		.cus = 104,
		.simds_per_cu = 4,
		.waves_per_simd = 8,
		.arrays = 8,
		.arrays_per_engine = 1,
		.xccs = 1,
		.cp_queues = 24,
		.max_queues = 127,
		.fw_version = 78,
		.per_vmid_debug = true,
		.cu_occupancy = true,
		.precise_memory = true,
	},
	{
		.option = "mi300x",
		.name = "ip discovery",
		.gfx_target_version = 90402,
		.device_id = 0x74a1,
		.cus = 304,
		.simds_per_cu = 4,
		.waves_per_simd = 8,
		.arrays = 32,
		.arrays_per_engine = 1,
		.xccs = 8,
		.cp_queues = 24,
		.max_queues = 255,
		.fw_version = 162,
		.per_vmid_debug = true,
		.cu_occupancy = true,
		.precise_memory = true,
	},
	{
		.option = "vega20",
		.name = "vega20",
		.gfx_target_version = 90006,
		.device_id = 0x66a1,
		.cus = 60,
		.simds_per_cu = 4,
		.waves_per_simd = 10,
		.arrays = 4,
		.arrays_per_engine = 1,
		.xccs = 1,
		.cp_queues = 24,
		.max_queues = 127,
		.fw_version = 467,
		.cu_occupancy = true,
	},
	{
		.option = "navi31",
		.name = "ip discovery",
		.gfx_target_version = 110000,
		.device_id = 0x744c,
		.cus = 96,
		.simds_per_cu = 2,
		.waves_per_simd = 16,
		.arrays = 12,
		.arrays_per_engine = 2,
		.xccs = 1,
		.cp_queues = 8,
		.max_queues = 127,
		.fw_version = 550,
		.mes = true,
		.per_vmid_debug = true,
		.mask_workaround = true,
	},
};

const struct model *model_find(const char *option)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (!strcmp(option, models[i].option))
			return &models[i];
	return NULL;
}

static uint32_t align(uint32_t value, uint32_t to)
{
	return (value + to - 1) / to * to;
}

/* Bytes of vector registers in a CU. */
static uint32_t vgpr_bytes(uint32_t gfx)
{
	if (gfx / 100 == 904 || gfx == 90010)
		return 0x80000;
	return gfx == 110000 ? 0x60000 : 0x40000;
}

/* As the driver computes what CREATE_QUEUE must be given. */
struct save_sizes model_sizes(const struct model *m)
{
	bool gfx9 = m->gfx_target_version < 100100;
	uint32_t cus = m->cus / m->xccs, engines = m->arrays / m->arrays_per_engine;
	uint32_t waves = cus * (gfx9 ? 40 : 32);
	uint32_t cu_bytes = vgpr_bytes(m->gfx_target_version) + 0x4000 + 0x10000 + 0x1000;
	struct save_sizes sizes;

	if (gfx9 && waves > engines * 512)
		waves = engines * 512;
	sizes.control_stack = align(40 + waves * (gfx9 ? 8 : 12) + 8, PAGE);
	sizes.cwsr = sizes.control_stack + align(cus * cu_bytes, PAGE);
	sizes.debug = align(waves * 32, 64);
	return sizes;
}

uint32_t model_capability(const struct model *m)
{
	uint32_t capability = 0x2000 | 0x80 | KFD_CAP_TRAP_DEBUG_SUPPORT; /* doorbells, watches */

	if (kfd.debug_firmware)
		capability |= KFD_CAP_TRAP_DEBUG_FIRMWARE;
	if (m->precise_memory)
		capability |= 0x40000;
	return capability | 0x10000 | 0x20000; /* launch override and mode */
}
