-- SPDX-License-Identifier: MIT
-- data.fashion: clothes (Xiao, Rasul, Vollgraf, "Fashion-MNIST", 2017), in MNIST's files.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local idx = internal.import 'nn/data/dataset_idx'

local set = {name = 'fashion', title = 'Fashion-MNIST',
	classes = {'T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'boot'},
	url = 'http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/',
	bytes = {train = {images = '26,421,880', labels = '29,515'}, t10k = {images = '4,422,102', labels = '5,148'}}}

local entry = base.doc {name = 'data.fashion', usage = "data.fashion{split='train'}",
	text = [[Clothes in ten classes: 55000 training images (28 x 28, gray), 5000 for validation (the last of the
60000) and 10000 for tests, as a `dataset`. The files are the published ones, packed (.gz) or not, in the folder
fashion of `data.folders`; if they are missing, the error says where to get them.]],
	example = [[if data.find 'fashion/t10k-images-idx3-ubyte.gz' then
  ds = data.fashion{split='test', limit=3}
  assert(#ds == 3 and ds.classes[ds.y[1]:item()] == 'boot')
end]],
	options = idx.options}

return function(options) return idx.load(set, base.options(entry, options)) end
