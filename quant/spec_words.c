/* SPDX-License-Identifier: MIT
 * The words of a spec, and the fields that make an equal spec.
 */
#include "quant/spec_words.h"

#include <string.h>

#include "quant/observer_kind.h"

int ql_spec_words(struct ql_spec_fields *f, struct ql_spec_word words[QL_SPEC_WORDS])
{
	const struct {
		const char *key, **list;
		struct ql_tensor **tensor;
	} lists[] = {{"bits", &f->bits_list, &f->each_bits}, {"scale", &f->scale_list, &f->scale_tensor},
		{"zero_point", &f->zero_list, &f->zero_tensor}, {"minimum", &f->minimum_list, &f->minimum_tensor}};
	int n = 0;

#define HAS_STRING(key) NULL
#define HAS_FLOAT(key) &f->has_##key
#define HAS_INT(key) &f->has_##key
#define HAS_BOOL(key) &f->has_##key
#define PUT_FIRST(key, kind)
#define PUT_TABLE(key, kind)
#define PUT_BARE(key, kind) \
	words[n++] = (struct ql_spec_word){#key, QL_WORD_##kind, HAS_##kind(key), &f->key, NULL, NULL, true};
#define PUT_WORD(key, kind) \
	words[n++] = (struct ql_spec_word){#key, QL_WORD_##kind, HAS_##kind(key), &f->key, NULL, NULL, false};
#define X(key, kind, place, choices, text) PUT_##place(key, kind)
#include "quant/spec.def"
#undef X
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++)
			if (!strcmp(words[i].key, lists[k].key)) {
				words[i].list = lists[k].list;
				words[i].tensor = lists[k].tensor;
			}
	return n;
}

/* ---- fields of a spec ---- */

#define SET(key, when, number) (f->has_##key = (when), f->key = f->has_##key ? (number) : 0)

static void set_scheme(const struct ql_spec *s, struct ql_spec_fields *f)
{
	bool is_unsigned = ql_dtypes[s->dtype].kind == QL_KIND_UINT;
	const char *usual = ql_dtype_is_binary(s->dtype) ? "binary" : is_unsigned ? "asymmetric" : "symmetric";

	f->with_minimum = s->scheme->shift;
	f->each_bits = s->each_bits;
	SET(bits, !s->each_bits && s->bits != ql_dtypes[s->dtype].bits, s->bits);
	f->scheme = strcmp(s->scheme->doc.name, usual) && !s->scheme->shift ? s->scheme->doc.name : NULL;
	SET(quant_min, s->has_min, s->quant_min);
	SET(quant_max, s->has_max, s->quant_max);
	SET(octaves, s->scheme->table_length && s->octaves != ql_spec_octaves(s->bits), s->octaves);
}

static void set_range(const struct ql_spec *s, struct ql_spec_fields *f)
{
	f->observer = s->observer && strcmp(s->observer->doc.name, "minmax") ? s->observer->doc.name : NULL;
	f->choose = s->choose;
	f->choose_key = s->choose_key;
	SET(p, s->p != QL_SPEC_P, s->p);
	SET(momentum, s->momentum != QL_SPEC_MOMENTUM, s->momentum);
	SET(bins, s->bins != QL_SPEC_BINS, s->bins);
	f->scaling =
		s->scaling != (s->format ? s->format->scaling : QL_SCALING_EXACT) ? ql_scaling_name(s->scaling) : NULL;
	f->has_saturate = s->overflow; /* saturate=false */
}

static void set_numbers(const struct ql_spec *s, struct ql_spec_fields *f)
{
	f->scale_tensor = s->scale_tensor;
	SET(scale, s->has_scale && !s->scale_tensor, (double)(float)s->scale);
	f->zero_tensor = s->zero_tensor;
	SET(zero_point, s->has_zero && !s->zero_tensor, s->zero);
	f->minimum_tensor = s->minimum_tensor;
	SET(minimum, s->has_minimum && !s->minimum_tensor, (double)(float)s->minimum);
	f->importance = s->importance;
	f->rounding = s->stochastic ? "stochastic" : s->requant ? ql_requant_name(s->requant) : NULL;
}

void ql_spec_fields_of(const struct ql_spec *s, struct ql_spec_fields *f)
{
	*f = (struct ql_spec_fields){.dtype = s->format ? s->format->doc.name : ql_dtype_name(s->dtype)};
	SET(axis, s->axis != 0, s->axis);
	SET(block, s->block && (s->outer || !(s->format && s->block == s->format->block)), s->block);
	SET(outer, s->outer != 0, s->outer);
	if (!s->scheme)
		return;
	if (!s->format)
		set_scheme(s, f);
	set_range(s, f);
	set_numbers(s, f);
}
