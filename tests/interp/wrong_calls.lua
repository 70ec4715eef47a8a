-- SPDX-License-Identifier: MIT
-- Wrong calls: each gives one line that names function, argument, wanted and got, and the process lives on.
local x, q = tensor{{1, 2, 3}, {4, 5, 6}}, tensor{{1, 2, 3}, {4, 5, 6}}:quantize 'int8/1'
local file = os.tmpname()
local function write(bytes)
	local f = assert(io.open(file, 'wb'))
	f:write(bytes)
	f:close()
	return file
end

-- call, words that the message must have
local wrong = {
	-- shapes
	{function() return x + tensor{1, 2} end, 'add', '%(2, 3%)', '%(2%)'},
	{function() return x:matmul(x) end, 'matmul', '%(2, 3%)'},
	{function() return x:view(5) end, 'view', '6 elements'},
	{function() return x:view(-1, -1) end, 'view', 'one %-1'},
	{function() return x:linear(tensor.zeros(4, 4)) end, 'linear', '%(4, 4%)'},
	{function() return tensor.cat{x, tensor{1}} end, 'cat', 'item 2'},
	{function() return q:view(6) end, 'view', 'quantized axis'},
	{function() return x:expand(3, 3) end, 'expand', '%(2, 3%)'},
	{function() return tensor{{1, 2}, {3}} end, 'tensor', 'lists of 2 items'},
	{function() return x[tensor{true, false, true}] end, 'mask', '%(2, 3%)'},
	-- dtypes
	{function() return x:to 'int7' end, 'to', "'int7'"},
	{function() return tensor.zeros{2, dtype = 'flot32'} end, 'dtype', "did you mean 'float32'"},
	{function() return x:linear(x:to 'int32') end, 'linear', 'int32'},
	{function() return q:to 'int32' end, 'to', 'int32'},
	{function() return tensor({1, 2, dtype = 'int8'}) + 300 end, 'add', '300'},
	{function() return tensor({300, dtype = 'int8'}) end, 'tensor', '300'},
	{function() return tensor({1.5, dtype = 'int8'}) end, 'tensor', '1.5'},
	-- options
	{function() return x:sum{axs = 1} end, 'sum', "did you mean 'axis'"},
	{function() return x:quantize{dtype = 'int8', blok = 3} end, 'quantize', "did you mean 'block'"},
	{function() return x:quantize 'int8@minmix' end, 'quantize', "minmix"},
	{function() return x:linear(x, nil, {act = 'rel'}) end, 'act', "'relu'"},
	{function() return x:matmul(x:t(), {out = 5}) end, 'out', 'number'},
	{function() return x:relu(5) end, 'relu', 'argument'},
	-- axes and indices
	{function() return x:sum(3) end, 'sum', '1 to 2', 'got 3'},
	{function() return x:sum(0) end, 'sum', 'got 0'},
	{function() return x[3] end, 'index', '1 to 2', 'got 3'},
	{function() return x[0] end, 'index', 'got 0'},
	{function() return x[{1, 2, 3}] end, 'index', 'at most 2'},
	{function() return x['1:2, x'] end, 'tensor', '1:2, x'},
	{function() return x:quantize 'int8/3' end, 'axis', 'got 3'},
	{function() return x:narrow(1, 1, 3) end, 'narrow', 'got 3'},
	{function() return x:select(1, 1.5) end, 'select', '1.5'},
	-- non-finite and impossible numbers
	{function() return quant.params(0 / 0, 1, 'int8') end, 'params', 'finite'},
	{function() return x:quantize{dtype = 'int8', scale = 1 / 0} end, 'scale', 'finite'},
	{function() return x:quantize{dtype = 'int8', scale = 0} end, 'scale', '> 0'},
	{function() return x:quantize{dtype = 'int8', axis = 1, scale = tensor{1, 0}} end, 'scale', '> 0'},
	-- sizes
	{function() return tensor.zeros(-1) end, 'tensor', 'got %-1'},
	{function() return tensor.zeros(1 << 62) end, '4611686018427387904'},
	{function() return tensor.zeros(1 << 31, 1 << 31, 4) end, 'below 2%^63'},
	{function() return tensor.zeros(1, 1, 1, 1, 1, 1, 1, 1, 1) end, 'at most 8'},
	{function() return tensor.zeros(1 << 45) end, 'out of memory'},
	{function() return tensor.zeros(0):max() end, 'max'},
	{function() return x:item() end, 'item', '%(2, 3%)'},
	-- what is not a tensor
	{function() return x:matmul(3) end, 'matmul', 'number'},
	{function() return tensor.cat{1, 2} end, 'cat', 'number'},
	{function() return x < x end, 'a:lt'},
	{function() return x:nosuch() end, "no method 'nosuch'"},
	{function() return tensor.nosuch(3) end, 'nosuch'},
	{function() return x:quantize(false) end, 'spec'},
	{function() return q:quantize 'int8' end, 'already quantized'},
	{function() return x:requantize 'int8' end, 'requantize', 'plain'},
	-- files
	{function() return tensor.load '/nonexistent/x.npy' end, 'x.npy', 'No such file'},
	{function() return tensor.load(write('\x93NUMPY\1\0') .. '') end, ''},
	{function() return tensor.load 'x.unknown' end, 'x.unknown'},
	{function() os.rename(write '\x93NUMPY\1\0v\0{', file .. '.npy') return tensor.load(file .. '.npy') end, 'npy'},
	{function() os.rename(write(('<I8'):pack(1 << 61)), file .. '.safetensors') return tensor.load(file .. '.safetensors') end,
		'safetensors'},
	{function() return tensor.save('/nonexistent/x.npy', x) end, 'No such file'},
	{function() return tensor.save('x.npy', q) end, 'safetensors'},
	-- writing
	{function() x:expand(2, 2, 3):add_(1) end, 'distinct'},
	{function() x[1] = tensor{1, 2} end, 'index', '%(2%)'},
	{function() tensor({1, dtype = 'int8'})[1] = 2.5 end, 'int8', '2.5'},
}

for i, case in ipairs(wrong) do
	local ok, message = pcall(case[1])
	message = tostring(message)
	describe('wrong call ' .. i, function()
		it('is refused in one line', function()
			assert(not ok, 'nothing was raised')
			assert(not message:find '\n', message)
			for k = 2, #case do assert(message:find(case[k]), ('%q lacks %q'):format(message, case[k])) end
		end)
	end)
end
os.remove(file)
os.remove(file .. '.npy')
os.remove(file .. '.safetensors')
print(#wrong >= 40, x:sum():item())  --> true 21.0

it('what an operator or an index in brackets refuses names its line', function()
	for line, code in pairs {
		['code:1: maskedselect: wanted a bool mask of shape (3) or of its leading axes, got bool(4)'] = 'return tensor.ones(3)[tensor.ones(4):gt(0)]',
		['code:2: maskedassign: wanted a bool mask of shape (3) or of its leading axes, got bool(4)'] = 'local x = tensor.ones(3)\nx[tensor.ones(4):gt(0)] = 1',
		['code:2: bnot: operand 1: wanted plain integers or bool, got float32(1)'] = 'local x = tensor{1}\nlocal y = ~x',
	} do
		local ok, message = pcall(assert(load(code, '=code')))
		assert(not ok and message == line, message)
	end
end)
