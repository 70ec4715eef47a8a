-- SPDX-License-Identifier: MIT
-- nn.Encoder: BERT and its kin. Blocks of attention and feed-forward, each added to its input before a norm (post-norm), over sums of
-- embeddings; what is made of the result are the heads of transformers' models.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local initial = internal.import 'nn/base/initial'
local module = internal.import 'nn/base/module'

local ACTIVATIONS = {gelu = function() return nn.GELU() end, gelutanh = function() return nn.GELU {approximate = 'tanh'} end,
	relu = function() return nn.ReLU() end, silu = function() return nn.SiLU() end, tanh = function() return nn.Tanh() end}
local CHOICES = {act = {'gelu', 'gelutanh', 'relu', 'silu', 'tanh'}, pooleract = {'tanh', 'relu'}, head = {'maskedlm', 'sequence', 'token'}}

local function norm(o) return nn.LayerNorm(o.d, {eps = o.eps or 1e-12}) end
local function activation(o) return ACTIVATIONS[o.act or 'gelu']() end

local kinds = {}
module.define(kinds, {
	name = 'EncoderBlock', word = 'block', loose = true, usage = '',
	init = function(self, _, o)
		self.attention = module.child(self, nn.Attention(o.d, o.heads), 'attention')
		self.norm1 = module.child(self, norm(o), 'norm1')
		self.ff = module.child(self, nn.Sequential {nn.Linear(o.d, o.ff), activation(o), nn.Linear(o.ff, o.d)}, 'ff')
		self.norm2 = module.child(self, norm(o), 'norm2')
		self.dropout = module.child(self, nn.Dropout(o.dropout or 0), 'dropout')
	end,
	forward = function(self, x, seen)
		x = self.norm1(module.add(self, 'add1', x, self.dropout(self.attention(x, seen))))
		return self.norm2(module.add(self, 'add2', x, self.dropout(self.ff(x))))
	end,
	sites = {add1 = {'input', 'attended'}, add2 = {'middle', 'fed'}},
})

-- Logits of tokens: a layer, its activation, a norm, and the embedding as the last layer.
local function masked_head(self, o)
	local head = nn.Sequential {nn.Linear(o.d, o.d, {name = 'transform'}), activation(o), nn.LayerNorm(o.d, {eps = o.eps or 1e-12, name = 'norm'}),
		nn.Linear(o.d, o.vocab, {name = 'decoder'})}
	if o.tie ~= false then head.decoder.weight = self.embedding.weight end
	return head
end

local function check(o)
	for _, name in ipairs {'vocab', 'd', 'heads', 'layers'} do module.size('Encoder', name, o[name]) end
	module.check_words('Encoder', CHOICES, o)
	local classifies = o.head == 'sequence' or o.head == 'token'
	if classifies then module.size('Encoder', 'classes', o.classes) end
	if o.classes and not classifies then base.fail "Encoder: classes: wanted head='sequence' or head='token' with it, got neither" end
	if o.head == 'sequence' and o.pooler == false then base.fail "Encoder: pooler: wanted one for head='sequence', got false" end
end

local CALL = {name = 'Encoder', options = {{'types', 'tensor'}, {'mask', 'tensor'}, {'lengths', 'tensor'}}}

local function check_ids(self, ids, o)
	if not base.is_tensor(ids) or ids:dim() ~= 2 then base.fail('Encoder: wanted numbers of tokens (B, T), got %s', base.describe(ids)) end
	if ids:size(2) > self.context then base.fail('Encoder: wanted at most %d positions (context=), got %d', self.context, ids:size(2)) end
	if o.types and not self.types then base.fail 'Encoder: types: wanted none, as the model has no types of tokens (types=), got some' end
	if o.types and (o.types:dim() ~= 2 or o.types:size(1) ~= ids:size(1) or o.types:size(2) ~= ids:size(2)) then
		base.fail('Encoder: types: wanted a number for each token (%d, %d), got %s', ids:size(1), ids:size(2), base.describe(o.types))
	end
end

-- What nn.attention takes: a mask (B, T) tells for each key whether it is seen, by true or any number but 0.
local function seen_of(ids, o)
	local mask = o.mask
	if mask and mask:dim() == 2 then
		if mask:size(1) ~= ids:size(1) or mask:size(2) ~= ids:size(2) then
			base.fail('Encoder: mask: wanted a number for each token (%d, %d), got %s', ids:size(1), ids:size(2), base.describe(mask))
		end
		mask = mask:ne(0):reshape(ids:size(1), 1, 1, ids:size(2))
	end
	return {mask = mask, lengths = o.lengths}
end

-- The sum of the embeddings.
local function embedded(self, ids, types)
	local x = self.embedding(ids)
	if self.wide then x = x:to 'float32' end -- of weights in 16 bits (nn.load)
	if self.types then
		local t = types and self.types(types) or self.types.weight:narrow(1, 1, 1)
		if t:quantized() then t = t:dequantize() end
		x = module.add(self, 'add1', x, self.wide and t:to 'float32' or t)
	end
	return module.add(self, 'add2', x, self.positions:narrow(1, 1, ids:size(2)))
end

local function encode(self, ids, options)
	local o = base.options(CALL, options)
	check_ids(self, ids, o)
	local x, seen = self.dropout(self.norm(embedded(self, ids, o.types))), seen_of(ids, o)
	for i = 1, self.layers do x = self[i](x, seen) end
	return x, self.pooler and self.poolact(self.pooler(x:select(2, 1))) or nil
end

return module.define(nn, {
	name = 'Encoder', list = true,
	usage = 'nn.Encoder{vocab=, d=, heads=, layers=, ff=, context=512, types=, pooler=false, head=}',
	text = [[BERT and its kin: numbers of tokens (B, T) become vectors (B, T, d), each of which depends on all tokens. Embeddings of tokens,
positions and types of tokens are added; then come a norm and blocks of nn.Attention and a feed-forward part, each added to its input before
a norm. m(ids) gives the vectors and, with pooler=true, a second result (B, d): a layer and tanh of the vector of the first token.

Options of a call: m(ids, {types=, mask=, lengths=}). types are the numbers of the tokens' types (B, T), from 1 (default: all 1); mask (B, T) is true or
not 0 for tokens, false or 0 for padding, or it is a mask of nn.attention; lengths (B) are the numbers of tokens before the padding.

head= makes it one of transformers' models: 'maskedlm' gives logits of each token (B, T, vocab), 'token' those of classes= for each token
(B, T, classes), 'sequence' those for the text (B, classes), of the pooler's result. m:encode(ids, {…}) gives the vectors of such a
model, too, and the pooler's result.]],
	options = {{'vocab', 'integer', 'number of tokens'}, {'d', 'integer', 'size of the vectors'}, {'heads', 'integer', 'of attention'},
		{'layers', 'integer', 'blocks'}, {'ff', 'integer', 'units of the feed-forward part (default 4 d)'},
		{'context', 'integer', 'maximum number of positions (default 512)'}, {'types', 'integer', 'number of types of tokens (default: none)'},
		{'act', 'text', 'gelu (default), gelutanh, relu, silu or tanh'}, {'eps', 'number', 'of the norms (default 1e-12)'},
		{'dropout', 'number', 'default 0'}, {'pooler', 'true or false', "a layer over the first vector (default: for head='sequence' only)"},
		{'pooleract', 'text', 'its activation: tanh (default) or relu'}, {'head', 'text', 'maskedlm, sequence or token (default: none)'},
		{'classes', 'integer', "of head='sequence' and head='token'"},
		{'tie', 'true or false', "head='maskedlm' shares the weight of the embedding (default true)"}},
	example = [[m = nn.Encoder{vocab=10, d=8, heads=2, layers=1, types=2, pooler=true}
y, pooled = m(tensor{{1, 5, 3}, {2, 4, 1}, dtype='int32'}, {lengths=tensor{3, 2, dtype='int32'}})
print(y:size())       --> 2 3 8
print(pooled:size())  --> 2 8]],
	init = function(self, o)
		check(o)
		o.ff = o.ff or 4 * o.d
		self.vocab, self.d, self.context, self.layers = o.vocab, o.d, o.context or 512, o.layers
		self.wide, self.kind = false, o.head or false
		local function small(...) return tensor.randn(...):mul_(0.02) end
		local function table_of(count, name)
			local m = module.child(self, initial.unset(nn.Embedding, count, o.d), name)
			module.set_tensor(m, 'weight', initial.of(small, count, o.d))
			return m
		end
		self.embedding = table_of(o.vocab, 'embedding')
		module.parameter(self, 'positions', initial.of(small, self.context, o.d))
		self.types = o.types and table_of(module.size('Encoder', 'types', o.types), 'types') or false
		self.norm = module.child(self, norm(o), 'norm')
		self.dropout = module.child(self, nn.Dropout(o.dropout or 0), 'dropout')
		for i = 1, o.layers do self[i] = module.child(self, kinds.EncoderBlock(o, {}), 'block' .. i) end
		local pools = o.pooler or o.head == 'sequence'
		self.pooler = pools and module.child(self, nn.Linear(o.d, o.d), 'pooler') or false
		self.poolact = pools and module.child(self, ACTIVATIONS[o.pooleract or 'tanh'](), 'poolact') or false
		self.head = false
		if o.head == 'maskedlm' then
			self.head = module.child(self, masked_head(self, o), 'head')
		elseif o.head then
			self.head = module.child(self, nn.Linear(o.d, o.classes), 'head')
		end
	end,
	forward = function(self, ids, options)
		local x, pooled = encode(self, ids, options)
		if not self.head then return x, pooled end
		return self.head(self.kind == 'sequence' and pooled or x)
	end,
	encode = encode,
	sites = {add1 = {'embedded', 'typed'}, add2 = {'sum', 'positions'}},
	describe = function(self)
		local shown = {vocab = self.vocab, d = self.d, layers = self.layers, head = self.kind or nil}
		return (module.fields_text(shown, {'vocab', 'd', 'layers', 'head'}):gsub('^, ', ''))
	end,
})
