/* SPDX-License-Identifier: MIT
 * linear and matmul of two operands of codes, of which one or both are packed (2 to 7 bits): their codes are unpacked to bytes
 * in the workspace, which a kernel of products of bytes multiplies, so with the same exact sums and the CPU's bits.
 */
#include "gpu/kernels/inner.h"
#include "gpu/kernels/launch.h"

/* The call with codes in bytes. */
struct unpacked {
	struct ql_inner inner;
	struct ql_gpu_call call;
	struct ql_gpu_tensor in[3];
	struct ql_gpu_plan plan;
};

static bool is_packed(const struct ql_gpu_tensor *t)
{
	struct ql_element_info e = ql_element_get(ql_element_of(t->dtype));

	return t->codes && e.bits < 8 && (e.kind == QL_E_INT || e.kind == QL_E_UINT);
}

/* Whether t is a matrix without gaps. */
static bool rows_follow(const struct ql_gpu_tensor *t)
{
	int element = ql_element_of(t->dtype);

	if (ql_element_get(element).bits >= 8)
		return ql_dense(t);
	return t->rank == 2 && (t->shape[1] == 1 || t->stride[1] == 1) &&
	       (t->shape[0] == 1 || t->stride[0] == ql_packed_pitch(element, t->shape[1]));
}

static bool unpack(const struct ql_gpu_place *place, const struct ql_gpu_call *call, unpacked *u, struct ql_gpu_plan *p)
{
	*u = {};
	u->inner.place = place;
	u->inner.workspace = static_cast<char *>(call->workspace);
	u->inner.plan = p;
	u->call = *call;
	u->call.in = u->in;
	for (int i = 0; i < call->n_in && i < 3; i++)
		u->in[i] = call->in[i];
	if ((call->in[1].codes->block || call->in[1].codes->shift) && !rows_follow(&call->in[1]))
		return ql_refuse(p, "codes in blocks that are not contiguous"); /* as gemm_blocks */
	for (int i = 0; i < 2; i++) /* before memory is written: whether it will do */
		u->in[i] = ql_bytes_of(&call->in[i]);
	if (!ql_part_plan(&u->call, &u->plan))
		return ql_refuse(p, u->plan.why);
	for (int i = 0; i < 2; i++) {
		u->in[i] = ql_inner_bytes(&u->inner, &call->in[i]);
		if (QL_BUG(packed_sign))
			u->in[i].dtype = "uint8";
	}
	u->call.workspace = ql_inner_take(&u->inner, (int64_t)u->plan.workspace, 1);
	return ql_inner_good(&u->inner);
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	unpacked u;

	if (call->n_in < 2 || !call->in[0].codes || !call->in[1].codes ||
		!(is_packed(&call->in[0]) || is_packed(&call->in[1])))
		return p->why[0] ? false : ql_refuse(p, "wanted two operands of codes, one of them packed");
	if (!unpack(NULL, call, &u, p))
		return false;
	p->path = u.plan.path;
	p->exact = u.plan.exact;
	p->workspace = u.inner.used;
	return true;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	unpacked u;

	if (!unpack(place, call, &u, &p))
		return u.inner.error ? u.inner.error : cudaErrorInvalidValue;
	return ql_part_run(place, &u.call);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_packed;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_packed = {
	"linear matmul", "gemm_packed", "simt", QL_GPU_BITS, 80, plan, run};
