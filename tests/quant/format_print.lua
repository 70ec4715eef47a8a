-- SPDX-License-Identifier: MIT
-- How tensors of formats print: by the format's name, with the numbers that their scales stand for.
-- labels: once
local x = tensor.ones(2, 64) * 6
local function header(t) return (tostring(t):gsub('\n.*', '')) end
print(header(x:quantize 'mxfp4'))  --> mxfp4(2, 64), blocks of 32 on axis 2, scale 1, 68 B, 100.00 % at the ends
print(header((x / 6):quantize 'nf4:32'))  --> nf4(2, 64), blocks of 32 on axis 2, scale 1, 80 B, 100.00 % at the ends
print(header(x:quantize 'fp8_e4m3/1'))  --> fp8_e4m3(2, 64), axis 1, scale 0.01339, 136 B, 100.00 % at the ends
print(header(tensor{{-1, 0, 0, 1}}:quantize 'nf4:4'))  --> nf4(1, 4), blocks of 4 on axis 2, scale 1, 6 B, 50.00 % at the ends
print(header(tensor{{2, 17}}:quantize 'uint4:2+min'))  --> uint4(1, 2) minimum, blocks of 2 on axis 2, scale 1, minimum 2...

it('the scale of nvfp4 prints as numbers, not as codes', function()
	local q = x:quantize 'nvfp4'
	assert(header(q):find 'scale 1,', header(q))
	local text = tostring(q:qparams())
	assert(text:find 'scale      fp8_e4m3%(2, 4%), scale 0.002232' or text:find 'scale      fp8_e4m3%(2, 4%) 1 1 1', text)
	assert(text:find 'format     nvfp4', text)
	assert(q:dtype() == 'uint4' and tostring(q:spec()) == 'nvfp4' and q:explain():find 'quantize of float32')
	assert(tostring(x:quantize('int4:32+min'):qparams()):find 'minimum    float16%(2, 2%) 6 6')
	assert(tostring(x:quantize('nf4:32:2'):qparams()):find 'scale      dynamic8%(2, 2%), blocks of 2 on axis 2 6 6', tostring(x:quantize('nf4:32:2'):qparams()))
end)

it('lists of variables name the format', function()
	local lines, old = {}, print
	_G.formatted = x:quantize 'nf4:32'
	_G.print = function(...) lines[#lines + 1] = table.concat({...}, ' ') end
	pcall(who)
	_G.print, _G.formatted = old, nil
	local text = table.concat(lines, '\n')
	assert(text == '' or text:find 'formatted%s+uint4%s+2x64%s+nf4:32', text)
end)

it('the report of formats', function()
	local r = quant.formats()
	assert(#r >= 15 and quant.formats('mxfp4').bits == 4.25 and quant.formats('nvfp4').bits == 4.5 and quant.formats('nf4').bits == 4.5)
	for i = 1, #r do
		local f = r[i]
		local q = tensor.randn(8, 256):quantize(f.name)
		assert(q:dtype() == f.storage and tostring(q:spec()) == f.name, f.name)
		assert(math.abs(8 * tensor.randn(512, 1024):quantize(f.name):nbytes() / 2 ^ 19 - f.bits) < 0.01, f.name)
	end
	assert(select(2, pcall(quant.formats, 'nf5')):find "did you mean 'nf4'")
	assert(select(2, pcall(quant.formats, 4)):find 'wanted the name of a format or nothing, got ')
end)
