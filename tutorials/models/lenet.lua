-- SPDX-License-Identifier: MIT
-- LeNet-5's layers and sizes (LeCun et al., 1998) for MNIST, with relu, max pooling and batch norm:
-- model = dofile 'models/lenet.lua':load 'lenet.safetensors'
return nn.Sequential {
	nn.Conv2d(1, 6, 5, {pad=2}), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
	nn.Conv2d(6, 16, 5), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
	nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
}
