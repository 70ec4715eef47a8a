-- SPDX-License-Identifier: MIT
-- data.text by characters and by words, from files of any kind; sums of tiny Shakespeare were computed in Python.
-- labels: once
local folder = os.tmpname()
os.execute('rm ' .. folder .. ' && mkdir ' .. folder)
local function write(name, text)
	local f <close> = assert(io.open(folder .. '/' .. name, 'wb'))
	f:write(text)
	return folder .. '/' .. name
end

local d = data.text{file=write('a.txt', ('b€a'):rep(20)), level='char'}
print(table.concat(d.vocab, ' '))            --> a b €
print(d.train:nelem(), d.valid:nelem(), d.test:nelem())  --> 54 3 3
print(d.train:narrow(1, 1, 4), d.train:dtype())          --> int32(4)  2  3  1  2 int32
print(d:decode(d:encode 'ab€'), d:decode(2), d:decode{3, 1})  --> ab€ b €a
print(d:decode(d.test:view(1, 3)), d.name)                --> b€a a.txt
print(d:encode '')                           --> int32(0)
d:encode 'abc'                               --> error: encode: wanted tokens of the vocabulary, got 'c'

local w = data.text{file=write('w.txt', ('the cat  sat\n on\tthe mat\r\n'):rep(10)), level='word'}
print(table.concat(w.vocab, ' '))            --> the cat sat <eos> on mat
print(w.train:narrow(1, 1, 8))               --> int32(8)  1  2  3  4  5  1  6  4
print(w:decode(w.train:narrow(1, 1, 9)) == 'the cat sat\non the mat\nthe')  --> true
print(w.train:nelem() + w.valid:nelem() + w.test:nelem())  --> 80
w:encode 'the dog'                           --> error: encode: wanted tokens of the vocabulary, got 'dog'
local u = data.text{file=write('u.txt', ('<unk> the '):rep(10)), level='word'}
print(u:encode 'the dog')                    --> int32(2)  2  1

it('takes bytes that are no UTF-8 as they are', function()
	local odd = data.text{file=write('odd.txt', ('\xff\xc3(\xe2\x82a'):rep(5))}
	assert(#odd.vocab == 6)
	assert(odd:decode(odd.train:narrow(1, 1, 6)) == '\xff\xc3(\xe2\x82a')
end)

it('unpacks gzip', function()
	write('b.txt', ('hello '):rep(1000))
	if not os.execute(('gzip -k %s/b.txt 2>/dev/null'):format(folder)) then skip 'gzip: not here' end
	assert(data.text{file=folder .. '/b.txt.gz'}.train:nelem() == 5400)
	local f = assert(io.open(folder .. '/b.txt.gz', 'rb'))
	local text = f:read 'a'
	f:close()
	local ok, message = pcall(data.text, {file=write('cut.gz', text:sub(1, -9))})
	assert(not ok and message:find 'cut.gz' and message:find 'compressed data', message)
end)

data.text{file='no/such/file'}               --> error: text: file: there is no no/such/file
data.text{level='chr'}                       --> error: text: level: wanted 'char' or 'word', got 'chr'; did you mean 'char'?
data.text{file=write('two', 'ab')}           --> error: text: file: wanted a text of at least 3 tokens, got 2
data.text{file=write('none', '')}            --> error: text: file: wanted a text of at least 3 tokens, got 0
data.text{steps=0}                           --> error: text: steps: wanted 1 or more, got 0
os.execute('rm -r ' .. folder)

it('has tiny Shakespeare', function()
	if not (data.find 'text/tinyshakespeare.txt.xz' or data.find 'text/tinyshakespeare.txt') then
		skip 'text: tiny Shakespeare is not here'
	end
	local s = data.text{level='char', steps=128}
	assert(#s.vocab == 65 and s.train:nelem() == 1003854 and s.valid:nelem() == 55769 and s.test:nelem() == 55771)
	assert(s.train:to 'int64':sum():item() == 37828889 and s.test:to 'int64':sum():item() == 2060117)
	assert(s:decode(s.train:narrow(1, 1, 15)) == 'First Citizen:\n')
	assert(tostring(s):find 'tiny Shakespeare: 1115394 tokens %(chars%), vocabulary 65')
	local words = data.text{level='word'}
	assert(#words.vocab == 25671 and words.train:nelem() + words.valid:nelem() + words.test:nelem() == 242651)
end)
