/* SPDX-License-Identifier: MIT
 * Methods of a tensor that are no ops.
 */
#ifndef QUOLL_INTERP_FACTS_H
#define QUOLL_INTERP_FACTS_H

#include "interp/bind.h"

extern const luaL_Reg ql_fact_methods[]; /* ends with NULL */
/* Makes their documentation known. */
void ql_fact_docs(void);

#endif
