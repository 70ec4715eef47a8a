/* SPDX-License-Identifier: MIT
 * Functions: user-defined functions encode and decode (quant.scheme{encode=, decode=}). The scale maps the largest
 * |x| to the format's unit (default 1), or a third function finds it. Only the range of the codes is known, so no
 * path computes with them.
 */
#include <math.h>

#include "tensor/codec_functions.h"

static bool accepts(unsigned dtype)
{
	enum ql_dtype_kind kind = ql_dtypes[dtype].kind;

	return (kind == QL_KIND_UINT || kind == QL_KIND_INT) && ql_dtypes[dtype].bits <= 8;
}

static void range(unsigned dtype, bool wide, struct ql_codes *codes)
{
	bool is_signed = ql_dtypes[dtype].kind == QL_KIND_INT;

	(void)wide;
	codes->lo = is_signed ? -(1 << (codes->bits - 1)) : 0;
	codes->hi = is_signed ? (1 << (codes->bits - 1)) - 1 : (1 << codes->bits) - 1;
}

static double fit(const struct ql_stats *stats, const struct ql_codes *codes)
{
	return fmax(fabs(stats->lo), fabs(stats->hi)) / (codes->host ? (double)codes->host->unit : 1);
}

extern const struct ql_scheme ql_scheme_functions;
const struct ql_scheme ql_scheme_functions = {
	.doc = {.name = "functions",
		.usage =
			"quant.scheme{name='mine', bits=4, encode=function(x, scale) … end, decode=function(codes, scale) … end}",
		.text = "Values are encoded and decoded by Lua functions, defined with quant.scheme: for experiments with formats, and slow, "
			"because each conversion calls them. Ops decode first and run in float32.",
		.example =
			"quant.scheme{name='half', bits=4, signed=true, encode=function(x, s) return (x / s * 7):round() end,\n"
			"  decode=function(c, s) return c * s / 7 end}\n"
			"q = tensor{-7, 3, 1}:quantize 'half'\n"
			"print(q:codes(), q:spec().scheme)  --> int4(3)  -7   3   1\tfunctions"},
	.any_scale = true,
	.host = true,
	.accepts = accepts,
	.range = range,
	.fit = fit,
};
