# SPDX-License-Identifier: MIT
# Times of PyTorch and of kernels in Triton to compare with, for scripts/gpu_check.lua: lines "name seconds" or "name missing why".
# Medians of graph replays where a graph can be captured, else of queued calls. One that fails is a line, too.
import sys

try:
    import torch
    import torch.nn.functional as F
except Exception as error:  # also a library that cannot be opened
    print("all missing no PyTorch:", str(error).split("\n")[0][:120])
    sys.exit()
try:
    import triton
    import triton.language as tl
except Exception as error:
    triton = None
    print("triton_linear missing no Triton:", str(error).split("\n")[0][:120])
    print("triton_quantize missing no Triton:", str(error).split("\n")[0][:120])
if not torch.cuda.is_available():
    print("all missing PyTorch finds no GPU")
    sys.exit()

N = 4096
torch.manual_seed(1)


def seconds(fn, calls=20, samples=7):
    for _ in range(3):
        fn()
    torch.cuda.synchronize()
    times = []
    for _ in range(samples):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            fn()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / calls)
    return sorted(times)[len(times) // 2]


def graphed(fn):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            fn()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn()
    return graph.replay


def operands():
    x = torch.randint(-127, 128, (N, N), dtype=torch.int8, device="cuda")
    w = torch.randint(-127, 128, (N, N), dtype=torch.int8, device="cuda")
    sx = torch.rand(N, 1, device="cuda") / 100  # results within float16
    sw = torch.rand(N, device="cuda")
    return x, w, sx, sw, torch.rand(N, device="cuda")


def int_mm():
    x, w, sx, sw, b = operands()
    return seconds(lambda: (torch._int_mm(x, w.t()).float() * sx * sw + b).half())


def sdpa():
    q, k, v = (torch.randn(1, 16, 4096, 128, dtype=torch.float16, device="cuda") for _ in range(3))
    return seconds(graphed(lambda: F.scaled_dot_product_attention(q, k, v)))


def torchao():
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    m = torch.nn.Sequential(torch.nn.Linear(N, N)).half().cuda()
    quantize_(m, Int8DynamicActivationInt8WeightConfig())
    m = torch.compile(m, mode="max-autotune")
    x = torch.randn(N, N, dtype=torch.float16, device="cuda")
    with torch.no_grad():
        return seconds(lambda: m(x))


# ---- steps of training ----


class Lstm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(10000, 256)
        self.lstm = torch.nn.LSTM(256, 256, 2, batch_first=True)
        self.linear = torch.nn.Linear(256, 10000)

    def forward(self, x):
        return self.linear(self.lstm(self.embedding(x))[0])


def step_of(name):
    if name == "mlp":
        sizes = (784, 256, 128, 10)
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
        m = torch.nn.Sequential(*layers[:-1]).cuda()
        x, y = torch.randn(128, 784, device="cuda"), torch.randint(0, 10, (128,), device="cuda")
    else:
        m = Lstm().cuda()
        x, y = (torch.randint(0, 10000, (20, 35), device="cuda") for _ in range(2))

    def step_with(opt):
        def step():
            opt.zero_grad(set_to_none=True)
            out = m(x)
            F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1)).backward()
            opt.step()

        return step

    return m, step_with


def eager(name):
    m, step_with = step_of(name)
    return seconds(step_with(torch.optim.Adam(m.parameters(), 1e-3)))


def replay(name):
    m, step_with = step_of(name)
    return seconds(graphed(step_with(torch.optim.Adam(m.parameters(), 1e-3, capturable=True))))


# ---- Triton ----


if triton:
    @triton.autotune(
        [
            triton.Config({"M": m, "N": n, "K": 128}, num_stages=s, num_warps=w)
            for m, n, s, w in ((128, 256, 3, 8), (128, 128, 4, 8), (256, 128, 3, 8), (128, 128, 4, 4))
        ],
        key=["m", "n", "k"],
    )
    @triton.jit
    def linear_kernel(x, w, sx, sw, b, y, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
        tile = tl.program_id(0)
        across = tl.cdiv(n, N)
        group = tile // (8 * across)  # 8 rows of tiles share columns in the cache
        rows = min(tl.cdiv(m, M) - group * 8, 8)
        i = (group * 8 + tile % (8 * across) % rows) * M + tl.arange(0, M)
        j = (tile % (8 * across) // rows) * N + tl.arange(0, N)
        e = tl.arange(0, K)
        px = x + i[:, None] * k + e[None, :]
        pw = w + j[None, :] * k + e[:, None]
        sums = tl.zeros((M, N), tl.int32)
        for _ in range(0, tl.cdiv(k, K)):
            sums = tl.dot(tl.load(px), tl.load(pw), sums)
            px += K
            pw += K
        out = sums.to(tl.float32) * tl.load(sx + i)[:, None] * tl.load(sw + j)[None, :] + tl.load(b + j)[None, :]
        tl.store(y + i[:, None] * n + j[None, :], out.to(tl.float16))

    @triton.jit
    def quantize_kernel(x, q, s, k, K: tl.constexpr):
        i = tl.program_id(0)
        e = tl.arange(0, K)
        v = tl.load(x + i * k + e, mask=e < k, other=0.0).to(tl.float32)
        scale = tl.maximum(tl.max(tl.abs(v), 0) / 127, 1e-8)
        r = v / scale
        tl.store(q + i * k + e, tl.where(r >= 0, r + 0.5, r - 0.5).to(tl.int8), mask=e < k)
        tl.store(s + i, scale)


def triton_linear():
    x, w, sx, sw, b = operands()
    y = torch.empty(N, N, dtype=torch.float16, device="cuda")

    def fn():
        linear_kernel[lambda c: (triton.cdiv(N, c["M"]) * triton.cdiv(N, c["N"]),)](x, w, sx.view(-1), sw, b, y, N, N, N)

    fn()
    wanted = (torch._int_mm(x, w.t()).float() * sx * sw + b).half()
    if not torch.allclose(y, wanted, rtol=2e-3):
        raise RuntimeError("the result of the kernel is wrong")
    return seconds(graphed(fn))


def triton_quantize():
    x = torch.randn(N, N, dtype=torch.float16, device="cuda")
    q, s = torch.empty(N, N, dtype=torch.int8, device="cuda"), torch.empty(N, device="cuda")
    return seconds(graphed(lambda: quantize_kernel[(N,)](x, q, s, N, N)))


for name, fn in (
    ("sdpa", sdpa),
    ("int_mm", int_mm),
    ("mlp_eager", lambda: eager("mlp")),
    ("mlp_graph", lambda: replay("mlp")),
    ("lstm_eager", lambda: eager("lstm")),
    ("lstm_graph", lambda: replay("lstm")),
    ("triton_quantize", triton_quantize),
    ("triton_linear", triton_linear),
    ("torchao", torchao),
):
    if name.startswith("triton") and not triton:
        continue
    try:
        print(name, "%.9g" % fn(), flush=True)
    except Exception as error:
        print(name, "missing", type(error).__name__, (str(error).split("\n") or [""])[0][:120], flush=True)
