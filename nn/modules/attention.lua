-- SPDX-License-Identifier: MIT
-- nn.Attention: self-attention with several heads; a cache stores the keys and values of earlier calls.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

-- (B, T, heads D) to (B, heads, T, D): a view
local function split_heads(x, heads)
	local b, t, d = x:size()
	return x:view(b, t, heads, d // heads):transpose(2, 3)
end

-- Appends keys and values to the cache; returns all of them.
local function remember(cache, k, v)
	local from, to = cache.n + 1, cache.n + k:size(3)
	if to > cache.k:size(3) then
		base.fail('Attention: cache: wanted at most %d positions, got %d', cache.k:size(3), to)
	end
	cache.k:narrow(3, from, to - from + 1):copy_(k)
	cache.v:narrow(3, from, to - from + 1):copy_(v)
	cache.n = to
	return cache.k:narrow(3, 1, to), cache.v:narrow(3, 1, to)
end

local function rotated(self, key, given, start)
	local out, x = module.site(self, key, given)
	return nn.rope(x, {start = start, out = out, base = self.base or nil})
end

return module.define(nn, {
	name = 'Attention',
	usage = 'nn.Attention(size, heads, {causal=false, kvheads=, headsize=, bias=true, rope=false})',
	text = [[Self-attention of x (B, T, size): nn.Linear layers query, key, value and out, with nn.attention for each head between them.
causal: no position attends to later ones. kvheads: fewer heads of keys and values, each shared by several of the query
(grouped-query attention). headsize: the width of a head, where it is not size / heads. rope: rotary positions (nn.rope) of queries
and keys. m(x, cache) with a cache of m:cache(B, n) continues after what earlier calls have seen.]],
	options = {{'causal', 'true or false', 'default false'}, {'kvheads', 'integer', 'heads of keys and values (default: heads)'},
		{'headsize', 'integer', 'of one head (default size / heads)'}, {'bias', 'true or false', 'in the layers (default true)'},
		{'outbias', 'true or false', 'in the last layer (default: bias)'}, {'rope', 'true or false', 'default false'},
		{'base', 'number', 'of the rotary positions (default 10000)'}},
	example = [[m = nn.Attention(8, 2, {causal=true})
print(m(tensor.randn(1, 5, 8)):size())  --> 1 5 8]],
	init = function(self, options, size, heads)
		size, heads = module.size('Attention', 'size', size), module.size('Attention', 'heads', heads)
		local kvheads = module.size('Attention', 'kvheads', options.kvheads or heads)
		if not options.headsize and size % heads ~= 0 or heads % kvheads ~= 0 then
			base.fail('Attention: heads: wanted a divisor of %d and a multiple of %d, got %d', size, kvheads, heads)
		end
		local width = options.headsize and module.size('Attention', 'headsize', options.headsize) or size // heads
		self.heads, self.kvheads, self.causal, self.rope = heads, kvheads, options.causal or false, options.rope or false
		self.base = options.base and module.number('Attention', 'base', options.base, 0, math.huge, true) or false
		self.size, self.headsize = size, width
		local inner, outer = {bias = options.bias}, {bias = options.outbias}
		if outer.bias == nil then outer.bias = options.bias end
		self.query = module.child(self, nn.Linear(size, width * heads, inner), 'query')
		self.key = module.child(self, nn.Linear(size, width * kvheads, inner), 'key')
		self.value = module.child(self, nn.Linear(size, width * kvheads, inner), 'value')
		self.out = module.child(self, nn.Linear(width * heads, size, outer), 'out')
	end,
	forward = function(self, x, cache)
		local b, t = x:size()
		local q = split_heads(self.query(x), self.heads)
		local k = split_heads(self.key(x), self.kvheads)
		local v = split_heads(self.value(x), self.kvheads)
		if self.rope then
			local start = cache and cache.n + 1 or 1
			q, k = rotated(self, 'rope1', q, start), rotated(self, 'rope2', k, start)
		end
		if cache then k, v = remember(cache, module.real(k), module.real(v)) end
		local out
		out, q, k, v = module.site(self, 'attention1', q, k, v)
		local y = nn.attention(q, k, v, {causal = self.causal, out = out})
		return self.out(y:transpose(2, 3):reshape(b, t, self.heads * self.headsize))
	end,
	sites = {rope1 = {'rotated_query'}, rope2 = {'rotated_key'}, attention1 = {'queries', 'keys', 'values'}},
	-- Room for n positions of a batch of b.
	cache = function(self, b, n)
		local function room() return tensor.zeros {b, self.kvheads, n, self.headsize, device = module.device(self)} end
		return {n = 0, k = room(), v = room()}
	end,
	describe = function(self)
		local shown = {kvheads = self.kvheads ~= self.heads and self.kvheads or nil, rope = self.rope or nil}
		if self.base and self.base ~= 10000 then shown.base = self.base end
		if self.headsize * self.heads ~= self.size then shown.headsize = self.headsize end
		if not self.query.bias then shown.bias = false end
		if self.query.bias and not self.out.bias then shown.outbias = false end
		return ('%d, %d%s'):format(self.size, self.heads, self.causal and ', causal' or '') ..
			module.fields_text(shown, {'kvheads', 'headsize', 'rope', 'base', 'bias', 'outbias'})
	end,
})
