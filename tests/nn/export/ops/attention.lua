-- SPDX-License-Identifier: MIT
-- labels: full
-- Attention and rotation in exported C, alone and in Transformers.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(6, 5, 16)
local function heads(a, n) return a:view(a:size(1), 5, n, 16 // n):transpose(2, 3) end
exported.functions({
	split = function(_, a) return nn.attention(heads(a, 4), heads(a * 2, 4), heads(a - 1, 4)) end,
	causal = function(_, a) return nn.attention(heads(a, 2), heads(a * 2, 2), heads(a - 1, 2), {causal=true, scale=0.7}) end,
	joined = function(_, a) return nn.attention(a, a * 2, a - 1, {heads=4, causal=true}) end,
	['shared heads'] = function(_, a) return nn.attention(a, a:narrow(3, 1, 8), a:narrow(3, 9, 8), {heads=4}) end,
	['more keys than queries'] = function(_, a) return nn.attention(a:narrow(2, 3, 2), a, a - 1, {heads=2, causal=true}) end,
}, x)
exported.functions({
	['added mask'] = function(_, a) return nn.attention(heads(a, 4), heads(a * 2, 4), heads(a - 1, 4), {mask=heads(a, 4):narrow(4, 1, 1):transpose(3, 4)}) end,
	['mask of bool'] = function(_, a) return nn.attention(heads(a, 2), heads(a * 2, 2), heads(a - 1, 2), {mask=a:narrow(3, 1, 5):unsqueeze(2):gt(0.5)}) end,
	lengths = function(_, a)
		return nn.attention(heads(a, 2), heads(a * 2, 2), heads(a - 1, 2), {lengths=a:select(2, 1):narrow(2, 1, 5):argmax(2):to 'int32', causal=true})
	end,
	['window and softcap'] = function(_, a) return nn.attention(a, a * 2, a - 1, {heads=4, window=2, softcap=0.7}) end,
}, x)
exported.functions({
	rope = function(_, a) return nn.rope(a) end,
	['rope on heads'] = function(_, a) return nn.rope(heads(a, 2), {start=7, base=500}) end,
	['rope along another axis'] = function(_, a) return nn.rope(a:view(a:size(1), 5, 2, 8), {axis=2}) end,
}, x)

local ids = tensor.randint {6, 7, low=1, high=40}:to 'int32'
local kinds = {
	gpt = {vocab=40, d=16, heads=4, layers=2, ff=32, context=16},
	llama = {vocab=40, d=16, heads=4, layers=1, ff=32, norm='rmsnorm', act='swiglu', position='rope', bias=false, kvheads=2},
}
local cases = {}
for name, o in pairs(kinds) do
	local m = nn.Transformer(o)
	cases[#cases + 1] = {name=name, x=ids, graph=graph.trace(m, ids:narrow(1, 1, 1))}
	for _, spec in ipairs {'int8/1', 'int4:8'} do
		cases[#cases + 1] = {name=name .. ' with weights ' .. spec, x=ids, graph=exported.quantized(m, ids, {mode='weight_only', weight=spec})}
	end
end
exported.together(cases, {compilers={'cc -O2'}, alone=true})
