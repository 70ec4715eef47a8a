-- SPDX-License-Identifier: MIT
-- Byte pair encoding: of all neighbours that make a piece, those of the least rank are joined, the first of them first, again and again.
-- A heap of pairs makes it n log n for texts that are not divided into words.

-- Entries are lists {rank, place, left, right, joined}.
local function before(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end

local function push(heap, entry)
	local i = #heap + 1
	while i > 1 and before(entry, heap[i // 2]) do
		heap[i] = heap[i // 2]
		i = i // 2
	end
	heap[i] = entry
end

local function pop(heap)
	local top, last, n = heap[1], heap[#heap], #heap - 1
	heap[n + 1] = nil
	local i = 1
	while n > 0 do
		local child = 2 * i
		if child < n and before(heap[child + 1], heap[child]) then child = child + 1 end
		if child > n or not before(heap[child], last) then break end
		heap[i] = heap[child]
		i = child
	end
	if n > 0 then heap[i] = last end
	return top
end

-- ids, a list, becomes that of its pieces. pair(a, b) gives rank and number of the piece that a and b make, or nil.
return function(ids, pair)
	local n, heap, following, preceding = #ids, {}, {}, {}
	local function look(i)
		local k = following[i]
		if i < 1 or k > n then return end
		local rank, joined = pair(ids[i], ids[k])
		if rank then push(heap, {rank, i, ids[i], ids[k], joined}) end
	end
	for i = 1, n do following[i], preceding[i] = i + 1, i - 1 end
	for i = 1, n - 1 do look(i) end
	while #heap > 0 do
		local e = pop(heap)
		local i, k = e[2], following[e[2]]
		if ids[i] == e[3] and k <= n and ids[k] == e[4] then
			ids[i], ids[k] = e[5], false
			following[i] = following[k]
			if following[k] <= n then preceding[following[k]] = i end
			if preceding[i] >= 1 then look(preceding[i]) end
			look(i)
		end
	end
	local out = {}
	for i = 1, n do
		if ids[i] then out[#out + 1] = ids[i] end
	end
	return out
end
