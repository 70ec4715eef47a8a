#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares Quoll's encoders of ggml's blocks with ggml: codes, errors, time.

  scripts/goldens_ggml.py --ggml LIBRARY [--timed LIBRARY] [--quoll build/release/quoll] [--data FOLDER]
                          [--elements 1048576] [--threads 1] [--repeats 3] [--keep FOLDER] [FORMAT...]

Inputs are --elements normal numbers and, from the folder `weights` of --data ('': none), the matrices and kernels of ResNet20
and all numbers of stories260K, flattened to rows of 256. Quoll quantizes them and writes its codes, values and times to an npz
file (--keep leaves the files in FOLDER; given again, the script reads them without running Quoll: --quoll ''). LIBRARY is ggml's
reference code, as scripts/goldens.py says. --timed names another build of it for the times, such as one with -O3 -march=native.

Prints for each format and input: blocks whose codes are all equal, blocks whose values are all equal, Quoll's squared error
divided by ggml's, plain and with the weights that ggml's encoder minimizes, and Quoll's time divided by ggml's on the same
number of threads. Exits with 1 when fewer than 99.9 % of the blocks are equal or the weighted error exceeds 1.0001.
"""
import argparse, concurrent.futures, json, os, subprocess, sys, tempfile, time

import numpy as np

import goldens

SIGNED = {'q4_0': 8, 'q5_0': 16, 'q3_k': 4, 'q6_k': 32, 'tq1_0': 1, 'tq2_0': 1}  # stored code minus value
LUA = '''
local data, out, repeats = tensor.load(arg[1]), {}, math.tointeger(tonumber(arg[3]))
for i = 4, #arg do
	for name, x in pairs(data) do
		local done, q = pcall(x.quantize, x, arg[i])
		if done then
			local best = math.huge
			for _ = 1, repeats do
				local start = hw.clock()
				x:quantize(arg[i])
				best = math.min(best, hw.clock() - start)
			end
			local key = arg[i]:gsub('gguf%.', '') .. '_' .. name
			out[key .. '_codes'] = q:codes():to 'int16'
			out[key .. '_y'] = q:dequantize()
			out[key .. '_seconds'] = tensor{best}
		else
			print(arg[i] .. ' of ' .. name .. ': ' .. tostring(q))
		end
	end
end
if next(out) then tensor.save(arg[2], out) end
'''


def rows(a):
    a = a.reshape(-1)
    return np.ascontiguousarray(a[:len(a) // 256 * 256].reshape(-1, 256), dtype=np.float32)


def safetensors(path):
    """All float32 tensors of two and more axes, one after the other."""
    raw = open(path, 'rb').read()
    n = int.from_bytes(raw[:8], 'little')
    parts = []
    for name, t in sorted(json.loads(raw[8:8 + n]).items()):
        if name != '__metadata__' and t['dtype'] == 'F32' and len(t['shape']) >= 2:
            start, end = t['data_offsets']
            parts.append(np.frombuffer(raw[8 + n + start:8 + n + end], np.float32))
    return np.concatenate(parts)


def inputs(folder, elements):
    out = {'randn': np.random.default_rng(1).standard_normal((elements // 256, 256)).astype(np.float32)}
    if folder:
        weights = os.path.join(folder, 'weights')
        out['resnet20'] = rows(safetensors(os.path.join(weights, 'resnet20-cifar10.safetensors')))
        out['stories260K'] = rows(np.fromfile(os.path.join(weights, 'stories260K.bin'), np.float32, offset=28))
    return out


def run_quoll(args, given, result):
    script = os.path.join(os.path.dirname(result), 'quantize.lua')
    with open(script, 'w') as f:
        f.write(LUA)
    specs = ['gguf.mxfp4' if n == 'mxfp4' else n for n in args.formats]
    env = dict(os.environ, QUOLL_THREADS=str(args.threads))
    subprocess.run([args.quoll, script, given, result, str(args.repeats)] + specs, check=True, env=env)


def seconds(ggml, kind, x, threads, repeats):
    """The fastest of several calls, where each thread encodes a part of the rows."""
    parts = [p for p in np.array_split(x, threads) if len(p)]
    best = float('inf')
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            start = time.perf_counter()
            list(pool.map(lambda p: ggml.encode(kind, p), parts))
            best = min(best, time.perf_counter() - start)
    return best


def objective(kind, x):
    """The weights of the error that ggml's encoder minimizes."""
    x = x.astype(np.float64)
    if kind == 'q2_k':
        return np.abs(x)
    if kind in ('q4_k', 'q5_k'):
        mean = (x * x).reshape(len(x), -1, 32).mean(2)
        return np.repeat(np.sqrt(mean), 32, 1) + np.abs(x)
    return x * x if kind in ('q3_k', 'q6_k', 'iq4_nl') else np.ones_like(x)


def ratio(a, b):
    return a / b if b else float(a != 0) + 1


def compare(kind, x, ggml, got, key):
    """Shares of equal codes and values, and ratios of errors."""
    blocks = ggml.encode(kind, x)
    part, y = ggml.unpack(kind, blocks)
    y = y.reshape(x.shape)
    codes, own = part['codes'].astype(np.int64), got[key + '_codes'].astype(np.int64).reshape(part['codes'].shape)
    if own.min() < 0 <= codes.min():
        own = own + SIGNED.get(kind, 0)
    value = got[key + '_y'].reshape(x.shape)
    same = (codes == own).all(1).mean()
    equal = (value.reshape(codes.shape) == y.reshape(codes.shape)).all(1).mean()
    w, x = objective(kind, x), x.astype(np.float64)
    errors = [((v - x)**2 * u).sum() for v in (value, y) for u in (1, w)]
    return len(codes), same, equal, ratio(errors[0], errors[2]), ratio(errors[1], errors[3])


def report(args, given, got):
    ggml = goldens.Ggml(args.ggml)
    timed = goldens.Ggml(args.timed) if args.timed else ggml
    failed = False
    print('%-8s %-12s %8s %9s %9s %9s %9s %9s' % ('format', 'input', 'blocks', 'codes', 'values', 'error', 'weighted', 'time'))
    for kind in args.formats:
        for name, x in given.items():
            key = '%s_%s' % (kind, name)
            if key + '_codes' not in got:
                continue
            n, same, equal, error, weighted = compare(kind, x, ggml, got, key)
            own = float(got[key + '_seconds'][0])
            rate = own / seconds(timed, kind, x, args.threads, args.repeats)
            bad = same < 0.999 or weighted > 1.0001
            failed = failed or bad
            print('%-8s %-12s %8d %8.4f%% %8.4f%% %9.6f %9.6f %8.2fx%s' %
                  (kind, name, n, 100 * same, 100 * equal, error, weighted, rate, '  FAILED' if bad else ''))
    return failed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--ggml', metavar='LIBRARY', required=True)
    p.add_argument('--timed', metavar='LIBRARY')
    p.add_argument('--quoll', default='build/release/quoll')
    p.add_argument('--data', default=os.environ.get('QUOLL_DATA'))
    p.add_argument('--elements', type=int, default=4096 * 256)
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--repeats', type=int, default=3)
    p.add_argument('--keep', metavar='FOLDER')
    p.add_argument('formats', nargs='*', metavar='FORMAT')
    args = p.parse_args()
    args.formats = args.formats or goldens.Ggml.names
    unknown = [n for n in args.formats if n not in goldens.Ggml.names]
    if unknown:
        sys.exit('goldens_ggml.py: wanted formats of %s, got %s' % (' '.join(goldens.Ggml.names), ' '.join(unknown)))
    if args.elements < 256 or args.elements % 256:
        sys.exit('goldens_ggml.py: wanted a positive multiple of 256 as --elements, got %d' % args.elements)
    given = inputs(args.data, args.elements)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        source, result = os.path.join(folder, 'inputs.npz'), os.path.join(folder, 'quoll.npz')
        if args.quoll:
            np.savez(source, **given)
            run_quoll(args, source, result)
        if not os.path.exists(result):
            sys.exit('goldens_ggml.py: Quoll wrote no result')
        sys.exit(report(args, given, np.load(result)))


if __name__ == '__main__':
    main()
