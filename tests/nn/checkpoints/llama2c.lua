-- SPDX-License-Identifier: MIT
-- labels: full
-- The checkpoint stories260K of llama2.c: the greedy text that its author published, also with the cache in pieces, and
-- what int8 weights do to it.
local file, tokens = data.find 'weights/stories260K.bin', data.find 'weights/tok512.bin'
if not file or not tokens then
	skip('real input: no data folder (QUOLL_DATA, ./data)')
	return
end
local m, t = nn.llama(file), data.tokenizer(tokens)
print(m.layers, m.d, m.vocab, m[1].attention.heads, m[1].attention.kvheads)  --> 5 64 512 8 4

it('writes the published text', function()
	local handle = assert(io.open(data.find 'weights/expected.json'))
	local want = handle:read('a'):match '"stories260K_greedy_256": "(.*)"%s*}%s*$':gsub('\\n', '\n'):gsub('\\"', '"')
	handle:close()
	local ids = m:generate(t:encode('', {bos=true}), {steps=256, temperature=0})
	local text = t:decode(ids)
	assert(#want == 565 and text:sub(1, 565) == want, text)
end)

it('int8 weights change the perplexity by less than half a percent on a text of its own', function()
	tensor.seed(1)
	local ids = m:generate(t:encode('', {bos=true}), {steps=255})
	local x, y = ids:narrow(1, 1, 255):unsqueeze(1), ids:narrow(1, 2, 255):unsqueeze(1)
	local batch = {{x, y}}
	local full = m:evaluate(batch, {metric='perplexity', log=false}).perplexity
	local q = m:quantize {mode='weight_only', weight='int8/1'}
	assert(math.abs(q:evaluate(batch, {metric='perplexity', log=false}).perplexity / full - 1) < 0.005)
end)

local ok, message = pcall(nn.llama, data.find 'images/camera.png')
assert(not ok and message:find('load:', 1, true), message)
