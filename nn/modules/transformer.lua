-- SPDX-License-Identifier: MIT
-- nn.Transformer: a language model. Blocks of attention and feed-forward, each after a norm and added to its input
-- (pre-norm, as in GPT-2 and Llama).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local initial = internal.import 'nn/base/initial'
local kvcache = internal.import 'nn/base/kvcache'
local module = internal.import 'nn/base/module'

local function norm(o)
	return (o.norm == 'rmsnorm' and nn.RMSNorm or nn.LayerNorm)(o.d, {eps = o.eps})
end

local ACTIVATIONS = {gelu = function() return nn.GELU() end, gelutanh = function() return nn.GELU {approximate = 'tanh'} end,
	relu = function() return nn.ReLU() end, silu = function() return nn.SiLU() end}

-- Two layers with an activation between, or Llama's gated form w2(silu(w1 x) * w3 x).
local function feed_forward(o)
	local inner = {bias = o.bias}
	if o.act ~= 'swiglu' then
		return nn.Sequential {nn.Linear(o.d, o.ff, inner), ACTIVATIONS[o.act or 'gelu'](), nn.Linear(o.ff, o.d, inner)}
	end
	return nn.module(function(self, x) return self.down(self.gate(x):silu() * self.up(x)) end,
		{gate = nn.Linear(o.d, o.ff, inner), up = nn.Linear(o.d, o.ff, inner), down = nn.Linear(o.ff, o.d, inner)})
end

-- Its layers that read the stream, and the one that writes to it.
local function feed_forward_ends(ff)
	local layers = {}
	for i, entry in ipairs(module.children(ff)) do layers[i] = entry.module end
	if rawget(ff, 'gate') then return {ff.gate, ff.up}, ff.down end
	return {layers[1]}, layers[#layers]
end

-- The window of a block: that of all, or its own in a list, in which 0 is none.
local function window_of(o, number)
	local window = o.window
	if type(window) == 'table' then window = window[number] end
	return window ~= 0 and window or nil
end

local block = {
	name = 'Block', loose = true, usage = '',
	init = function(self, _, o, number)
		self.norm1 = module.child(self, norm(o), 'norm1')
		local bias = o.attentionbias
		if bias == nil then bias = o.bias end
		self.attention = module.child(self, nn.Attention(o.d, o.heads, {causal = o.causal ~= false, kvheads = o.kvheads, headsize = o.headsize,
			bias = bias, outbias = o.outbias, rope = o.position == 'rope', base = o.ropebase, ropescaling = o.ropescaling,
			window = window_of(o, number), softcap = o.softcap}), 'attention')
		self.norm2 = module.child(self, norm(o), 'norm2')
		self.ff = module.child(self, feed_forward(o), 'ff')
		self.dropout = module.child(self, nn.Dropout(o.dropout or 0), 'dropout')
	end,
	forward = function(self, x, cache)
		x = module.add(self, 'add1', x, self.dropout(self.attention(self.norm1(x), cache)))
		return module.add(self, 'add2', x, self.dropout(self.ff(self.norm2(x))))
	end,
	sites = {add1 = {'input', 'attended'}, add2 = {'middle', 'fed'}},
	stream = function(self)
		local attention, layers, last = self.attention, feed_forward_ends(self.ff)
		return {readers = {{norm = self.norm1, layers = {attention.query, attention.key, attention.value}}, {norm = self.norm2, layers = layers}},
			writers = {attention.out, last}}
	end,
}
local kinds = {}
module.define(kinds, block)

local KINDS = {norm = {'layernorm', 'rmsnorm'}, act = {'gelu', 'gelutanh', 'relu', 'silu', 'swiglu'}, position = {'learned', 'rope'}}

local function check_window(o)
	if type(o.window) ~= 'table' then return end
	if getmetatable(o.window) or #o.window ~= o.layers then
		base.fail('Transformer: window: wanted a number or a list of %d, got %s', o.layers, getmetatable(o.window) and base.describe(o.window) or
			('a list of %d'):format(#o.window))
	end
	for _, size in ipairs(o.window) do module.size('Transformer', 'window', size, 0) end
end

local function check(o)
	for _, name in ipairs {'vocab', 'd', 'heads', 'layers'} do module.size('Transformer', name, o[name]) end
	module.check_words('Transformer', KINDS, o)
	check_window(o)
end

local function check_ids(self, ids, start)
	if not base.is_tensor(ids) or ids:dim() ~= 2 then
		base.fail('Transformer: wanted numbers of tokens (B, T), got %s', base.describe(ids))
	end
	if start + ids:size(2) - 1 > self.context then
		base.fail('Transformer: wanted at most %d positions (context=), got %d', self.context, start + ids:size(2) - 1)
	end
end

-- The vectors of t positions, (t, d), or (B, t, d) where rows are not equally far.
local function positions_of(self, t, at)
	if not at or not at.ragged then return self.positions:narrow(1, at and at.n + 1 or 1, t) end
	return self.positions:embedding(at.starts:unsqueeze(2) + tensor.arange(1, t):to 'int64':to(self.positions:device()))
end

return module.define(nn, {
	name = 'Transformer', list = true,
	usage = 'nn.Transformer{vocab=, d=, heads=, layers=, ff=, context=256}',
	text = [[A language model from token ids (B, T) to logits (B, T, vocab): an embedding, blocks of nn.Attention and a feed-forward
part with ff units, each after a norm and added to its input, a final norm, and a Linear head that shares the embedding's
weight (tie=false: it has its own). norm='rmsnorm', act='swiglu', position='rope', bias=false and kvheads= make it a Llama.
m:generate generates text with a cache of keys and values.]],
	options = {{'vocab', 'integer', 'number of tokens'}, {'d', 'integer', 'size of the vectors'}, {'heads', 'integer', 'of attention'},
		{'kvheads', 'integer', 'of keys and values (default: heads)'}, {'layers', 'integer', 'blocks'},
		{'ff', 'integer', 'units of the feed-forward part (default 4 d)'}, {'context', 'integer', 'maximum number of positions (default 256)'},
		{'causal', 'true or false', 'no position attends to later ones (default true)'}, {'dropout', 'number', 'default 0'},
		{'norm', 'text', 'layernorm (default) or rmsnorm'}, {'eps', 'number', 'of the norms (default 1e-5)'},
		{'act', 'text', 'gelu (default), gelutanh, relu, silu or swiglu'}, {'headsize', 'integer', 'of a head of attention (default d / heads)'},
		{'position', 'text', 'learned (default) or rope'}, {'ropebase', 'number', 'of rope (default 10000)'},
		{'ropescaling', 'any', 'of nn.Attention: {type=, factor=, …}'},
		{'window', 'any', 'positions attend only to those less than this far away; a list has a number for each block, 0 for all (default)'},
		{'softcap', 'number', 'scores of attention become softcap * tanh(score / softcap)'},
		{'bias', 'true or false', 'in the layers (default true)'}, {'attentionbias', 'true or false', 'in those of attention (default: bias)'},
		{'outbias', 'true or false', 'in the last of these (default: attentionbias)'},
		{'tie', 'true or false', 'the head shares the weight of the embedding (default true)'}},
	example = [[m = nn.Transformer{vocab=10, d=8, heads=2, layers=1, ff=16}
print(m(tensor{{1, 5, 3}, dtype='int32'}):size())  --> 1 3 10]],
	init = function(self, o)
		check(o)
		o.ff = o.ff or 4 * o.d
		self.vocab, self.d, self.context, self.layers = o.vocab, o.d, o.context or 256, o.layers
		local function small(...) return tensor.randn(...):mul_(0.02) end
		self.embedding = module.child(self, initial.unset(nn.Embedding, o.vocab, o.d), 'embedding')
		module.set_tensor(self.embedding, 'weight', initial.of(small, o.vocab, o.d))
		self.positions, self.wide = false, false
		if o.position ~= 'rope' then module.parameter(self, 'positions', initial.of(small, self.context, o.d)) end
		self.dropout = module.child(self, nn.Dropout(o.dropout or 0), 'dropout')
		for i = 1, o.layers do self[i] = module.child(self, kinds.Block(o, i, {}), 'block' .. i) end
		self.norm = module.child(self, norm(o), 'norm')
		self.head = module.child(self, nn.Linear(o.d, o.vocab, {bias = false}), 'head')
		if o.tie ~= false then self.head.weight = self.embedding.weight end
	end,
	forward = function(self, ids, caches)
		local at = caches and caches.at
		check_ids(self, ids, at and at.n + 1 or 1)
		local x = self.embedding(ids)
		if self.wide then x = x:to 'float32' end -- of weights in 16 bits (nn.load)
		if self.positions then x = module.add(self, 'add1', x, positions_of(self, ids:size(2), at)) end
		x = self.dropout(x)
		for i = 1, self.layers do x = self[i](x, caches and caches[i]) end
		if at then kvcache.advance(at, ids:size(2)) end
		if caches and caches.wanted then x = caches.wanted(x) end
		return self.head(self.norm(x))
	end,
	sites = {add1 = {'embedded', 'positions'}},
	stream = function(self)
		local all = {size = self.d, tables = {{self.embedding, 'weight'}}, readers = {}, writers = {}}
		if self.positions then all.tables[2] = {self, 'positions'} end
		for i = 1, self.layers do
			local one = module.class_of(self[i]).stream(self[i])
			table.move(one.readers, 1, #one.readers, #all.readers + 1, all.readers)
			table.move(one.writers, 1, #one.writers, #all.writers + 1, all.writers)
		end
		all.readers[#all.readers + 1] = {norm = self.norm, layers = {self.head}}
		return all
	end,
	-- One cache for each block. A function `wanted` in it picks the positions whose logits are computed.
	cache = function(self, b, n, kv)
		local list = {at = kvcache.begin(b, module.device(self))}
		for i = 1, self.layers do list[i] = self[i].attention:cache(b, n, kv, list.at) end
		return list
	end,
	describe = function(self) return ('vocab=%d, d=%d, layers=%d'):format(self.vocab, self.d, self.layers) end,
})
