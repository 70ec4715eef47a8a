-- SPDX-License-Identifier: MIT
-- labels: quick
-- tensor.load{names=}: a choice of the tensors of a file, in its order.
local function refused(pattern, ...)
	local ok, message = pcall(tensor.load, ...)
	assert(not ok and message:find(pattern, 1, true), message)
end

for _, ending in ipairs {'.safetensors', '.npz'} do
	local file = os.tmpname() .. ending
	tensor.save(file, {a=tensor{1, 2}, b=tensor{{3}}, c=tensor{4}})
	local list = {}
	for name, t in pairs(tensor.load(file, {names={'c', 'a'}})) do list[#list + 1] = name .. t:nelem() end
	assert(table.concat(list, ' ') == 'a2 c1' and #tensor.load(file, {names={}}) == 0)
	assert(tensor.load(file, {names={'b'}, map=ending ~= '.npz'}).b:item() == 3)
	refused("wanted a tensor 'd', got none", file, {names={'a', 'd'}})
	refused('names: wanted a list of texts, got 1', file, {names={1}})
	refused('names: wanted list', file, {names='a'})
	os.remove(file)
end
local one = os.tmpname() .. '.npy'
tensor.save(one, tensor{1})
refused('names: wanted a file of named tensors', one, {names={'a'}})
os.remove(one)
