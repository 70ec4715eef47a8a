-- SPDX-License-Identifier: MIT
-- nn.Upsample: images (N, C, H, W) or (N, C, L) of another size.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

local MODES = {nearest = 'nearest', ['nearest-exact'] = 'nearest', linear = 'bilinear', bilinear = 'bilinear', cubic = 'bicubic', bicubic = 'bicubic',
	area = 'area'}

return module.define(nn, {
	name = 'Upsample',
	usage = "nn.Upsample(size, {mode='nearest'})  nn.Upsample{scale=2, mode='bilinear', aligncorners=true}",
	text = [[x:resize as a module: images (N, C, H, W) of the height and width size, a number or {height, width}, or scale times as large. mode
is 'nearest' (default), 'nearest-exact', 'bilinear' (or 'linear'), 'bicubic' (or 'cubic') or 'area'. aligncorners=true matches the centres of corner pixels. x may be (N, C, L):
then size and scale are those of L.]],
	options = {{'scale', 'number', 'instead of size: sizes are multiplied by it and rounded down'}, {'mode', 'text', 'how pixels are mixed (default: nearest)'},
		{'aligncorners', 'true or false', 'match the centres of corner pixels (default: false)'}}, positional = {'scale', 'mode', 'aligncorners'},
	example = "print(nn.Upsample{scale=2}(tensor.ones(1, 3, 4, 5)):size())  --> 1 3 8 10",
	init = function(self, options, size)
		local mode = options.mode or 'nearest'
		if not MODES[mode] then base.fail("Upsample: mode: wanted nearest, nearest-exact, bilinear, bicubic or area, got '%.40s'", mode) end
		if (size == nil) == (options.scale == nil) then base.fail('Upsample: wanted size or scale, got %s', size and 'both' or 'none of them') end
		self.size = size ~= nil and module.window('Upsample', 'size', size, 1) or false
		self.scale = options.scale and module.number('Upsample', 'scale', options.scale, 2.0 ^ -30, 2.0 ^ 30) or false
		self.mode, self.aligncorners = mode, options.aligncorners or false
		if self.aligncorners and MODES[mode] ~= 'bilinear' and MODES[mode] ~= 'bicubic' then
			base.fail('Upsample: aligncorners: wanted mode bilinear or bicubic, got %s', mode)
		end
	end,
	integer = true,
	sites = {main = {'input'}, resize1 = {'input'}},
	forward = function(self, given)
		local line = given:dim() == 3
		local out, x
		if MODES[self.mode] == 'nearest' then x = module.input(self, given) else out, x = module.site(self, line and 'resize1' or 'main', given) end
		local exact = self.mode == 'nearest-exact'
		local o = {mode = MODES[self.mode], coords = exact and 'half_pixel' or self.aligncorners and 'align_corners' or nil,
			rounding = exact and 'round_prefer_ceil' or nil, size = self.size or nil, scale = self.scale or nil, out = out}
		if not line then return x:resize(o) end
		if o.size then o.size = {1, type(o.size) == 'table' and o.size[#o.size] or o.size} else o.scale, o.scalew = 1, o.scale end
		return x:unsqueeze(3):resize(o):squeeze(3)
	end,
	describe = function(self)
		local size = type(self.size) == 'table' and ('{%d,%d}'):format(self.size[1], self.size[2]) or self.size and tostring(self.size)
		return ('%s, mode=%s%s'):format(size or ('scale=%g'):format(self.scale), self.mode, self.aligncorners and ', aligncorners=true' or '')
	end,
})
