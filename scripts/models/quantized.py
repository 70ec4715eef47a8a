# SPDX-License-Identifier: MIT
"""Models that PyTorch quantized, as ONNX files, for the section `quantized` of scripts/models.lua:

  quantized.py KIND NET DIR   writes DIR/m.onnx, and DIR/m.npz: 'x', 'torch' and 'ort' (outputs of PyTorch and of onnxruntime without optimization)

KIND is eager or fx (torch.ao.quantization) or pt2e (torch.export and torchao's quantizers), a dash, and the backend. NET is resnet (blocks with
sums, max pooling) or mobile (depthwise, hardswish, squeeze and excitation, joins), both with random weights and batch norms that have seen some
batches, or resnet20 with the weights and images of the data folder (QUOLL_DATA). The last pictures of the first two are 7 x 7, as those of
ImageNet's models: means of 49 codes have no ties.
"""
import os, sys, warnings

import numpy as np
import torch
from torch import nn
import torch.ao.quantization as tq
from torch.ao.nn.quantized import FloatFunctional

warnings.filterwarnings('ignore')


def conv(i, o, k=3, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.a, self.b = conv(i, o, stride=stride), conv(o, o, act=None)
        self.shortcut = conv(i, o, 1, stride, act=None) if stride > 1 or i != o else nn.Identity()
        self.sum, self.act = FloatFunctional(), nn.ReLU()

    def forward(self, x):
        return self.act(self.sum.add(self.b(self.a(x)), self.shortcut(x)))


class Pad(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.n, self.n))


class Block(nn.Module):
    """Of ResNet20, in the names of its checkpoint."""
    def __init__(self, i, o):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(i, o, 3, 1 if i == o else 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU()
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.shortcut, self.sum, self.act = nn.Identity() if i == o else Pad((o - i) // 2), FloatFunctional(), nn.ReLU()

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.act(self.sum.add(y, self.shortcut(x)))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        sizes = [(16, 16), (16, 32), (32, 64)]
        self.layer1, self.layer2, self.layer3 = [nn.Sequential(Block(i, o), Block(o, o), Block(o, o)) for i, o in sizes]
        self.pool, self.linear = nn.AdaptiveAvgPool2d(1), nn.Linear(64, 10)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(self.quant(x))))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.dequant(self.linear(torch.flatten(self.pool(x), 1)))


class Excite(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.pool, self.down, self.up = nn.AdaptiveAvgPool2d(1), nn.Conv2d(n, 8, 1), nn.Conv2d(8, n, 1)
        self.act, self.gate, self.product = nn.ReLU(), nn.Hardsigmoid(), FloatFunctional()

    def forward(self, x):
        return self.product.mul(x, self.gate(self.up(self.act(self.down(self.pool(x))))))


class Mobile(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.wide, self.depth = conv(i, 32, 1, act=nn.Hardswish), conv(32, 32, 3, stride, 32, act=nn.Hardswish)
        self.excite, self.narrow = Excite(32), conv(32, o, 1, act=None)
        self.sum = FloatFunctional() if stride == 1 and i == o else None

    def forward(self, x):
        y = self.narrow(self.excite(self.depth(self.wide(x))))
        return self.sum.add(x, y) if self.sum else y


class Join(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a, self.b, self.join = conv(n, n, act=nn.LeakyReLU), conv(n, n, 1, act=nn.Sigmoid), FloatFunctional()

    def forward(self, x):
        return self.join.cat([self.a(x), self.b(x)], 1)


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        body = {'resnet': [conv(3, 16), Residual(16, 16, 1), nn.MaxPool2d(2), Residual(16, 32, 1), Residual(32, 64, 2)],
                'mobile': [conv(3, 16, stride=2, act=nn.Hardswish), Mobile(16, 16, 1), Mobile(16, 24, 2), Mobile(24, 24, 1), Join(24)]}[kind]
        n = {'resnet': 64, 'mobile': 48}[kind]
        self.body, self.pool = nn.Sequential(*body), nn.AdaptiveAvgPool2d(1)
        self.hidden, self.act, self.last = nn.Linear(n, 32), nn.ReLU(), nn.Linear(32, 10)

    def forward(self, x):
        x = torch.flatten(self.pool(self.body(self.quant(x))), 1)
        return self.dequant(self.last(self.act(self.hidden(x))))


def images():
    import lzma
    rows = np.frombuffer(lzma.open(os.path.join(os.environ['QUOLL_DATA'], 'cifar10/test_batch_first1000.bin.xz')).read(), np.uint8).reshape(-1, 3073)
    x = torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32) / np.float32(255))
    return (x - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


KIND = 'resnet'


def pictures(n, seed):
    if KIND == 'resnet20':
        return images()[seed * 5:seed * 5 + n]
    return torch.randn(n, 3, 28, 28, generator=torch.Generator().manual_seed(seed))


def calibrated(model):
    with torch.no_grad():
        for i in range(4):
            model(pictures(16, 50 + i))
    return model


def float_net(kind):
    if kind == 'resnet20':
        from safetensors.torch import load_file
        model = ResNet20()
        model.load_state_dict(load_file(os.path.join(os.environ['QUOLL_DATA'], 'weights/resnet20-cifar10.safetensors')))
        return model.eval()
    torch.manual_seed(0)
    model = Net(kind).train()
    with torch.no_grad():
        for i in range(5):
            model(pictures(16, 10 + i))
    return model.eval()


def eager(model, backend):
    torch.backends.quantized.engine = backend
    fused = []
    for name, m in model.named_modules():
        if isinstance(m, (Block, ResNet20)):
            pairs = ['conv1', 'bn1', 'relu'], ['conv2', 'bn2']
            fused += [[f'{name}.{c}' if name else c for c in pair] for pair in pairs[:1 if isinstance(m, ResNet20) else 2]]
        if isinstance(m, nn.Sequential) and len(m) > 1 and isinstance(m[0], nn.Conv2d):
            fused.append([f'{name}.{i}' for i in range(3 if len(m) > 2 and type(m[2]) is nn.ReLU else 2)])
    tq.fuse_modules(model, fused, inplace=True)
    model.qconfig = tq.get_default_qconfig(backend)
    return tq.convert(calibrated(tq.prepare(model)))


def fx(model, backend):
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    torch.backends.quantized.engine = backend
    return convert_fx(calibrated(prepare_fx(model, tq.get_default_qconfig_mapping(backend), (pictures(1, 1),))))


BATCH = ({0: torch.export.Dim('batch', min=1)},)


def pt2e(model, backend):
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    if backend == 'xnnpack':
        from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    else:
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
        quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    program = torch.export.export(model, (pictures(2, 1),), dynamic_shapes=BATCH).module()
    return convert_pt2e(calibrated(prepare_pt2e(program, quantizer)))


def main(kind, net, out):
    global KIND
    import onnx, onnxruntime as ort
    KIND = net
    how, backend = kind.split('-')
    model, x, path = {'eager': eager, 'fx': fx, 'pt2e': pt2e}[how](float_net(net), backend), pictures(100, 99), os.path.join(out, 'm.onnx')
    with torch.no_grad():
        y = model(x).numpy()
        if how == 'pt2e':
            torch.onnx.export(model, (pictures(2, 1),), path, input_names=['x'], output_names=['y'], dynamic_shapes=BATCH, dynamo=True,
                              external_data=False, verbose=False)
        else:
            torch.onnx.export(model, (pictures(1, 1),), path, input_names=['x'], output_names=['y'], opset_version=17, dynamo=False,
                              dynamic_axes={'x': {0: 'batch'}, 'y': {0: 'batch'}})
    onnx.checker.check_model(path, full_check=True)
    options = ort.SessionOptions()
    options.log_severity_level, options.graph_optimization_level = 3, ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    z = ort.InferenceSession(path, options, providers=['CPUExecutionProvider']).run(None, {'x': x.numpy()})[0]
    np.savez(os.path.join(out, 'm.npz'), x=x.numpy(), torch=y, ort=z)


if __name__ == '__main__':
    main(*sys.argv[1:])
