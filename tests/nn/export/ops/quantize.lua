-- SPDX-License-Identifier: MIT
-- labels: full
-- Borders between floats and codes in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local spec = {dtype='int8', scale=0.02}
exported.functions({
	quantize = function(_, x) return x:quantize {dtype='uint8', scale=0.01, zero_point=100} end,
	dequantize = function(_, x) return x:quantize(spec):dequantize() end,
	requantize = function(_, x) return x:quantize(spec):requantize {dtype='int16', scale=0.001} end,
	saturated = function(_, x) return (x * -100):quantize(spec):requantize {dtype='int8', scale=0.01} end,
	specials = function(_, x) return (x / 0):quantize(spec) end,
}, tensor.randn(12, 16):relu())
-- All codes, at ratios that make many halves.
local all = tensor.arange(-128, 127):to('float32'):view(4, 64)
local cases = {}
for _, rule in ipairs {'float', 'single', 'double', 'exact'} do
	for ratio, unit in pairs {half = 0.02, third = 0.03, fifth = 0.05, twice = 0.005} do
		cases[rule .. ' ' .. ratio] = function(_, x)
			local q = (x * 0.01):quantize {dtype='int8', scale=0.01}
			return q:requantize {dtype='uint8', scale=unit, zero_point=70, rounding=rule}
		end
	end
end
exported.functions(cases, all)
local found = {}
for _, s in ipairs {'uint8', 'int8', {bits=7}, 'uint16', 'int4', {dtype='uint8', scheme='symmetric'}} do
	found['range found, ' .. tostring(quant.spec(s))] = function(_, x) return x:quantize(s):dequantize() end
end
exported.functions(found, tensor.randn(12, 16) + 1)
-- Ranges whose ends are ties, and ends that would decode to infinity.
local most = string.unpack('<f', string.pack('<I4', 0x7f7fffff))
local ends, at_ends = tensor.cat {tensor{-1, 1}, tensor.rand(14) - 0.5}:view(1, 16), {}
for _, name in ipairs {'uint8', 'int8', 'uint16', 'int4'} do
	local function at(lo, hi) return function(_, x) return (x:relu() * 0 + x:clamp(-1, 1)):clamp(lo, hi):mul(most):quantize(name):dequantize() end end
	at_ends[name .. ' both ends'], at_ends[name .. ' one end'], at_ends[name .. ' other end'] = at(-1, 1), at(-0.595, 1), at(-1, 0.3)
	at_ends[name .. ' tie'] = function(_, x) return (x:clamp(-1, 1) * 0.4181214):quantize(name):dequantize() end
end
exported.functions(at_ends, ends)
exported.functions({['of integers'] = function(_, a) return (a * 9):to('int32'):quantize {dtype='int8', scale=0.2} end,
	['of integers, found'] = function(_, a) return (a * 9):to('int16'):quantize('uint8'):dequantize() end}, tensor.randn(20, 6))

---------------------------------------------------------------- modes that rules mix

local rows = tensor.randn(20, 6)
local small = nn.Sequential {nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)}
small:calibrate({{rows, rows}}, {log=false})
local images = tensor.randn(20, 3, 6, 6)
local net = nn.Sequential {nn.Conv2d(3, 4, 3, {pad=1}), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)}
net:calibrate({{images, images}}, {log=false})
local out = {dtype='int8', scale=0.02}
local mixed = {}
for name, case in pairs {
	['dynamic before static'] = {small, rows, {mode='static', rules={{'linear1', mode='dynamic'}}}},
	['codes of a known scale before dynamic'] = {small, rows, {mode='static', rules={{'linear1', output=out}, {'linear2', mode='dynamic'}}}},
	['convolution dynamic before static'] = {net, images, {mode='static', rules={{'conv1|linear', mode='dynamic'}}}},
	['codes of images before dynamic'] = {net, images, {mode='static', rules={{'conv1', output=out}, {'conv2', mode='dynamic'}}}},
} do
	local m, x, options = table.unpack(case)
	mixed[#mixed + 1] = {name=name, x=x, single=true, graph=function() return graph.trace(m, x:narrow(1, 1, 1)):quantize(options) end}
end
exported.together(mixed, {alone=true})
it('dynamic before static: the bits of m:quantize', function()
	local q = graph.trace(small, rows):quantize {mode='static', rules={{'linear1', mode='dynamic'}}}
	print(q:run(rows):error(small:quantize {mode='static', rules={{'linear1', mode='dynamic'}}}(rows)).max, q:node('linear1').attrs.out)  --> 0.0 nil
end)
it('codes that C has no version of are refused', function()
	local x = tensor.randn(2, 6)
	for text, f in pairs {
		["affine codes with one scale that is known, got 'int16 log scale=1'"] = function(_, v) return v:quantize {dtype='int16', scheme='log', scale=1}:dequantize() end,
		["got 'int8/2'"] = function(_, v) return v:quantize 'int8/2':dequantize() end,
		["got 'int4:2'"] = function(_, v) return v:quantize 'int4:2':dequantize() end,
		["got 'binary'"] = function(_, v) return v:quantize 'binary':dequantize() end,
		['got float16'] = function(_, v) return v:to 'float16':to 'float32' end,
	} do
		local g = exported.of(f, x)
		local good, message = pcall(g.export, g, {dir='/proc/none/x'})
		assert(not good and message:find(text, 1, true), message)
	end
end)
it('other observers than minmax: in mode static', function()
	exported.check('entropy', exported.quantized(small, rows, {mode='static', input='uint8@entropy'}), rows)
	local g = exported.quantized(small, rows, {mode='dynamic', input='uint8@entropy'})
	g:run(rows)
	print(pcall(g.export, g, {dir='/proc/none/x', samples=rows}))  --> false ...wanted the observer minmax where the range is found at run time (mode 'dynamic'), or a scale (mode 'static'), got 'uint8@entropy'
end)
it('scales found at run time: those of extremes only', function()
	local x = tensor {{0, 1, -1, 0.3, 0.7, 3, -1.5}, {-9, 3, 2, 1, 0.1, 0.7, 5}}
	for _, spec in ipairs {'int8', 'int8 asymmetric', 'uint8', 'uint8 symmetric', 'int4', 'ternary', 'int8 full', 'uint4 full', 'int8 absmean'} do
		for _, op in ipairs {'quantize', 'fake'} do
			local function f(_, a)
				if op == 'fake' then return a:fake(spec) end
				return a:quantize(spec):dequantize()
			end
			local g = exported.of(f, x)
			local good, why = pcall(exported.check, spec, g, x)
			if quant.spec(spec).mean or quant.spec(spec).any_scale then
				assert(not good and why:find 'wanted a scale that follows from', why)
			else
				assert(good, why)
			end
		end
	end
end)
