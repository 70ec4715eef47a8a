-- SPDX-License-Identifier: MIT
-- Printed tensors: no line is longer than there are columns, and what is left out is told.
local prompt = dofile 'tests/tools/prompt.lua'

local function lines_of(text)
	local lines = {}
	for line in text:gmatch '[^\n]+' do lines[#lines + 1] = line end
	return lines
end

local function check_width(text, width)
	for _, line in ipairs(lines_of(text)) do
		assert(utf8.len(line) <= width, ('%d columns: %s'):format(utf8.len(line), line))
	end
	return text
end

-- Columns that stand before and behind the ellipsis of each line behind the header.
local function columns(text)
	local list = lines_of(text)
	local head, tail
	for i = 2, #list do
		local left, right = list[i]:match '^(.*)…(.*)$'
		local _, a = left:gsub('%S+', '')
		local _, b = right:gsub('%S+', '')
		assert(not head or a == head and b == tail, text)
		head, tail = a, b
	end
	return head, tail
end

describe('width: 80 where there is no terminal', function()
	it('the last axis shows the columns of both ends that have room', function()
		local x = tensor.arange(1, 200):view(2, 100)
		print(check_width(tostring(x), 80))  --> int64(2, 100)
		-->   1    2    3    4    5    6    7    8  …   94   95   96   97   98   99  100
		--> 101  102  103  104  105  106  107  108  …  194  195  196  197  198  199  200
		print(columns(tostring(x)))  --> 8 7
		assert(not tostring(tensor.arange(1, 32):view(2, 16)):find '…', '16 columns of 5 are 80')
		print(columns(tostring(tensor.arange(1, 34):view(2, 17) + 1000)))  --> 6 6
	end)
	it('more than 1000 elements: at most three of both ends', function()
		local text = check_width(tostring(tensor.zeros(2, 1000)), 80)
		print(columns(text))  --> 3 3
		print((check_width(tostring(tensor.zeros(300, 7)), 80)))  --> float32(300, 7)
		--> 0 0 0 0 0 0 0
		--> 0 0 0 0 0 0 0
		--> 0 0 0 0 0 0 0
		--> …
		--> 0 0 0 0 0 0 0
		--> 0 0 0 0 0 0 0
		--> 0 0 0 0 0 0 0
	end)
	it('one axis is broken into lines, behind a header that leaves no room in a line of its own', function()
		check_width(tostring(tensor.arange(1, 40)), 80)
		assert(tostring(tensor.arange(1, 17)):find '^int64%(17%)   1   2')
		assert(tostring(tensor.arange(1, 18)):find '^int64%(18%)\n   1   2')
	end)
	it('three axes', function()
		local text = check_width(tostring(tensor.zeros(2, 2, 60)), 80)
		assert(text:find('[2, :, :]\n  0  0', 1, true) and text:find '…')
	end)
	it('more than two axes: at most 40 lines, with the blocks of both ends', function()
		local function heads(x)
			local list = {}
			for head in tostring(x):gmatch '%[[%d, ]-, :, :%]' do list[#list + 1] = head:match '%[(.*), :, :%]' end
			return table.concat(list, '; '), select(2, tostring(x):gsub('\n', '')) + 1
		end
		print(heads(tensor.zeros(64, 64, 3, 3)))  --> 1, 1; 1, 64; 64, 1; 64, 64 20
		print(heads(tensor.zeros(3, 16, 16)))     --> 1; 2; 3 25
		print(heads(tensor.zeros(10, 12, 8)))     --> 1; 10 28
		print(heads(tensor.zeros(8, 1, 3, 3)))    --> 1, 1; 2, 1; 3, 1; 4, 1; 5, 1; 6, 1; 7, 1; 8, 1 33
		print(heads(tensor.zeros(20, 1, 50)))     --> 1; 2; 3; 18; 19; 20 14
	end)
	it('any number of axes: at most 40 lines', function()
		tensor.seed(1)
		local sizes = {1, 2, 3, 7, 8, 40}
		for _ = 1, 100 do
			local shape, n = {}, 1
			for d = 1, math.random(3, 8) do
				shape[d] = sizes[math.random(n > 20000 and 2 or 6)]
				n = n * shape[d]
			end
			local text = tostring(tensor.zeros(shape))
			assert(select(2, text:gsub('\n', '')) < 40 and text:find '\n  [0 ]', text)
		end
	end)
	it('every shape and dtype', function()
		tensor.seed(3)
		for _, shape in ipairs {{3, 30}, {40, 40}, {1, 5, 50}, {90}, {2000}, {3, 1}} do
			check_width(tostring(tensor.randn(shape) * 1e-9), 80)
			check_width(tostring(tensor.randn(shape):gt(0)), 80)
			check_width(tostring(tensor.randn(shape):quantize {dtype = 'int8', axis = 1, scheme = 'asymmetric'}), 80)
		end
	end)
end)

describe('%set lines', function()
	it('is the limit of more than two axes, 0 none', function()
		local function count(setting)
			return select(2, prompt.session(('%%set lines %s\ntensor.zeros(10, 12, 8)'):format(setting)):gsub('\n  [0 ]+%f[\n]', ''))
		end
		assert(count '0' == 120 and count '40' == 24 and count '1' == 2, count '1')
	end)
end)
describe('%set width', function()
	it('is the width of tensors', function()
		prompt.check('%set width 30\ntensor.arange(1, 200):view(2, 100)',
			'Out[2]:\nint64(2, 100)\n    1    2    3  …   99  100\n  101  102  103  …  199  200\n')
		prompt.check('%set width 20\ntensor.zeros(1, 3) + 1.5e-9', 'Out[2]:\nfloat32(1, 3)\n  1.5000e-09  …\n')
		for _, width in ipairs {20, 33, 50, 200} do
			check_width(prompt.session(('%%set width %d\ntensor.randn(4, 60):quantize "int8/1"'):format(width)), width)
		end
	end)
	it('cuts the header behind a word', function()
		local out = prompt.session "%set width 40\ntensor.randn(4, 2):quantize 'int8/1'"
		assert(out:find '\nint8%(4, 2%) symmetric, axis 1 …\n', out)
	end)
end)

it('codes at the ends of the range are not called saturated', function()
	local x = tensor {-2, 1, 2}
	local q = x:quantize 'int8'
	assert(tostring(q):find(', 66.67 % at the ends', 1, true), tostring(q))
	print(x:error(q).clipped)  --> 0.0
	print(x:error(x:quantize {dtype = 'int8', scale = 0.01}).clipped)  --> 66.666666666667
end)

-- What a script prints into a pipe, with COLUMNS in its environment.
local function piped(columns, code)
	local pipe = io.popen(('COLUMNS=%s /proc/$PPID/exe -e "%s" 2>&1'):format(columns, code))
	local text = pipe:read 'a'
	pipe:close()
	return text
end
describe('COLUMNS in scripts', function()
	local wide = [[local r = {columns={}, {}} for i = 1, 2 do r[i] = {} for k = 1, 20 do r[i]['column' .. k] = i * k end end print(report(r)) print(tensor.arange(1, 60):view(2, 30))]]
	it('tables and tensors take as many', function()
		local last = 0
		for _, columns in ipairs {60, 100, 200} do
			local most = 0
			for line in piped(columns, wide):gmatch '[^\n]+' do most = math.max(most, utf8.len(line)) end
			assert(most <= columns and most > last and most > columns - 20, most)
			last = most
		end
	end)
	it('what makes no sense is 80', function()
		for _, columns in ipairs {'0', '-5', '19', '80x', "''", '99999999999999999999'} do
			for line in piped(columns, wide):gmatch '[^\n]+' do assert(utf8.len(line) <= 80) end
		end
	end)
end)
