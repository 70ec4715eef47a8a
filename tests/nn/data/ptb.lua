-- SPDX-License-Identifier: MIT
-- Penn Treebank: counts, numbers and speed. Sums of the numbers were computed in Python.
-- labels: once
local run = dofile 'tests/tools/scratch.lua'.with_data

it('reports which files are not there', function()
	local text = run('/nowhere', 'print(select(2, pcall(data.ptb)))')
	assert(text:find 'data.ptb: 3 of 3 files not there' and text:find 'ptb/ptb.valid.txt.xz  %(399,782 bytes unpacked%)', text)
end)

it('refuses other texts', function()
	local folder = os.tmpname()
	os.execute(('rm %s && mkdir -p %s/ptb'):format(folder, folder))
	for part, n in pairs {train = 5101618, valid = 399782, test = 449945} do
		local f <close> = assert(io.open(('%s/ptb/ptb.%s.txt'):format(folder, part), 'wb'))
		f:write(('the '):rep(n // 4), ('\n'):rep(n % 4))
	end
	local text = run(folder, 'print(select(2, pcall(data.ptb)))')
	assert(text:find 'ptb.train.txt: wanted 929589 tokens, got 127540', text)
	assert(io.open(folder .. '/ptb/ptb.train.txt', 'ab')):write('the end\n'):close()
	text = run(folder, 'print(select(2, pcall(data.ptb)))')
	assert(text:find 'got more' or text:find '8 bytes more', text)
	os.execute('rm -r ' .. folder)
end)

if not (data.find 'ptb/ptb.train.txt.xz' or data.find 'ptb/ptb.train.txt') then skip 'ptb: its files are not here' end

local d = data.ptb {steps=35}
print(#d.vocab, d.vocab[25], d.vocab[27], d.vocab[33])       --> 10000 <eos> <unk> the
print(d.train, d.valid, d.test)                              --> int32(929589)...int32(73760)...int32(82430)...
print(d.train:to 'int64':sum():item(), d.valid:to 'int64':sum():item(), d.test:to 'int64':sum():item()) --> 1157532684 90579468 96574919
print(d:decode(d.valid:narrow(1, 1, 12)))                    --> consumers may want to move their telephones a little closer to the
print(d:encode 'the quoll\n')                                --> int32(3)  33  27  25
print(d:decode(d:encode 'the company said\nthe quoll said')) --> the company said
                                                             --> the <unk> said
print(#data.loader(d.train, {batch=20, steps=35}))           --> 1328
print(d)  --> Penn Treebank: 1085779 tokens (words), vocabulary 10000
          -->   train  int32(929589)
          -->   valid  int32(73760)
          -->   test   int32(82430)
          -->   steps  35
d:decode(tensor{10001, dtype='int32'})  --> error: decode: wanted numbers from 1 to 10000, got 10001
d:decode(0)                             --> error: decode: wanted numbers from 1 to 10000, got 0
d:decode(tensor{1.5})                   --> error: decode: wanted numbers from 1 to 10000, got 1.5
d:decode(tensor.ones(2, 2))             --> error: decode: wanted the numbers of one text
d:encode(3)                             --> error: encode: wanted text, got 3

it('turns five megabytes into numbers in well below a second', function()
	local before = os.clock()
	data.ptb()
	local seconds = os.clock() - before
	assert(seconds < 5, seconds) -- 0.1 s here; sanitizers and busy machines are slower
end)
