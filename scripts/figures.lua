-- SPDX-License-Identifier: MIT
-- The figures of tutorials/README.md that take less than two minutes, made again: `./quoll scripts/figures.lua` prints one line for each,
-- name and text as it is in that file. tests/interp/figures.lua compares the two. Needs the data sets and the weights of the tutorials.
local folder = (arg and arg[0] or ''):match '^(.*/)' or ''
local models = folder .. '../tutorials/models/'

local function figure(name, format, ...) print(name, format:format(...)) end
local function signed(value, reference) return 100 * (value / reference - 1) end

local function transformer()
	local m = dofile(models .. 'transformer.lua'):load(models .. 'transformer.safetensors'):eval()
	local d = data.text{level = 'char', steps = 128}
	local function loader(part) return data.loader(part, {batch = 32, steps = 128, order = 'windows'}) end
	local o = {metric = 'perplexity', batches = 8, log = false}
	local function value(model) return model:evaluate(loader(d.test), o).value end
	local float = value(m)
	figure('transformer float32', 'float32 %.3f', float)
	for _, spec in ipairs {'int8/1', 'int4:32', 'int4:64', 'int4/1'} do
		local q = m:quantize{mode = 'weight_only', weight = spec, rules = {{'embedding.*', false}}}
		figure('transformer ' .. spec, '%s %+.2f %%', spec, signed(value(q), float))
	end
end

local function lstm()
	local m = dofile(models .. 'lstm.lua'):load(models .. 'lstm.safetensors'):eval()
	local q = m:quantize{mode = 'dynamic', weight = 'int8/1'}
	figure('lstm bytes', '%.1f MB instead of %.1f', q:nbytes() / 1e6, m:nbytes() / 1e6)
end

local wanted = {transformer = transformer, lstm = lstm}
for _, name in ipairs {'lstm', 'transformer'} do
	if not arg or not arg[1] or arg[1] == name then wanted[name]() end
end
