-- SPDX-License-Identifier: MIT
-- Who may include or import whom: run in the repository root, exit status 1 when a rule is broken. One rule for C and Lua: a file
-- uses its own folder, the folders to its left in ORDER, and the ground (interp/prelude, for Lua only: C of it is in its place).
-- Folders in one row belong together. A folder that is not named belongs to the folder above it.
local ORDER = {
	{'tensor/vmath'}, {'tensor', 'tensor/kernels'}, {'tensor/loops'}, {'tensor/gemm'}, {'tensor/conv'}, {'tensor/autograd'}, {'tensor/ops'},
	{'tensor/io'},
	{'quant', 'quant/schemes'}, {'quant/ranges', 'quant/observers'}, {'quant/methods'}, {'quant/integer'}, {'quant/ops'}, {'quant/paths'},
	{'nn'}, {'nn/ops'}, {'nn/base'}, {'nn/modules'}, {'nn/packings'}, {'nn/checkpoints'}, {'nn/optim'}, {'nn/tokenizers'}, {'nn/data'}, {'nn/quantize'}, {'nn/graph'},
	{'nn/export'}, {'nn/onnx'}, {'nn/tflite'}, {'nn/load'},
	{'gpu'},
	{'interp/prelude'}, {'interp/host'}, {'interp/bind'}, {'interp/input'}, {'interp/trace'}, {'interp/plot'}, {'interp/help'},
	{'interp/notebook'}, {'interp/repl'}, {'interp/jupyter'}, {'interp/doc'}, {'interp/sweep'}, {'interp/bench'}, {'interp/doctest'},
	{'interp/commands'}, {'interp'},
}
-- Files that put the parts of their layer together are at its right end.
local TOP = {['quant/quant.c'] = 'quant/paths', ['nn/nn.c'] = 'nn/ops', ['quant/library.lua'] = 'quant/paths', ['nn/library.lua'] = 'nn/export'}
local GROUND = 'interp/prelude'
local only = { -- what a line says: the only files that may say it
	{'#include [<"]lua[%w]*%.h', '^interp/', 'lua.h'},
	{'#include [<"]plplot', '^interp/plot/', 'plplot'},
	{'#include [<"]cuda', '^gpu/', 'CUDA'},
	{'#include [<"]zmq', '^interp/jupyter/', 'libzmq'},
	{'#include [<"]sqlite3', '^interp/sweep/', 'SQLite'},
	{'libpcre2', '^nn/regex%.c$', 'PCRE2'},
	{'libutf8proc', '^nn/unicode%.c$', 'utf8proc'},
	{'#include <linux/futex%.h>', '^tensor/team%.c$', 'futex'},
	{'#pragma omp', '^$', 'OpenMP: threads of loops are those of tensor/team.c'},
	{'#include <pb_', '^tensor/io/protobuf%.c$', 'nanopb'},
	{'cblas_', '^tensor/kernels/gemm_f32_blas%.c$', 'BLAS'},
	{'[^%w_]abort%(', '^tests/', 'abort()'},
	{'[^%w_]exit%(', '^interp/', 'exit()'},
}

local rank, layers = {}, {tensor = 1, quant = 2, nn = 3, gpu = 4, interp = 5}
for i, row in ipairs(ORDER) do
	for _, folder in ipairs(row) do rank[folder] = i end
end

local function rank_of(file)
	if TOP[file] then return rank[TOP[file]], TOP[file] end
	local folder = file:match '^(.*)/[^/]*$'
	while folder and not rank[folder] do folder = folder:match '^(.*)/[^/]*$' end
	return rank[folder], folder
end

-- What a line of the file uses of this project, as a path; nil: nothing.
local function used(file, line)
	if file:find '%.lua$' then return line:match "import[ (]+'([%w_/]+)'" end
	local path = line:match '^%s*#%s*include "([^"]+)"'
	return path and not path:find '%.def$' and path or nil
end

local checked, broken = 0, 0
local function check(good, ...)
	checked = checked + 1
	if not good then
		broken = broken + 1
		print(string.format(...))
	end
end

local function check_use(file, number, path)
	local mine, my_folder = rank_of(file)
	local theirs, folder = rank_of(path)
	if not theirs then return check(false, '%s:%d: %s is in no folder of check_layers.lua', file, number, path) end
	if file:find '%.lua$' and folder == GROUND then return check(true) end
	if my_folder:find '^interp' and (path == 'gpu/abi.h' or path == 'gpu/device.h') then return check(true) end
	if layers[folder:match '^%a+'] == layers.gpu or layers[my_folder:match '^%a+'] == layers.gpu then
		return check(folder == my_folder or my_folder == 'gpu' and theirs < rank.nn, '%s:%d: %s must not use %s', file, number, my_folder, path)
	end
	check(theirs <= mine, '%s:%d: %s is to the left of %s and must not use it', file, number, my_folder, path)
end

local find = "find tensor quant nn gpu interp -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.lua'"
for file in io.popen(find):lines() do
	local number = 0
	for line in io.lines(file) do
		number = number + 1
		local path = used(file, line)
		if path then check_use(file, number, path) end
		if not file:find '%.lua$' then
			for _, rule in ipairs(only) do
				if line:find(rule[1]) then check(file:find(rule[2]), '%s:%d: %s is not allowed here', file, number, rule[3]) end
			end
		end
	end
end
print(('%d rules checked, %d broken'):format(checked, broken))
os.exit(broken == 0 and checked > 0)
