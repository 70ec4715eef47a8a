/* SPDX-License-Identifier: MIT
 * When the collector runs because of tensors. Lua counts the box of a tensor, some 40 bytes, and cannot know what hangs
 * on it, so the pace is set here: a full collection each time that the bytes held have grown by QL_COLLECT_STEP plus a
 * multiple of what was alive of Lua's own heap, and an eighth of what tensors held, after the last one.
 *
 * The growth counts, not what was allocated: temporary memory that a kernel gave back is nothing to collect. A collection
 * costs about 0.3 ns per byte of Lua's heap, whatever the tensors hold, and filling a byte of a tensor about 0.2 ns: with
 * four bytes of tensors for each byte of the heap its share stays below a third of the time for heaps of any size and the
 * cheapest operations, and for the first QL_COLLECT_SMALL bytes, most of a script that runs networks, it is twelve:
 * ResNet20 of one image would otherwise spend 6 % of its time here.
 *
 * A small step keeps new tensors in the cache lines of old ones: a script without networks has a heap of 0.1 MB, and x + 1
 * of four elements took it 500 ns with 1 MiB and 575 ns with 8 MiB.
 *
 * A full collection is the same in every mode of collectgarbage, and it works when the collector is stopped. Lua's own
 * pace for its own memory is left alone.
 */
#include "interp/host/box.h"
#include "interp/host/lifetime.h"
#include "interp/host/state.h"

#define QL_COLLECT_STEP ((size_t)1 << 20)
#define QL_COLLECT_PER_BYTE 4
#define QL_COLLECT_SMALL ((size_t)1 << 20)
#define QL_COLLECT_PER_SMALL_BYTE 8
#define QL_BOX_BYTES 40

/* Without the boxes whose tensors the last collection released: they go with the next one. */
static size_t alive(lua_State *L)
{
	size_t heap = (size_t)lua_gc(L, LUA_GCCOUNT) << 10, dead = QL_BOX_BYTES * ql_state_of(L)->lifetime.finalized;

	return heap > dead ? heap - dead : 0;
}

void ql_pay_gc(lua_State *L)
{
	struct ql_memory *m = &ql_ctx_of(L)->memory;
	size_t heap;

	if (ql_ctx_of(L)->recording) /* what is freed now would stay as long as the recording */
		return;
	ql_discarded_pay(L);
	if (m->held < m->held_before) /* Lua's own pace, or the user, freed some */
		m->held_before = m->held;
	if (m->held - m->held_before < QL_COLLECT_STEP + m->held_before / 8 + m->held_more)
		return;
	if (!ql_collect_garbage(L))
		return;
	heap = alive(L);
	m->held_before = m->held;
	m->held_more = QL_COLLECT_PER_BYTE * heap +
		       QL_COLLECT_PER_SMALL_BYTE * (heap < QL_COLLECT_SMALL ? heap : QL_COLLECT_SMALL);
}
