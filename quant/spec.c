/* SPDX-License-Identifier: MIT
 * Specs: validation and defaults.
 */
#include "quant/spec.h"

#include <stdio.h>
#include <string.h>

#include "quant/observer_kind.h"
#include "quant/spec_format.h"
#include "tensor/grid.h"
#include "tensor/nearest.h"

#define X(name) extern const struct ql_scheme ql_scheme_##name;
#include "quant/schemes.def"
#undef X

const struct ql_scheme *const ql_schemes[] = {
#define X(name) &ql_scheme_##name,
#include "quant/schemes.def"
#undef X
	NULL,
};

const struct ql_scheme *ql_scheme_by_name(const char *name)
{
	for (int i = 0; ql_schemes[i]; i++)
		if (!strcmp(ql_schemes[i]->doc.name, name))
			return ql_schemes[i];
	return NULL;
}

#define X(name) #name " "
const char ql_scheme_names[] =
#include "quant/schemes.def"
	;
const char ql_observer_names[] =
#include "quant/observers.def"
	;
#undef X
const char ql_requant_names[] = "float single double exact stochastic";
const char ql_priority_names[] = "accuracy speed";

/* ---- dtypes ---- */

/* Codes of at most 16 bits, and floats of at most 32 bits that have a mantissa. */
static bool legal_dtype(int dtype)
{
	const struct ql_dtype_info *d = &ql_dtypes[dtype < 0 ? 0 : dtype];

	if (dtype < 0 || d->kind == QL_KIND_BOOL)
		return false;
	return d->kind == QL_KIND_FLOAT ? d->bits <= 32 && d->digits > 1 : d->bits <= 16;
}

char ql_spec_dtypes[QL_SPEC_DTYPES];

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
		if (!strncmp(at, word, n) && (at[n] == ' ' || !at[n]))
			return true;
	return false;
}

bool ql_spec_add_name(const char *name)
{
	size_t n = strlen(ql_spec_dtypes);

	if (has_word(ql_spec_dtypes, name))
		return true;
	if (n + strlen(name) + 2 > sizeof(ql_spec_dtypes))
		return false;
	snprintf(ql_spec_dtypes + n, sizeof(ql_spec_dtypes) - n, n ? " %s" : "%s", name);
	return true;
}

/* Lists the dtypes, then the formats, before main, because constant tables of options refer to the text. */
__attribute__((constructor)) static void list_dtypes(void)
{
	for (int floats = 0; floats < 2; floats++)
		for (int i = 0; i < QL_DTYPE_COUNT; i++)
			if (legal_dtype(i) && ql_dtype_is_float((unsigned)i) == floats)
				ql_spec_add_name(ql_dtypes[i].name);
	for (int i = 0; ql_quant_formats[i]; i++)
		ql_spec_add_name(ql_quant_formats[i]->doc.name);
}

/* ---- validation ---- */

/* The bits of the widest channel; checks the fields that each_bits requires. */
static enum ql_status widest_bits(struct ql_ctx *ctx, const struct ql_spec_fields *f, int *bits)
{
	int64_t n = ql_tensor_nelem(f->each_bits);

	if (!f->has_axis || f->has_block)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: bits: wanted a list together with an axis and without a block, got %s",
			f->has_block ? "a block" : "no axis");
	if (n == 0)
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "spec: bits: wanted a number for every channel, got an empty list");
	*bits = 0;
	for (int64_t i = 0; i < n; i++) {
		int one = (int)ql_tensor_at_f64(f->each_bits, i);

		if (one < 2 || one > 16)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"spec: bits: wanted 2 to 16 for every channel, got %d for channel %lld", one,
				(long long)i + 1);
		*bits = one > *bits ? one : *bits;
	}
	return QL_OK;
}

/* Fails for an unknown word. If a scheme was given as dtype or observer, the message says where its name belongs. */
static enum ql_status misplaced(
	struct ql_ctx *ctx, const char *field, const char *choices, const char *got, const char *dtype)
{
	char what[32];

	snprintf(what, sizeof(what), "spec: %s", field);
	if (!ql_scheme_by_name(got))
		return ql_fail_choice(ctx, what, choices, got);
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"%s: wanted one of %s, got '%s'; the scheme '%s' follows the dtype: '%s %s'", what, choices, got, got,
		dtype, got);
}

static enum ql_status unknown_dtype(struct ql_ctx *ctx, const char *got)
{
	char near[96];

	if (ql_scheme_by_name(got))
		return misplaced(ctx, "dtype", "int8 uint8 int4 uint4 int16 uint16 binary float16", got, "int8");
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"spec: dtype: wanted a dtype like int8, uint4, binary or float16, or a format like nf4 or mxfp4 "
		"(quant.formats() lists them), got '%.60s'%s",
		got, ql_nearest(got, ql_spec_dtypes, near));
}

static enum ql_status make_dtype(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	int dtype, bits = f->bits < 1 || f->bits > 16 ? -1 : (int)f->bits;

	if (!f->has_bits && !f->bits)
		bits = 0;
	if (f->each_bits && widest_bits(ctx, f, &bits))
		return QL_ERR_ARGUMENT;
	s->each_bits = f->each_bits;
	if (!f->dtype && !bits)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: wanted a dtype or bits, got neither");
	if (bits && (bits < 1 || bits > 16))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bits: wanted 2 to 16, got a number outside");
	if (!f->dtype) {
		if (bits < 2)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"spec: bits: wanted 2 to 16, got %d; for one bit use dtype 'binary'", bits);
		s->dtype = bits <= 4 ? QL_int4 : bits <= 8 ? QL_int8 : QL_int16;
		s->bits = bits;
		return QL_OK;
	}
	s->format = ql_quant_format_by_name(ctx, f->dtype);
	if (s->format)
		return ql_spec_make_format(ctx, f, s);
	dtype = ql_dtype_by_name(f->dtype);
	if (!legal_dtype(dtype))
		return unknown_dtype(ctx, f->dtype);
	s->dtype = (unsigned)dtype;
	s->bits = bits ? bits : ql_dtypes[dtype].bits;
	if (s->bits > ql_dtypes[dtype].bits || (bits == 1 && !ql_dtype_is_binary(s->dtype)))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bits: wanted 2 to %d for %s, got %d", ql_dtypes[dtype].bits,
			f->dtype, s->bits);
	return QL_OK;
}

static enum ql_status make_scheme(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	enum ql_dtype_kind kind = ql_dtypes[s->dtype].kind;
	const char *name = f->scheme;

	if (s->format)
		return QL_OK;
	if (kind == QL_KIND_FLOAT) {
		if (f->scheme || f->with_minimum || f->has_axis || f->has_block || f->observer || f->has_scale ||
			s->bits != ql_dtypes[s->dtype].bits)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"spec: wanted nothing beside the dtype %s, which is stored as it is",
				ql_dtype_name(s->dtype));
		return QL_OK;
	}
	if (f->with_minimum && name)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: scheme: wanted none beside +min, got '%s'", name);
	if (!name)
		name = f->with_minimum                             ? "minimum"
		       : kind == QL_KIND_BINARY                    ? "binary"
		       : kind == QL_KIND_UINT || f->has_zero_point ? "asymmetric"
								   : "symmetric";
	s->scheme = ql_scheme_by_name(name);
	if (!s->scheme)
		return ql_fail_choice(ctx, "spec: scheme", ql_scheme_names, name);
	if (s->scheme->shift && kind == QL_KIND_INT)
		s->dtype = ql_spec_unsigned(s->dtype);
	if (s->scheme->grid || s->scheme->host)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: scheme: wanted the name of a format, which has a table or functions, instead of %s %s",
			ql_dtype_name(s->dtype), name);
	if (!s->scheme->accepts(s->dtype))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: scheme: wanted one that takes %s, got '%s'",
			ql_dtype_name(s->dtype), name);
	if (f->each_bits && !s->scheme->affine)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: bits: wanted one number with the scheme %s, whose powers are those of one "
			"number of bits, got a list; lists are for symmetric and asymmetric",
			name);
	if (f->has_zero_point && !s->scheme->zero)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: zero_point: wanted none with the scheme %s", name);
	return QL_OK;
}

static enum ql_status make_granularity(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	if (f->has_axis && (f->axis == 0 || f->axis > QL_MAX_RANK || f->axis < -QL_MAX_RANK))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: axis: wanted 1 to %d or negative from the end, got %lld",
			QL_MAX_RANK, (long long)f->axis);
	if (f->has_block && (f->block < 1 || f->block > INT32_MAX))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "spec: block: wanted 1 or more elements, got %lld", (long long)f->block);
	if (f->has_outer && (f->outer < 1 || f->outer > INT32_MAX))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "spec: outer: wanted 1 or more scales, got %lld", (long long)f->outer);
	if (f->has_outer && ql_spec_check_outer(ctx, f, s))
		return QL_ERR_ARGUMENT;
	s->outer = f->has_outer ? f->outer : 0;
	s->axis = f->has_axis ? (int)f->axis : 0;
	s->block = f->has_block ? f->block : s->format ? s->format->block : 0;
	return QL_OK;
}

static const char *const requants[] = {"float", "single", "double", "exact"};

const char *ql_requant_name(enum ql_requant rule)
{
	return requants[rule];
}

static enum ql_status make_requant(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	s->stochastic = f->rounding && !strcmp(f->rounding, "stochastic");
	if (s->stochastic && (!s->scheme || !(s->scheme->affine || s->scheme->grid) || ql_dtype_is_binary(s->dtype)))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: rounding: wanted affine codes or a format with a table beside stochastic, got %s",
			s->scheme && s->scheme->host ? s->format->doc.name
			: s->scheme                  ? s->scheme->doc.name
						     : ql_dtype_name(s->dtype));
	for (int i = 0; i < 4 && f->rounding && !s->stochastic; i++)
		if (!strcmp(f->rounding, requants[i])) {
			s->requant = (enum ql_requant)i;
			break;
		} else if (i == 3)
			return ql_fail_choice(ctx, "spec: rounding", ql_requant_names, f->rounding);
	if (s->requant && !(s->scheme && s->scheme->affine && !ql_dtype_is_binary(s->dtype)))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: rounding: wanted affine codes of 2 to 16 bits beside it, got %s",
			s->scheme ? s->scheme->doc.name : ql_dtype_name(s->dtype));
	return QL_OK;
}

/* Reads the parameters of observers; each requires the observer that uses it. */
static enum ql_status make_parameters(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	const char *name = s->observer->doc.name;

	if (f->has_p && strcmp(name, "percentile"))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: p: wanted together with the observer percentile, got it with %s", name);
	if (f->has_p && !(f->p > 50 && f->p <= 100))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "spec: p: wanted a percentage above 50, at most 100, got %g", f->p);
	if (f->has_momentum && strcmp(name, "average"))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: momentum: wanted together with the observer average, got it with %s", name);
	if (f->has_momentum && !(f->momentum > 0 && f->momentum <= 1))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: momentum: wanted a number above 0, at most 1, got %g",
			f->momentum);
	if (f->has_bins && (f->bins < 1024 || f->bins > 16384 || (f->bins & (f->bins - 1))))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bins: wanted 1024, 2048, 4096, 8192 or 16384, got %lld",
			(long long)f->bins);
	s->p = f->has_p ? f->p : QL_SPEC_P;
	s->momentum = f->has_momentum ? f->momentum : QL_SPEC_MOMENTUM;
	s->bins = f->has_bins ? (int)f->bins : QL_SPEC_BINS;
	return QL_OK;
}

/* True if no observer can choose a range: the scale comes from means or minimums, or a codebook from the tensor. */
static bool has_own_fit(const struct ql_spec *s)
{
	return !ql_dtype_is_binary(s->dtype) && (s->scheme->mean || s->scheme->shift || (s->grid && s->grid->learned));
}

static enum ql_status make_observer(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	if (ql_dtype_is_float(s->dtype)) {
		if (f->has_p || f->has_momentum || f->has_bins || f->choose)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"spec: wanted no observer beside the dtype %s, which is stored as it is",
				ql_dtype_name(s->dtype));
		return QL_OK;
	}
	if ((f->choose || (f->observer && strcmp(f->observer, "minmax"))) && has_own_fit(s))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: observer: wanted minmax with the %s %s, got %s",
			s->grid ? "format" : "scheme", s->grid ? s->format->doc.name : s->scheme->doc.name,
			f->choose ? "a function" : f->observer);
	s->choose = f->choose;
	s->choose_key = f->choose_key;
	s->observer = f->choose ? &ql_observer_function : ql_observer_by_name(f->observer ? f->observer : "minmax");
	if (s->observer == &ql_observer_function && !f->choose)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: observer: wanted the function itself, observer=function(histogram, spec) … end, got its name");
	if (s->observer && s->observer->errors && s->scheme->host)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: observer: wanted one that does not try codes beside the format %s of functions, got %s",
			s->format->doc.name, s->observer->doc.name);
	if (s->observer && !s->observer->plain && s->importance && s->scheme->host)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: observer: wanted minmax beside importance with the format %s, got %s",
			s->format->doc.name, s->observer->doc.name);
	if (!s->observer)
		return misplaced(ctx, "observer", ql_observer_names, f->observer, ql_dtype_name(s->dtype));
	return make_parameters(ctx, f, s);
}

#define FINE_BLOCK 32 /* elements per scale for 4 bits and less */

/* Sets the defaults that priority= implies. speed: one scale and the observer minmax. accuracy: one scale per row, or
 * per block for at most 4 bits, and the observer mse. */
static enum ql_status choose_priority(struct ql_ctx *ctx, const struct ql_spec *s, struct ql_spec_fields *f)
{
	bool accurate = f->priority && !strcmp(f->priority, "accuracy");

	if (!f->priority)
		return QL_OK;
	if (!accurate && strcmp(f->priority, "speed"))
		return ql_fail_choice(ctx, "spec: priority", ql_priority_names, f->priority);
	if (ql_dtype_is_float(s->dtype))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: priority: wanted none beside the dtype %s, which is stored as it is",
			ql_dtype_name(s->dtype));
	if (!accurate || f->has_scale || (s->format && s->format->blocks))
		return QL_OK;
	if (!f->has_axis && !f->has_block) {
		f->has_block = s->bits <= 4 && !ql_dtype_is_binary(s->dtype) && !s->format;
		f->has_axis = !f->has_block && !(s->format && s->format->block);
		f->axis = f->has_axis ? 1 : 0;
		f->block = f->has_block ? FINE_BLOCK : 0;
	}
	if (!f->observer && !f->choose && !ql_dtype_is_binary(s->dtype) && !f->with_minimum &&
		!(s->scheme && s->scheme->mean) && !(s->grid && s->grid->learned) &&
		!(s->format && s->format->functions))
		f->observer = "mse";
	return QL_OK;
}

enum ql_status ql_spec_make(struct ql_ctx *ctx, const struct ql_spec_fields *given, struct ql_spec *spec)
{
	struct ql_spec_fields copy = *given, *fields = &copy;
	enum ql_status status;

	*spec = (struct ql_spec){0};
	if (fields->bits_list || fields->scale_list || fields->zero_list || fields->minimum_list)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: wanted one number each, got a list");
	status = make_dtype(ctx, fields, spec);
	if (!status)
		status = choose_priority(ctx, spec, fields);
	if (!status)
		status = make_scheme(ctx, fields, spec);
	if (!status)
		status = ql_spec_make_bounds(ctx, fields, spec);
	if (!status)
		status = make_granularity(ctx, fields, spec);
	if (!status)
		status = ql_spec_make_numbers(ctx, fields, spec);
	if (!status)
		status = ql_spec_make_scaling(ctx, fields, spec);
	if (!status)
		status = make_observer(ctx, fields, spec);
	if (!status)
		status = make_requant(ctx, fields, spec);
	return status;
}

struct ql_codes ql_spec_codes(const struct ql_spec *spec, bool wide, int64_t i)
{
	struct ql_codes codes = {.bits = (uint8_t)spec->bits,
		.octaves = (float)spec->octaves,
		.grid = spec->grid,
		.host = spec->format ? spec->format->functions : NULL,
		.scaling = (uint8_t)spec->scaling,
		.overflow = spec->overflow};

	if (spec->each_bits)
		codes.bits = (uint8_t)ql_tensor_at_f64(spec->each_bits, i);
	spec->scheme->range(spec->dtype, wide, &codes);
	if (spec->has_min)
		codes.lo = spec->quant_min;
	if (spec->has_max)
		codes.hi = spec->quant_max;
	return codes;
}
