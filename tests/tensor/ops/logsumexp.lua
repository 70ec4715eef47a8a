-- SPDX-License-Identifier: MIT
-- logsumexp; literals from PyTorch 2.
local y = tensor{{0.5, -1.25, 3}, {2, 0.75, -4}}
local function near(got, ...) assert((got:view(-1) - tensor{...}):abs():max():item() < 1e-6, tostring(got)) end
near(y:logsumexp(2), 3.0919857025146484, 2.2538537979125977)
near(y:logsumexp(1), 2.20141339302063, 0.8769280314445496, 3.0009114742279053)
near(y:logsumexp{axis={1, 2}, keep=true}, 3.4514193534851074)
near(y:logsumexp():view(1), 3.4514193534851074)
near(y:unsqueeze(2):permute(2, 3, 1):logsumexp{axis={1, 3}}, 2.20141339302063, 0.8769280314445496, 3.0009114742279053)
print(tensor{1000, 1000}:logsumexp(), tensor{-1000, -1000}:logsumexp(), tensor(3):logsumexp())  --> 1000.6932 -999.3068 3
local inf = math.huge
print(tensor{{-inf, -inf}, {inf, 1}, {inf, -inf}, {0/0, inf}, {-inf, 2}}:logsumexp(2))  --> float32(5) -inf inf inf nan 2
print(tensor.zeros(0):logsumexp(), tensor.zeros(0, 2):logsumexp(1), tensor.zeros(2, 0):logsumexp(1):size())  --> -inf float32(2) -inf -inf 0
print(tensor{1, 2, dtype='int8'}:logsumexp():dtype(), tensor{1, dtype='float16'}:logsumexp():dtype(), y:to('float64'):logsumexp():dtype())  --> float32 float16 float64
local x = tensor.randn(50, 2100, 3) * 20
for axis = 1, 3 do
	local wide = x:to 'float64'
	local most = wide:max{axis=axis, keep=true}
	local want = (wide - most):exp():sum{axis=axis, keep=true}:log() + most
	assert((x:logsumexp{axis=axis, keep=true}:to 'float64' - want):abs():max():item() < 1e-5)
	assert((wide:logsumexp{axis=axis, keep=true} - want):abs():max():item() < 1e-12)
end
local v = tensor{-inf, 0, grad=true}
v:logsumexp():backward()
print(v:grad())  --> float32(2) 0 1
