/* SPDX-License-Identifier: MIT
 * When the collector runs because of tensors. Lua counts the box of a tensor, some 50 bytes, and cannot know what hangs
 * on it, so the pace is set here: a full collection each time that the bytes held have grown by QL_COLLECT_STEP plus
 * QL_COLLECT_PER_BYTE times what was alive of Lua's own heap after the last one.
 *
 * The growth counts, not what was allocated: temporary memory that a kernel gave back is nothing to collect. A collection
 * costs about 0.3 ns per byte of Lua's heap, whatever the tensors hold, and filling a byte of a tensor about 0.2 ns: with
 * the second term its share stays below a third of the time for heaps of any size and the cheapest operations. Steps of
 * the incremental collector after each 64 KB, as before, were whole cycles over the prelude and a third of the time of a
 * network of 1 ms.
 *
 * A small step also keeps new tensors in the memory, and the cache, of old ones: ResNet20 of one image took 1.02 ms with
 * 8 MiB and 1.12 ms with 32 MiB.
 *
 * A full collection is the same in every mode of collectgarbage, and it works when the collector is stopped. Lua's own
 * pace for its own memory is left alone.
 */
#include "interp/bind.h"
#include "interp/lifetime.h"

#define QL_COLLECT_STEP ((size_t)8 << 20)
#define QL_COLLECT_PER_BYTE 4

void ql_pay_gc(lua_State *L)
{
	struct ql_memory *m = &ql_ctx_of(L)->memory;

	ql_discarded_pay(L);
	if (m->held < m->held_before) /* Lua's own pace, or the user, freed some */
		m->held_before = m->held;
	if (m->held - m->held_before < QL_COLLECT_STEP + m->held_more)
		return;
	if (lua_gc(L, LUA_GCCOLLECT) != 0) /* in a finalizer */
		return;
	ql_discarded_collected(L);
	m->held_before = m->held;
	m->held_more = QL_COLLECT_PER_BYTE * ((size_t)lua_gc(L, LUA_GCCOUNT) << 10);
}
