-- SPDX-License-Identifier: MIT
-- Computed data: the same bits always, classes equally likely, a task that can be learned, and an entropy that is right.
-- labels: once
local a, b = data.synth{kind='digits', n=500, seed=3}, data.synth{kind='digits', n=500, seed=3}
print(a.x:size())                                         --> 500 1 28 28
print(a.x:dtype(), a.x:qparams().scale:item() * 255, a.y:dtype())  --> uint8 1.0 int64
print(a.x:codes():eq(b.x:codes()):all():item(), a.y:eq(b.y):all():item())  --> true true
print(a.x:codes():eq(data.synth{n=500, seed=4}.x:codes()):all():item())    --> false
print(a.x:codes():eq(data.synth{n=500, seed=3, split='test'}.x:codes()):all():item())  --> false
print(a.x:codes():narrow(1, 1, 100):eq(data.synth{n=100, seed=3}.x:codes()):all():item())  --> true
print(data.synth{kind='shapes', n=10}.x:size())           --> 10 3 32 32
print(a)  --> synth digits train: 500 samples
          -->   x  uint8(500, 1, 28, 28) asymmetric
          -->   y  int64(500)
          -->   10 classes: 0 1 2 3 4 5 6 7 8 9

it('has the same bits with every number of threads and does not touch tensor.seed', function()
	tensor.seed(5)
	local before = tensor.rand(3)
	tensor.seed(5)
	local threads = tensor.threads()
	tensor.threads(1)
	local one = data.synth{kind='shapes', n=64, seed=9}
	tensor.threads(threads)
	assert(one.x:codes():eq(data.synth{kind='shapes', n=64, seed=9}.x:codes()):all():item())
	assert(tensor.rand(3):eq(before):all():item())
	-- sums of this program's first run: the bits must not change with the machine
	assert(one.x:codes():to 'int64':sum():item() == 25199347, one.x:codes():to 'int64':sum():item())
	assert(a.x:codes():to 'int64':sum():item() == 21118233, a.x:codes():to 'int64':sum():item())
end)

it('draws classes equally often', function()
	for _, kind in ipairs {'digits', 'shapes'} do
		local y = data.synth{kind=kind, n=10000, seed=2}.y
		for class = 1, 10 do
			local count = y:eq(class):sum():item()
			assert(count > 880 and count < 1120, kind .. class .. ': ' .. count) -- 4 standard deviations
		end
	end
end)

it('makes digits that the nearest class mean tells far better than chance', function()
	local train, test = data.synth{n=3000, seed=1}, data.synth{n=500, seed=1, split='test'}
	local x, means = train.x:dequantize():view(3000, 784), {}
	for class = 1, 10 do means[class] = x[train.y:eq(class):view(3000, 1):expand(3000, 784)]:view(-1, 784):mean{axis=1} end
	local m = tensor.stack(means)
	local t = test.x:dequantize():view(500, 784)
	local score = t:matmul(m:t()) - (m * m):sum{axis=2} * 0.5
	local right = score:argmax{axis=2}:eq(test.y):sum():item() / 500
	assert(right > 0.5 and right < 0.95, right)
end)

local d = data.synth{kind='markov', n=200000, seed=11, steps=16}
print(d.train:nelem(), d.valid:nelem(), d.test:nelem(), #d.vocab)  --> 180000 10000 10000 27
print(d:decode(d:encode 'quoll food'))                            --> quoll food
print(d.matrix:sum{axis=2}:sub(1):abs():max():item() < 1e-12)      --> true

it('knows its entropy: the mean surprise of the text comes near it', function()
	local rows = (-d.matrix:log()):to 'float64'
	local x, y = d.train:narrow(1, 1, 179999):to 'int64', d.train:narrow(1, 2, 179999):to 'int64'
	local surprise = rows:view(27 * 27):gather(1, (x - 1) * 27 + y):mean():item()
	assert(math.abs(surprise - d.entropy) < 0.01, surprise .. ' ' .. d.entropy)
	assert(d.entropy > 1.5 and d.entropy < math.log(27))
end)

print(#data.loader(d.train, {batch=32}))                  --> 352
data.synth{kind='digit'}        --> error: synth: kind: wanted digits, shapes or markov, got 'digit'; did you mean 'digits'?
data.synth{n=0}                 --> error: synth: n: wanted 1 or more, got 0
data.synth{kind='markov', n=5}  --> error: synth: n: wanted at least 20 tokens, got 5
data.synth{kind='markov', split='test'}  --> error: synth: split
data.synth{steps=3}             --> error: synth: steps: wanted kind='markov', got digits
data.synth{split='tset'}        --> error: synth: split: wanted 'train'
