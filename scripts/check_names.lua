-- SPDX-License-Identifier: MIT
-- Nothing asks a quantization scheme for its name: paths, forms and exporters ask what its codes can do (struct ql_scheme; in Lua
-- spec.affine, monotone, zero_code, offset, min, max), so that a new scheme is right everywhere. Finds comparisons (==, ~=, strcmp) and
-- table keys with a scheme's name in tensor, quant, nn, gpu, interp outside of quant/schemes. Run in the repository root; exit status 1
-- when something is found that EXCEPTIONS does not list.
-- The same of dtypes: code asks for kind, bits and digits (tensor/dtype.h; in Lua quant.dtype). Outside of tensor/dtype* none is compared by
-- name or is the key of a table, but for the types of elements that C loops are made for (C_TYPES) in C, and those of arithmetic in Lua.
local EXCEPTIONS = { -- file, a text of the line, and why the name is needed there
	{'nn/graph/forms/conv2d.lua', "a.scheme == 'binary'", 'products of bits and 16-bit codes have no kernel'},
	{'interp/bench/hw_recommend.lua', "scheme == 'asymmetric'", 'the dtype in which each tried scheme is usual'},
	{'quant/ranges/quantize.c', 'spec->scale_tensor->dtype == QL_float16', 'scales of blocks are given in the dtype that they are kept in'},
	{'interp/bind/spec_read.c', 'strcmp(key, "minimum")', 'a field of specs'},
	{'quant/ranges/stored.c', 't->dtype == QL_float16', 'scales of blocks are given in the dtype that they are kept in'},
	{'nn/export/decode.lua', "scale:dtype() == 'float16'", 'the bits of scales are read by the format that they are stored in'},
	{'nn/export/decode.lua', "scale:dtype() == 'float8_e8m0'", 'the bits of scales are read by the format that they are stored in'},
	{'nn/export/interface.lua', "dtype == 'int8'", 'a word of the option interface='},
	{'nn/export/ops/recurrent.lua', "node.attrs.states == 'int8'", 'a word of the attribute states'},
	{'nn/onnx/ops/resize.lua', "'asymmetric'", 'a mode of coordinates of ONNX'},
	{'nn/data/folder.lua', "t:dtype() ~= 'uint8'", 'what image files hold'},
	{'nn/data/dataset_idx.lua', "t:dtype() ~= 'uint8'", 'what the files of these data sets hold'},
	{'interp/repl/workspace.lua', "bytes:dtype() ~= 'uint8'", 'a string is stored as bytes'},
	{'interp/prelude/habits.lua', "x:to 'b", "words of other libraries and what stands for them here"},
	{'interp/prelude/habits.lua', "bool = 'x ~= nil'", "words of other libraries and what stands for them here"},
}

local names = {}
for name in io.lines 'quant/schemes.def' do names[#names + 1] = name:match '^X%(([%w_]+)%)' end

local dtypes = {}
for line in io.lines 'tensor/dtype.def' do dtypes[#dtypes + 1] = line:match '^X%(([%w_]+),' end
local function set(words)
	local found = {}
	for word in words:gmatch '%S+' do found[word] = true end
	return found
end
local C_TYPES = set 'float32 float64 int8 uint8 int16 uint16 int32 int64'
local LUA_TYPES = set 'float32 float64'

-- Most lines have none of these words; only the others are matched with patterns.
local words = {}
for _, name in ipairs(names) do words[name] = true end
for _, name in ipairs(dtypes) do words[name], words['QL_' .. name] = true, true end
local function has_word(line)
	for word in line:gmatch '[%w_]+' do
		if words[word] then return true end
	end
	return false
end

local checked, broken = 0, 0
local function is_exception(file, line)
	for _, e in ipairs(EXCEPTIONS) do
		if e[1] == file and line:find(e[2], 1, true) then
			e.used = true
			return true
		end
	end
end

local function asks(line, name)
	local quoted = "['\"]" .. name .. "['\"]"
	line = line:gsub('dtype[%(%)]*%s*[=~]=%s*' .. quoted, ''):gsub('kind%s*[=~]=%s*' .. quoted, '') -- a dtype or kind of dtype of that name
	return line:find('[=~]=%s*' .. quoted) or line:find(quoted .. '%s*[=~]=') or line:find('%[' .. quoted .. '%]%s*=')
		or line:find('strcmp%(.*' .. quoted) or line:find('scheme_by_name%(' .. quoted)
end

-- The dtype that a line compares with or has as a key; nil: none.
local function asked_dtype(line, in_lua)
	for _, name in ipairs(dtypes) do
		local id, quoted = '%f[%w_]QL_' .. name .. '%f[^%w_]', "['\"]" .. name .. "['\"]"
		if in_lua and not LUA_TYPES[name] then
			local rest = line:gsub('kind%s*[=~]=%s*' .. quoted, ''):gsub('scheme%s*[=~]=%s*' .. quoted, '')
			if rest:find('[=~]=%s*' .. quoted) or rest:find(quoted .. '%s*[=~]=') or rest:find('%[' .. quoted .. '%]%s*=')
				or rest:find('[{,]%s*' .. name .. '%s*=%s') or rest:find('find%s*%(?' .. quoted) then return name end
		elseif not in_lua and not C_TYPES[name] then
			if line:find('[=!]=%s*' .. id) or line:find(id .. '%s*[=!]=') or line:find('case%s+' .. id) or line:find('%[' .. id .. '%s*%]') then return name end
		end
	end
end

local function check_dtype(file, number, line)
	local in_lua = file:find '%.lua$' ~= nil
	if file:find '^tensor/dtype' or in_lua and line:find '^%s*%-%-' then return end
	local name = asked_dtype(line, in_lua)
	if not name then return end
	checked = checked + 1
	if is_exception(file, line) then return end
	broken = broken + 1
	print(("%s:%d: asks for the dtype '%s' by name"):format(file, number, name))
end

local function check_schemes(file, number, line)
	for _, name in ipairs(names) do
		if asks(line, name) then
			checked = checked + 1
			if not is_exception(file, line) then
				broken = broken + 1
				print(("%s:%d: asks for the scheme '%s' by name"):format(file, number, name))
			end
		end
	end
end

local find = "find tensor quant nn gpu interp \\( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.lua' \\) -not -path 'quant/schemes/*'"
for file in io.popen(find):lines() do
	local number = 0
	for line in io.lines(file) do
		number = number + 1
		if has_word(line) then
			check_dtype(file, number, line)
			check_schemes(file, number, line)
		end
	end
end
for _, e in ipairs(EXCEPTIONS) do
	checked = checked + 1
	if not e.used then
		broken = broken + 1
		print(('check_names: %s: the exception is not needed any more: %s'):format(e[1], e[2]))
	end
end
print(('%d rules checked, %d broken'):format(checked, broken))
os.exit(broken == 0 and checked > 0)
