-- SPDX-License-Identifier: MIT
-- data.mnist: handwritten digits (LeCun, Cortes, Burges).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local idx = internal.import 'nn/data/dataset_idx'

local set = {name = 'mnist', title = 'MNIST', classes = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9'},
	url = 'https://storage.googleapis.com/cvdf-datasets/mnist/',
	bytes = {train = {images = '9,912,422', labels = '28,881'}, t10k = {images = '1,648,877', labels = '4,542'}}}

local entry = base.doc {name = 'data.mnist', usage = "data.mnist{split='train'}",
	text = [[Handwritten digits: 55000 training images (28 x 28, gray), 5000 for validation (the last of the 60000)
and 10000 for tests, as a `dataset`. Class 1 is the digit 0. The files are the published ones, packed (.gz) or not, in
the folder mnist of `data.folders`; when they are not there the error says where they come from.]],
	example = [[if data.find 'mnist/t10k-images-idx3-ubyte.gz' then
  ds = data.mnist{split='test', limit=3}
  assert(#ds == 3 and ds.classes[ds.y[1]:item()] == '7')
end]],
	options = idx.options}

return function(options) return idx.load(set, base.options(entry, options)) end
