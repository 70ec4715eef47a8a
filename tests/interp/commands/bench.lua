-- SPDX-License-Identifier: MIT
-- quoll bench: prints, saves and draws; wrong calls.
local function run(arguments)
	local pipe = io.popen(('exec "/proc/$PPID/exe" bench %s 2>&1'):format(arguments))
	local text = pipe:read 'a'
	local _, _, code = pipe:close()
	return text, code
end

it('prints, saves and draws', function()
	local base = os.tmpname()
	local text, code = run(('dequantize limits --time 0.01 --threads=1 --json %s.json --out %s.csv --plot %s.svg'):format(base, base, base))
	assert(code == 0, text)
	assert(text:find '^family' and text:find 'dequantize' and text:find 'limits', text)
	local r = bench.load(base .. '.json')
	assert(r == bench.load(base .. '.csv') and #r:where {family = 'limits'} >= 6 and r:where {family = 'dequantize'}[1].share > 0)
	local picture = io.open(base .. '.svg'):read 'a'
	assert(picture:find '<svg' and #picture > 2000)
	os.execute(('rm -f %s %s.json %s.csv %s.svg'):format(base, base, base, base))
	text, code = run 'kernels --time 0.00001'
	assert(code == 0 and text:find 'gemm_i8' and text:find 'ratio', text)
end)

it('wrong calls', function()
	for arguments, wanted in pairs {['int9'] = "bench: rows: item 1: wanted one of limits", ['--threads x'] = "bench: --threads: wanted numbers with commas between, got 'x'",
		['--time 0'] = "bench: --time: wanted seconds up to 3600, got '0'", ['--thread 2'] = "no such option; did you mean '--threads'?",
		['kernels x'] = "bench: wanted nothing after kernels, got 'x'", ['kernels --plot x.svg'] = 'bench: kernels: takes --time, --out and --json',
		['limits --plot /tmp/x.svg --time 0.01 --threads 1'] = 'bench: --plot: no row has a share of a limit', ['--out'] = 'bench: --out: wanted a value, got none',
		['limits --json x --time 0.01'] = "bench: --json: wanted a name that ends in .json, got 'x'"} do
		local text, code = run(arguments)
		assert(code ~= 0 and text:find(wanted:gsub('^bench: rows', 'machine: rows'), 1, true), arguments .. ': ' .. text)
	end
end)
