-- SPDX-License-Identifier: MIT
-- labels: full
-- Mode train from random weights: the MNIST perceptron reaches 97 % with an integer forward.
tensor.seed(1)
local file = 'mnist/t10k-images-idx3-ubyte.gz'
it('trains the MNIST perceptron to 97 %', function()
	if not data.find(file) then skip('there is no ' .. file .. ' in ' .. table.concat(data.folders(), ' or ')) end
	local train = data.loader(data.mnist{split='train'}, {batch=128, shuffle=true})
	local test = data.loader(data.mnist{split='test'}, {batch=500})
	local m = nn.Sequential {nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)}
	local q = m:quantize {mode='train'}
	quant.log 'reset'
	q:fit(train, {opt=optim.adam(q, {lr=1e-3}), loss=nn.crossentropy, epochs=6, log=false})
	local forward = quant.log():where{op='linear', path='int8'}
	assert(#forward >= 1 and forward[1].kernel:find '^gemm_i8' and forward[1].count == 3 * 6 * #train)
	assert(#quant.log():where{op='linear', path='fallback'} == 0)
	local right = q:evaluate(test, {metric='accuracy', log=false}).value
	assert(right >= 97, right)
end)
