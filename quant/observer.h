/* SPDX-License-Identifier: MIT
 * An observer finds the range that a spec's codes are to cover.
 */
#ifndef QUOLL_QUANT_OBSERVER_H
#define QUOLL_QUANT_OBSERVER_H

#include "tensor/qparams.h"

struct ql_observer_kind {
	struct ql_doc doc;
	/* Narrows or keeps stats->lo and stats->hi. */
	void (*range)(struct ql_stats *stats);
};

extern const struct ql_observer_kind *const ql_observers[]; /* NULL-terminated */
const struct ql_observer_kind *ql_observer_by_name(const char *name);

#endif
