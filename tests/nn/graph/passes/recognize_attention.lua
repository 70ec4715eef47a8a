-- SPDX-License-Identifier: MIT
-- labels: quick
-- Pass recognize_attention: what exporters write becomes attention, with the values of the ops; what only looks like it stays.
tensor.seed(8)
local B, H, T, D = 2, 4, 5, 8
local x = tensor.randn(B, T, H * D)
local wq, wk, wv = tensor.randn(H * D, H * D) * 0.2, tensor.randn(H * D, H * D) * 0.2, tensor.randn(H * D, H * D) * 0.2
local ahead = tensor.arange(1, T):view(1, T) - tensor.arange(1, T):view(T, 1)
local function future(low) return tensor.where(ahead:gt(0), tensor.zeros {T, T} + low, tensor.zeros {T, T}):view(1, 1, T, T) end

local function counted(g)
	local list = {}
	for _, name in ipairs(g.order) do
		local node = g:node(name)
		list[node.op] = list[node.op] or {}
		table.insert(list[node.op], node)
	end
	return list
end

-- The graph after the pass has the values of the one before; gives its nodes by op.
local function found(f, given, batch)
	local m = nn.module(f, {})
	local g = graph.trace(m, given or x, {batch = batch})
	local made, rows = g:pass 'layers'
	local y, want = made:run(given or x), g:run(given or x)
	assert((y - want):abs():max():item() < 1e-5 * want:abs():max():item() + 1e-6)
	assert(#select(2, made:pass 'layers') == 0)
	local list = counted(made)
	list.rows = rows
	return list
end

local function heads(v, w, n) return v:matmul(w):reshape(v:size(1), T, n or H, D):permute(1, 3, 2, 4) end
local function join(y) return y:permute(1, 3, 2, 4):reshape(y:size(1), T, H * D) end

-- options: k(k) turned; scores(s); after(p)
local function spelled(o)
	return function(_, v)
		local q, k, u = heads(v, wq), heads(v, wk), heads(v, wv)
		local s = (o.q and o.q(q) or q):matmul(o.k and o.k(k) or k:permute(1, 2, 4, 3))
		local p = (o.scores and o.scores(s) or s):softmax(4)
		return join((o.after and o.after(p) or p):matmul(u))
	end
end

local function one(f, ...)
	local list = found(f, ...)
	assert(list.attention and #list.attention == 1 and not list.softmax, 'no attention')
	return list.attention[1], list
end

it('finds the scale where it stands', function()
	local usual, root = 1 / math.sqrt(D), D ^ -0.25
	for _, o in ipairs {{scores = function(s) return s * usual end}, {scores = function(s) return s / math.sqrt(D) end}, {q = function(q) return q * usual end},
		{q = function(q) return q * root end, k = function(k) return k:permute(1, 2, 4, 3) * root end},
		{q = function(q) return q / math.sqrt(D) end, k = function(k) return k:transpose(3, 4) end},
		{q = function(q) return q * root end, k = function(k) return (k * root):permute(1, 2, 4, 3) end}} do
		local node = one(spelled(o))
		assert(math.abs(node.attrs.scale - usual) < 1e-12 and #node.inputs == 3 and not node.attrs.causal)
	end
	assert(one(spelled {}).attrs.scale == 1)
	assert(math.abs(one(spelled {scores = function(s) return s * 0.3 end}).attrs.scale - 0.3) < 1e-6)
end)

it('finds k in the ways of both exporters', function()
	local function matrices(k) -- of all heads
		return k:reshape(-1, T, D):permute(1, 3, 2):reshape(k:size(1), H, D, T)
	end
	one(spelled {k = matrices})
	one(function(_, v) -- turned at once
		local k = v:matmul(wk):reshape(v:size(1), T, H, D):permute(1, 3, 4, 2)
		return join(heads(v, wq):matmul(k):softmax(4):matmul(heads(v, wv)))
	end)
end)

it('finds heads that are repeated', function()
	local wk2, wv2 = wk:narrow(2, 1, 2 * D):contiguous(), wv:narrow(2, 1, 2 * D):contiguous()
	local function repeated(u) return u:unsqueeze(3):expand(u:size(1), 2, 2, T, D):reshape(u:size(1), H, T, D) end
	local node, list = one(function(_, v)
		local k, u = repeated(heads(v, wk2, 2)), repeated(heads(v, wv2, 2))
		return join((heads(v, wq):matmul(k:permute(1, 2, 4, 3)) * 0.3):softmax(4):matmul(u))
	end)
	assert(not list.expand and #node.inputs == 3)
	local other = found(function(_, v) -- of k only
		local k = repeated(heads(v, wk2, 2))
		return join((heads(v, wq):matmul(k:permute(1, 2, 4, 3)) * 0.3):softmax(4):matmul(heads(v, wv)))
	end)
	assert(not other.attention and other.softmax)
end)

it('finds masks', function()
	for _, low in ipairs {-math.huge, -3.4028234663852886e38} do
		local mask = future(low)
		local node, list = one(spelled {scores = function(s) return s * 0.3 + mask end})
		assert(node.attrs.causal == true and #node.inputs == 3)
		assert(tostring(list.rows):find 'causal')
	end
	local some, nothing, past, far = future(-1), tensor.zeros {1, 1, T, T}, ahead:le(0), ahead:gt(1)
	local node = one(spelled {scores = function(s) return s + some end})
	assert(#node.inputs == 4 and not node.attrs.causal)
	assert(#one(spelled {scores = function(s) return s + nothing end}).inputs == 3)
	local replaced = one(spelled {scores = function(s) return tensor.where(past, s, -math.huge) end})
	assert(replaced.attrs.causal and #replaced.inputs == 3)
	replaced = one(spelled {scores = function(s) return tensor.where(far, -3e38, s) end})
	assert(#replaced.inputs == 4)
	-- that depends on an input
	local bias = tensor.randn(B, 1, 1, T)
	node = one(function(_, v, m) return join((heads(v, wq):matmul(heads(v, wk):permute(1, 2, 4, 3)) * 0.3 + m):softmax(4):matmul(heads(v, wv))) end, {x, bias})
	assert(#node.inputs == 4)
	local seen = tensor{{true, true, true, false, false}, {true, true, true, true, true}}:view(B, 1, 1, T)
	node = one(function(_, v, m)
		return join(tensor.where(m, heads(v, wq):matmul(heads(v, wk):permute(1, 2, 4, 3)) * 0.3, -3e38):softmax(4):matmul(heads(v, wv)))
	end, {x, seen})
	assert(#node.inputs == 4)
end)

it('finds several masks', function()
	local bias, late, far = tensor.randn(1, H, T, T), future(-math.huge), ahead:gt(1)
	local node, list = one(spelled {scores = function(s) return s + bias + late end})
	assert(#node.inputs == 4 and #list.const == 4 and not list.add)
	node = one(spelled {scores = function(s) return tensor.where(far, -math.huge, s) + bias end})
	assert(#node.inputs == 4)
	local m = tensor.randn(B, 1, 1, T)
	node, list = one(function(_, v, given)
		return join((heads(v, wq):matmul(heads(v, wk):permute(1, 2, 4, 3)) + bias + given):softmax(4):matmul(heads(v, wv)))
	end, {x, m})
	assert(#node.inputs == 4 and #list.add == 1)
	-- windows of one picture
	local windows, given = tensor.randn(1, B, 1, T, T), tensor.randn(1, B, 1, 1, T)
	local function swin(s, mask) return (s:view(1, B, H, T, T) + mask):view(B, H, T, T) end
	node, list = one(spelled {scores = function(s) return swin(s + bias, windows) end}, nil, false)
	assert(#node.inputs == 4 and not list.add)
	one(function(_, v, mask)
		return join(swin(heads(v, wq):matmul(heads(v, wk):permute(1, 2, 4, 3)) * 0.3 + bias, mask):softmax(4):matmul(heads(v, wv)))
	end, {x, given}, false)
end)

it('finds softcap, and 0 where nan was', function()
	local mask = future(-math.huge)
	local node = one(spelled {scores = function(s) return (s * 0.3 / 5):tanh() * 5 + mask end})
	assert(node.attrs.softcap == 5 and math.abs(node.attrs.scale - 0.3) < 1e-6 and node.attrs.causal)
	one(spelled {after = function(p) return tensor.where(p:isnan(), 0, p) end})
end)

it('leaves what is something else', function()
	local some, later = future(-1), ahead:gt(0)
	for _, o in ipairs {{after = function(p) return p * 2 end}, {scores = function(s) return s + s:relu() end}, {scores = function(s) return s:relu() end},
		{scores = function(s) return tensor.where(later, -2, s) end}, {scores = function(s) return (s + some) * 2 end}} do
		assert(not found(spelled(o)).attention)
	end
	local other = found(function(_, v) -- the probabilities are wanted, too
		local p = (heads(v, wq):matmul(heads(v, wk):permute(1, 2, 4, 3))):softmax(4)
		return join(p:matmul(heads(v, wv))):sum() + p:max()
	end, nil, false)
	assert(not other.attention)
	other = found(function(_, v) -- along the queries
		return join(heads(v, wq):matmul(heads(v, wk):permute(1, 2, 4, 3)):softmax(3):matmul(heads(v, wv)))
	end)
	assert(not other.attention)
end)
