/* SPDX-License-Identifier: MIT
 * The table of the plug-in and its one exported function.
 */
#include "gpu/cuda/plugin.h"

extern ql_gpu_entry_fn ql_gpu_entry __attribute__((visibility("default")));

#ifdef QL_EMULATION
#define NAME "cudaemu"
#else
#define NAME "cuda"
#endif

static const struct ql_gpu_vtable table = {
	.size = sizeof(table),
	.abi = QL_GPU_ABI,
	.name = NAME,
	.version = QUOLL_VERSION,
	.probe = ql_device_probe,
	.open = ql_device_open,
	.close = ql_device_close,
	.last_error = ql_device_last_error,
	.alloc = ql_stream_alloc,
	.free = ql_stream_free,
	.memory = ql_device_memory,
	.memory_reset = ql_device_memory_reset,
	.to_device = ql_stream_to_device,
	.to_host = ql_stream_to_host,
	.copy = ql_stream_copy,
	.fill = ql_stream_fill,
	.stream_open = ql_stream_open,
	.stream_close = ql_stream_close,
	.stream_sync = ql_stream_sync,
	.stream_query = ql_stream_query,
	.event_open = ql_event_open,
	.event_close = ql_event_close,
	.event_record = ql_event_record,
	.event_elapsed = ql_event_elapsed,
	.op_find = ql_call_op_find,
	.plan = ql_call_plan,
	.run = ql_call_run,
	.fault = ql_stream_fault,
	.kernels = ql_call_kernels,
	.force = ql_call_force,
	.graph_begin = ql_graph_begin,
	.graph_end = ql_graph_end,
	.graph_run = ql_graph_run,
	.graph_close = ql_graph_close,
};

const struct ql_gpu_vtable *ql_gpu_entry(uint32_t abi)
{
	return abi == QL_GPU_ABI ? &table : NULL;
}
