-- SPDX-License-Identifier: MIT
-- A perceptron for MNIST, 784-256-128-10: model = dofile 'models/mlp.lua':load 'mlp.safetensors'
return nn.Sequential {nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)}
