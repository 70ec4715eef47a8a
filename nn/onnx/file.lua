-- SPDX-License-Identifier: MIT
-- An ONNX file: its model as tables, its tensors. Errors name the file.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail = base.fail

local file = {}
file.__index = file

local function check(self, value, message)
	if value == nil then fail("load: '%s': %s", self.path, message) end
	return value
end

function file.open(path)
	local self = setmetatable({path = path, others = {}}, file)
	self.box = check(self, internal.onnx_open(base.path(path)))
	self.model = check(self, internal.onnx_model(self.box))
	if not self.model.graph or not self.model.ir_version then self:fail 'wanted a model of ONNX, got another file' end
	return self
end

function file:fail(...) fail("load: '%s': %s", self.path, string.format(...)) end

---------------------------------------------------------------- external data

-- The place of external data: {location=, offset=, length=}.
local function place_of(self, t)
	local place = {}
	for _, pair in ipairs(t.external_data) do place[pair.key or ''] = pair.value end
	local location = place.location
	if not location or location == '' then self:fail("tensor '%s': external data: wanted a location, got none", t.name or '') end
	if location:find '^/' or location:find '^%a:' or location:find '\\' or ('/' .. location .. '/'):find '/%.%./' or location:find '%z' then
		self:fail("tensor '%s': external data: wanted a file in the model's folder, got '%.80s'", t.name or '', location)
	end
	return location, math.tointeger(tonumber(place.offset or 0)), math.tointeger(tonumber(place.length or -1))
end

local function external(self, t)
	local location, offset, length = place_of(self, t)
	local path = self.path:match '^(.*/)' or ''
	if not offset or not length or offset < 0 or length < -1 then
		self:fail("tensor '%s': external data: wanted offset and length of 0 and up, got others", t.name or '')
	end
	if not self.others[location] then
		local box, message = internal.onnx_open(base.path(path .. location), base.path(path == '' and '.' or path))
		if not box then self:fail("tensor '%s': external data '%.80s': %s", t.name or '', location, message) end
		self.others[location] = box
	end
	return internal.onnx_elements(self.others[location], offset, length, t.data_type or 0, t.dims or {})
end

-- The tensor of a TensorProto.
function file:tensor(t)
	local value, message
	if t.external_data and t.data_location == 1 then
		value, message = external(self, t)
	else
		value, message = internal.onnx_tensor(self.box, t.offset, t.size)
	end
	if not value then self:fail("tensor '%s': %s", t.name or '', message) end
	return value
end

return file
