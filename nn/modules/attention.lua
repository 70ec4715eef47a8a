-- SPDX-License-Identifier: MIT
-- nn.Attention: attention with several heads, of a sequence to itself or to another one; a cache stores the keys and values of
-- earlier calls.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local kvcache = internal.import 'nn/base/kvcache'
local module = internal.import 'nn/base/module'
local rotary = internal.import 'nn/base/rotary'

-- (B, T, heads D) to (B, heads, T, D): a view
local function split_heads(x, heads)
	local b, t, d = x:size()
	return x:view(b, t, heads, d // heads):transpose(2, 3)
end

-- Appends keys and values to the cache; returns all of them.
local function remember(cache, k, v)
	local from, to = cache.at.n + 1, cache.at.n + k:size(3)
	cache.k:narrow(3, from, to - from + 1):copy_(k)
	cache.v:narrow(3, from, to - from + 1):copy_(v)
	return cache.k:narrow(3, 1, to), cache.v:narrow(3, 1, to)
end

-- Whether one op turns, writes and attends: not where ops have codes of their own, and not on devices, whose kernels take the steps.
local function at_once(self, cache, with)
	if not self.causal or with.mask or with.lengths then return false end
	return cache.at.ragged or cache.kspec ~= nil or cache.vspec ~= nil or not rawget(self, 'sites') and cache.k:device() == 'cpu'
end

-- Tables of cosines and sines for all positions of the cache, where frequencies are scaled; t: new ones.
local function turning(self, cache, t)
	if not self.ropescaling then return nil, nil end
	return rotary.tables(self.ropescaling, self.base or 10000.0, self.ropedims or self.headsize, 1, kvcache.room(cache), cache.k:device(), cache.at.n + t)
end

local function continued(self, x, cache)
	local cos, sin = turning(self, cache, x:size(2))
	local q, k, v, starts = self.query(x), self.key(x), self.value(x), cache.at.starts
	if cache.away then q, k, v, starts = q:to 'cpu', k:to 'cpu', v:to 'cpu', starts:to 'cpu' end
	local o = {heads = self.heads, rope = self.rope and (self.ropestyle or 'pairs') or nil, base = self.rope and not cos and self.base or nil, cos = cos, sin = sin,
		dims = self.rope and self.ropedims or nil, window = self.window or nil, softcap = self.softcap or nil, scale = self.scale or nil,
		kspec = cache.kspec, vspec = cache.vspec, recent = cache.late and cache.recent or nil}
	local y
	if cache.late then
		y = nn.recentattention(q, k, v, cache.k, cache.v, cache.kring, cache.vring, starts, o)
	else
		y = nn.cachedattention(q, k, v, cache.k, cache.v, starts, o)
	end
	return cache.away and y:to(x:device()) or y
end

local function check_room(cache, t)
	if cache.at.n + t > kvcache.room(cache) then
		base.fail('Attention: cache: wanted at most %d positions, got %d', kvcache.room(cache), cache.at.n + t)
	end
end

local CALL = {name = 'Attention', options = {{'mask', 'tensor'}, {'lengths', 'tensor'}}}

local function rotated(self, key, given, start)
	local out, x = module.site(self, key, given)
	if self.ropescaling then
		local cos, sin = rotary.tables(self.ropescaling, self.base or 10000.0, self.ropedims or self.headsize, start, x:size(3), x:device())
		return nn.rope(x, cos, sin, {out = out, style = self.ropestyle or nil, dims = self.ropedims or nil})
	end
	return nn.rope(x, {start = start, out = out, base = self.base or nil, style = self.ropestyle or nil, dims = self.ropedims or nil})
end

-- m(x, memory, options), m(x, cache, options), m(x, options): where keys come from, a cache or nil, the options.
local function arguments(x, other, options)
	if other ~= nil and not base.is_tensor(other) and (type(other) ~= 'table' or not rawget(other, 'k')) then
		if options ~= nil then base.fail('Attention: wanted a memory (tensor) or a cache (m:cache), got %s', base.describe(other)) end
		other, options = nil, other
	end
	options = base.options(CALL, options)
	if base.is_tensor(other) then return other, nil, options end
	return x, other, options
end

return module.define(nn, {
	name = 'Attention',
	usage = 'nn.Attention(size, heads, {causal=false, kvheads=, headsize=, bias=true, rope=false, window=, softcap=, scale=, memory=})',
	text = [[Attention of x (B, T, size): nn.Linear layers query, key, value and out, with nn.attention for each head between them.
m(x) attends to x itself, m(x, memory) to a memory (B, S, size), as a decoder does to what an encoder gives; memory= is the width of the
memory if it is another.

Options of a call come last: m(x, {mask=, lengths=}), m(x, memory, {mask=, lengths=}), as in nn.attention: a mask of bool
(true: seen) or floats (added) that is broadcast to (B, heads, T, S), and the number of keys of each row of the batch.
causal: no position attends to later ones. kvheads: fewer heads of keys and values, each shared by several of the query
(grouped-query attention). headsize: the width of a head, where it is not size / heads.

rope: rotary positions (nn.rope) of queries
and keys; ropescaling= changes their frequencies for longer texts: {type='linear', factor=}, {type='llama3', factor=, lowfreqfactor=,
highfreqfactor=, original=}, {type='yarn', factor=, original=, betafast=32, betaslow=1, attentionfactor=, truncate=true}, {type='factors',
factors={…}}, a divisor for each pair, or {type='longrope', short={…}, long={…}, original=, factor=1, attentionfactor=}, whose long divisors are those
of calls with a position beyond original= (keys that a cache has stay as they were); original= is the context before.

m(x, cache) with a cache of m:cache(B, n) continues after what earlier calls have seen; m:cache(B, n, 'int8') keeps codes, with a
scale for each position of a head, or for blocks of it ('int4:32'); also float16, and {k='int8', v='int4:32'}. Axes of such formats are those of
(B, position, channel of all heads): {k='uint4/2:32+min', v='uint4/3:32+min', recent=32} as in m:generate.]],
	options = {{'causal', 'true or false', 'default false'}, {'kvheads', 'integer', 'heads of keys and values (default: heads)'},
		{'headsize', 'integer', 'of one head (default size / heads)'}, {'bias', 'true or false', 'in the layers (default true)'},
		{'outbias', 'true or false', 'in the last layer (default: bias)'}, {'rope', 'true or false', 'default false'},
		{'base', 'number', 'of the rotary positions (default 10000)'},
		{'ropestyle', 'text', "of nn.rope: 'pairs' (default) or 'half', as in Hugging Face's models"},
		{'ropedims', 'integer', 'numbers of a head that rope turns (default: all)'},
		{'ropescaling', 'any', "a table {type=, factor=, …}: frequencies of rope by a rule of transformers: linear, llama3, yarn, longrope, or given factors"},
		{'window', 'integer', 'positions attend only to those less than this far away (default: all)'},
		{'softcap', 'number', 'scores become softcap * tanh(score / softcap)'},
		{'scale', 'number', 'factor of the scores (default 1 / sqrt(headsize))'},
		{'memory', 'integer', 'width of the memory of m(x, memory) (default: size)'}},
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
		self.ropedims = options.ropedims and module.size('Attention', 'ropedims', options.ropedims) or false
		self.ropestyle = options.ropestyle or false
		if self.ropestyle and self.ropestyle ~= 'half' and self.ropestyle ~= 'pairs' then
			base.fail("Attention: ropestyle: wanted 'pairs' or 'half', got %s", base.describe(self.ropestyle))
		end
		self.size, self.headsize = size, width
		self.ropescaling = options.ropescaling and rotary.check('Attention', options.ropescaling, self.ropedims or width) or false
		if self.ropescaling and not self.rope then base.fail 'Attention: ropescaling: wanted rope=true with it, got false' end
		self.window = options.window and module.size('Attention', 'window', options.window) or false
		self.softcap = options.softcap and module.number('Attention', 'softcap', options.softcap, 0, math.huge, true) or false
		self.scale = options.scale or false
		local from = options.memory and module.size('Attention', 'memory', options.memory) or size
		self.memorysize = from
		local inner, outer = {bias = options.bias}, {bias = options.outbias}
		if outer.bias == nil then outer.bias = options.bias end
		self.query = module.child(self, nn.Linear(size, width * heads, inner), 'query')
		self.key = module.child(self, nn.Linear(from, width * kvheads, inner), 'key')
		self.value = module.child(self, nn.Linear(from, width * kvheads, inner), 'value')
		self.out = module.child(self, nn.Linear(width * heads, size, outer), 'out')
	end,
	forward = function(self, x, other, given)
		local memory, cache, with = arguments(x, other, given)
		local b, t = x:size()
		if cache then
			check_room(cache, t)
			if at_once(self, cache, with) then
				local y = continued(self, x, cache)
				if cache.own then kvcache.advance(cache.at, t) end
				return self.out(y)
			elseif cache.at.ragged or cache.kspec or cache.vspec then
				base.fail 'Attention: cache: wanted causal=true without a mask for codes and for rows that differ in length, got another'
			end
		end
		local q = split_heads(self.query(x), self.heads)
		local k = split_heads(self.key(memory), self.kvheads)
		local v = split_heads(self.value(memory), self.kvheads)
		if self.rope then
			local start = cache and cache.at.n + 1 or 1
			q, k = rotated(self, 'rope1', q, start), rotated(self, 'rope2', k, start)
		end
		if cache then
			k, v = remember(cache, module.real(k), module.real(v))
			if cache.own then kvcache.advance(cache.at, t) end
		end
		local out
		out, q, k, v = module.site(self, 'attention1', q, k, v)
		local y = nn.attention(q, k, v, {causal = self.causal, out = out, mask = with.mask, lengths = with.lengths,
			window = self.window or nil, softcap = self.softcap or nil, scale = self.scale or nil})
		return self.out(y:transpose(2, 3):reshape(b, t, self.heads * self.headsize))
	end,
	sites = {rope1 = {'rotated_query'}, rope2 = {'rotated_key'}, attention1 = {'queries', 'keys', 'values'}},
	-- Room for n positions of a batch of b, in a format (nn/base/kvcache.lua); `at`: what layers of one model share.
	cache = function(self, b, n, kv, at) return kvcache.new(b, self.kvheads, n, self.headsize, module.device(self), kv, at) end,
	describe = function(self)
		local shown = {kvheads = self.kvheads ~= self.heads and self.kvheads or nil, rope = self.rope or nil}
		if self.base and self.base ~= 10000 then shown.base = self.base end
		if self.headsize * self.heads ~= self.size then shown.headsize = self.headsize end
		for _, name in ipairs {'window', 'softcap', 'scale'} do
			if self[name] then shown[name] = ('%g'):format(self[name]) end
		end
		shown.ropestyle, shown.ropedims = self.ropestyle or nil, self.ropedims or nil
		shown.ropescaling = self.ropescaling and self.ropescaling.type or nil
		if self.memorysize ~= self.size then shown.memory = self.memorysize end
		if not self.query.bias then shown.bias = false end
		if self.query.bias and not self.out.bias then shown.outbias = false end
		return ('%d, %d%s'):format(self.size, self.heads, self.causal and ', causal' or '') ..
			module.fields_text(shown, {'kvheads', 'headsize', 'rope', 'base', 'ropestyle', 'ropedims', 'ropescaling', 'window', 'softcap', 'scale', 'memory', 'bias', 'outbias'})
	end,
})
