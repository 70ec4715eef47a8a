-- SPDX-License-Identifier: MIT
-- Nothing asks a quantization scheme for its name: paths, forms and exporters ask what its codes can do (struct ql_scheme; in Lua
-- spec.affine, monotone, zero_code, offset, min, max), so that a new scheme is right everywhere. Finds comparisons (==, ~=, strcmp) and
-- table keys with a scheme's name in tensor, quant, nn, gpu, interp outside of quant/schemes. Run in the repository root; exit status 1
-- when something is found that EXCEPTIONS does not list.
local EXCEPTIONS = { -- file, a text of the line, and why the name is needed there
	{'nn/graph/forms/conv2d.lua', "a.scheme == 'binary'", 'products of bits and 16-bit codes have no kernel'},
	{'interp/bench/hw_recommend.lua', "scheme == 'asymmetric'", 'the dtype in which each tried scheme is usual'},
}

local names = {}
for name in io.lines 'quant/schemes.def' do names[#names + 1] = name:match '^X%(([%w_]+)%)' end

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

local find = "find tensor quant nn gpu interp \\( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.lua' \\) -not -path 'quant/schemes/*'"
for file in io.popen(find):lines() do
	local number = 0
	for line in io.lines(file) do
		number = number + 1
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
