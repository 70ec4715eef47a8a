-- SPDX-License-Identifier: MIT
-- labels: quick
-- form='integer': sums of codes become codes by the rules of g:run.
local exported = dofile 'tests/tools/exported.lua'
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(23)
local x = tensor.randn(40, 7) * 2
local whole = {export = {form = 'integer'}, tolerance = 0}
local byte, signed = {dtype = 'uint8', scale = 0.031, zero_point = 99}, {dtype = 'int8', scale = 0.0437, zero_point = -11}

it('sums, differences and products of codes, by each rule', function()
	for _, rule in ipairs {'float', 'single', 'double'} do
		for _, op in ipairs {'add', 'sub', 'mul'} do
			for _, act in ipairs {false, op == 'add' and 'relu' or nil} do
				local target = {dtype = 'int8', scale = 0.05, zero_point = 3, rounding = rule}
				local function f(_, a) return a:quantize(byte)[op](a:quantize(byte), (a * 0.7 + 1):quantize(signed), {out = target, act = act or nil}) end
				assert(select(2, back(f, x, whole):gsub('DequantizeLinear', '')) == 2)
			end
		end
	end
end)

it('products in fixed point, with shifts to both sides', function()
	local w = tensor.randn(5, 7)
	for _, rule in ipairs {'single', 'double'} do
		for _, scale in ipairs {0.3, 0.011, 0.0001} do
			local parts = {w = w:quantize 'int8/1', b = tensor.randn(5)}
			local target = {dtype = 'int8', scale = scale, zero_point = -3, rounding = rule}
			back(function(self, a) return a:quantize(byte):linear(self.w, self.b, {out = target}) end, x, {export = {form = 'integer'}, parts = parts})
			parts.w = w:quantize {dtype = 'int8', scale = 40}
			back(function(self, a) return a:quantize(byte):linear(self.w, {out = target}) end, x, {export = {form = 'integer'}, parts = parts})
		end
	end
end)

it('means of whole planes', function()
	local planes = tensor.randn(9, 3, 4, 6)
	for _, rule in ipairs {'float', 'single', 'double'} do
		for _, target in ipairs {byte, signed} do
			local o = {dtype = target.dtype, scale = target.scale, zero_point = target.zero_point, rounding = rule}
			for _, k in ipairs {'all', {4, 6}} do
				local ops = back(function(_, a) return a:quantize(byte):avgpool2d(k, {out = o}) end, planes, whole)
				assert(ops:find 'ReduceSum' and not ops:find 'AveragePool', ops)
			end
		end
	end
end)

-- 3 * 2^-2 and -3 * 2^-2 and their kin: halves go away from 0, or up.
it('rounds halves as the rules do', function()
	local w = tensor {{1}}:quantize {dtype = 'int8', scale = 1}
	local a = tensor {{-6}, {-2}, {2}, {6}, {10}}
	for rule, want in pairs {float = {-2, 0, 0, 2, 2}, single = {-1, 0, 1, 2, 3}, double = {-2, -1, 1, 2, 3}} do
		local g = out.graph(function(self, t)
			return t:quantize {dtype = 'int8', scale = 1}:linear(self.w, {out = {dtype = 'int8', scale = 4, rounding = rule}})
		end, a, {parts = {w = w}})
		local path = out.file(g, {form = 'integer'})
		local codes = graph.load(path):run(a)
		os.remove(path)
		codes = codes:quantized() and codes:codes() or codes
		for i, v in ipairs(want) do assert(codes:totable()[i][1] == v, rule) end
	end
end)

it('a network under each rule', function()
	local m = nn.Sequential {nn.Linear(7, 9), nn.ReLU(), nn.Residual {nn.Linear(9, 9)}, nn.ReLU(), nn.Linear(9, 4)}
	for _, rule in ipairs {'single', 'double'} do
		back(exported.quantized(m, x, {mode = 'static', rounding = rule}), x, whole)
		back(exported.quantized(m, x, {mode = 'static', rounding = rule, input = 'int8'}), x, whole)
	end
end)
