-- SPDX-License-Identifier: MIT
-- Who may include whom (HACKING.md): run in the repository root, exit status 1 when a rule is broken.
local allowed = { -- folder: what its files may include of this project (Lua patterns)
	tensor = {'^tensor/'},
	quant = {'^tensor/', '^quant/'},
	nn = {'^tensor/', '^quant/', '^nn/'},
	gpu = {'^tensor/', '^quant/', '^gpu/'},
	interp = {'^tensor/', '^quant/', '^nn/', '^interp/', '^gpu/abi%.h$'},
}
local only = { -- what a line says: the only files that may say it
	{'#include [<"]lua[%w]*%.h', '^interp/', 'lua.h'},
	{'#include [<"]plplot', '^interp/plot/', 'plplot'},
	{'#include [<"]cuda', '^gpu/', 'CUDA'},
	{'#include [<"]zmq', '^interp/jupyter/', 'libzmq'},
	{'#include [<"]sqlite3', '^interp/sweep/', 'SQLite'},
	{'#include <omp%.h>', '^tensor/team%.c$', 'omp.h'},
	{'#pragma omp parallel', '^tensor/team%.c$', 'a parallel region'},
	{'cblas_', '^tensor/kernels/gemm_f32_blas%.c$', 'BLAS'},
	{'[^%w_]abort%(', '^tests/', 'abort()'},
	{'[^%w_]exit%(', '^interp/', 'exit()'},
}
local kinds = {"*.c", "*.h", "*.cu"}

local function any(patterns, text)
	for _, pattern in ipairs(patterns) do
		if text:find(pattern) then return true end
	end
end

local checked, broken = 0, 0
local function check(good, file, number, text)
	checked = checked + 1
	if not good then
		broken = broken + 1
		print(('%s:%d: %s'):format(file, number, text))
	end
end

for folder, patterns in pairs(allowed) do
	local names = "-name '" .. table.concat(kinds, "' -o -name '") .. "'"
	for file in io.popen('find ' .. folder .. ' ' .. names .. ' 2>/dev/null'):lines() do
		local number = 0
		for line in io.lines(file) do
			number = number + 1
			local include = line:match '^%s*#%s*include "([^"]+)"'
			if include then
				check(any(patterns, include), file, number, folder .. '/ must not include ' .. include)
			end
			for _, rule in ipairs(only) do
				if line:find(rule[1]) then
					check(file:find(rule[2]), file, number, rule[3] .. ' is not allowed here')
				end
			end
		end
	end
end
print(('%d rules checked, %d broken'):format(checked, broken))
os.exit(broken == 0 and checked > 0)
