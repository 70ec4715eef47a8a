-- SPDX-License-Identifier: MIT
-- A convolutional net of LeNet-5's size for MNIST, with batch norm: model = dofile 'models/lenet.lua':load 'lenet.safetensors'
return nn.Sequential {
	nn.Conv2d(1, 16, 5, {pad=2}), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
	nn.Conv2d(16, 32, 5), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
	nn.Flatten(), nn.Linear(800, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
}
