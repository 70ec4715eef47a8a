/* SPDX-License-Identifier: MIT
 * What the kernels of products of 8-bit codes share: the plan and the run. Include it behind start(), which launches the kernel.
 */
static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct ql_code_product x;

	return ql_product_of(call, &x, p);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	struct ql_code_product x;
	cudaError_t error;

	if (!ql_product_of(call, &x, &p))
		return cudaErrorInvalidValue;
	error = ql_product_begin(x, place->stream);
	if (error || x.m * x.n * x.batches == 0)
		return error;
	return start(place, x);
}
