#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/quant/golden/*.npz: codes, scales and values of every quantized format, made by other programs.

  scripts/goldens.py [--out tests/quant/golden] [--ggml LIBRARY] [NAME...]

Needs a Python with numpy and ml_dtypes (small floats), torch and bitsandbytes (nf4, af4), gguf (ggml's simple blocks); made
with ml_dtypes 0.6.0, bitsandbytes 0.50.2, gguf 0.19.0. LIBRARY is a shared library of ggml's reference code, for example
from the source package of llama-cpp-python (0.3.36), folder vendor/llama.cpp/ggml; version.h is an empty
ggml-version.h that defines GGML_VERSION and GGML_COMMIT:

  gcc -O2 -ffp-contract=off -fPIC -DNDEBUG -D_GNU_SOURCE -I. -Iinclude -Isrc -Isrc/ggml-cpu -c src/ggml.c src/ggml-quants.c
  g++ -O2 -fPIC -Iinclude -Isrc -c src/ggml-threading.cpp
  g++ -shared -o libggmlref.so ggml.o ggml-quants.o ggml-threading.o -Wl,--unresolved-symbols=ignore-all

Without NAME all files are written. The judge of affine, ternary, MX and NVFP4 blocks is numpy: the functions below say each
float step. tests/quant/golden/README.md lists the arrays.
"""
import argparse, ctypes, os, sys

import numpy as np

f32, f64 = np.float32, np.float64
FLT_MIN, FLT_MAX = f32(2.0**-126), np.finfo(f32).max
SHORT = {'x': 20, 'w': 8, 'v': 8}  # rows of files whose encoder is one formula
LONG = {'x': 64, 'w': 32, 'v': 0}  # rows of files whose encoder searches or has special cases
NORMAL = {'x': 62, 'w': 32, 'v': 0}  # without float32 subnormals, which ggml does not define
DECODED = {'x': 8, 'w': 2, 'v': 2}  # rows of y


# ---- inputs ----


def special_rows(r):
    """Rows that meet ties, signs, zeros and limits; the first eight are those whose decoded values are stored."""
    n = np.arange(256)
    normal = r.standard_normal
    outlier = normal(256) * 0.01
    outlier[37], outlier[201] = 300, -40
    blocks = normal(256)
    blocks[(n // 16) % 3 == 1] = 0
    single = np.zeros(256)
    single[[5, 77, 130, 255]] = -3, 0.1, 2, 1e-3
    return [
        normal(256),
        normal(256)**5,
        outlier,
        (n % 33 - 16) / 2,  # halves: ties of a step of 1
        blocks,
        normal(256) * 2.0**(n // 16 - 8),  # another magnitude in every 16
        normal(256) * 1e-6,
        np.full(256, 0.37),
        np.zeros(256),
        np.where(n % 2, 0.0, -0.0),
        n * 5 % 7 - 3,  # small integers
        (n % 57 - 28) / 4,  # ties of e2m1 in -7 .. 7
        -np.abs(normal(256)),
        5 + r.random(256),
        np.full(256, -2.0),
        2.0**(n % 53 - 40) * np.where(n % 3, 1, -1),
        (1 - 2.0**-24) * 2.0**(n // 16 - 8) * np.where(n % 5, 1, -1),  # just below powers of two
        single,
        np.where(n % 32 == 3, -1.5, np.where(n % 32 == 9, 1.5, normal(256) * 0.3)),  # both ends equal
        normal(256) * 1e4,
    ]


def inputs():
    r = np.random.default_rng(2024)
    rows = special_rows(r)
    rows += [r.standard_normal(256) * s for s in (1e-5, 1e-3, 0.05, 3, 100, 3000, 2.0**-20, 1e-20)]
    rows += [np.exp(2 * r.standard_normal(256)) * r.choice([-1, 1], 256) for _ in range(6)]
    rows += [r.laplace(size=256) * 0.1 for _ in range(6)]
    rows += [r.random(256) * 2 - 1 for _ in range(4)]
    rows += [r.standard_normal(256) * (r.random(256) < 0.1) for _ in range(4)]
    rows += [np.round(r.standard_normal(256) * 8) / 8 for _ in range(4)]
    rows += [r.standard_normal(256) * np.repeat(2.0**r.uniform(-12, 4, 16), 16) for _ in range(10)]
    rows += [r.standard_normal(256) * 1e-39, r.standard_normal(256) * 1e-44]
    return {'x': np.array(rows).astype(f32), 'w': (r.standard_normal((64, 256)) * 0.02).astype(f32),
            'v': (r.standard_normal((8, 256)) * 50).astype(f32),
            'importance': np.exp(r.standard_normal(256)).astype(f32)}


# ---- numbers ----


def half_up(v):
    h = v.astype(np.float16)
    return np.where(h.astype(f32) < v, np.nextafter(h, np.float16(np.inf)), h)


def half_down(v):
    h = v.astype(np.float16)
    return np.where(h.astype(f32) > v, np.nextafter(h, np.float16(-np.inf)), h)


def float_scale(s):
    return np.clip(s.astype(f32), FLT_MIN, FLT_MAX)


def fits_half(s):
    return bool(np.all((s == 0) | ((s >= 2.0**-14) & (s <= 65504))))


class Element:
    """A small float of ml_dtypes."""

    def __init__(self, name, bits, mantissa):
        import ml_dtypes
        self.type, self.bits, self.mantissa = getattr(ml_dtypes, name), bits, mantissa
        self.max = f32(ml_dtypes.finfo(self.type).max)
        self.emax = int(np.floor(np.log2(float(self.max))))

    def codes(self, v):
        with np.errstate(over='ignore', invalid='ignore'):
            return v.astype(f32).astype(self.type).view(np.uint8)

    def saturated(self, v):
        return self.codes(np.clip(v, -self.max, self.max))

    def values(self, codes):
        return codes.view(self.type).astype(f32)


def elements():
    return {'e4m3': Element('float8_e4m3fn', 8, 3), 'e5m2': Element('float8_e5m2', 8, 2),
            'e2m3': Element('float6_e2m3fn', 6, 3), 'e3m2': Element('float6_e3m2fn', 6, 2),
            'e2m1': Element('float4_e2m1fn', 4, 1)}


def element_file():
    out = {}
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(f32)
    for name, e in elements().items():
        out[name + '_values'] = e.values(np.arange(2**e.bits, dtype=np.uint8))
        out[name + '_codes'] = e.codes(halves)
        out[name + '_saturated'] = e.saturated(halves)
    e8m0 = Element('float8_e8m0fnu', 8, 0)
    out['e8m0_values'] = e8m0.values(np.arange(256, dtype=np.uint8))
    out['e8m0_codes'] = e8m0.codes(halves)
    return {'elements': out}


# ---- grains: one scale per tensor, row or 32 elements ----


def grains(a):
    return {'tensor': a.reshape(1, -1), 'row': a, 'block': a.reshape(-1, 32)}


def scale_shape(a, grain, s):
    return s.reshape({'tensor': (1,), 'row': (a.shape[0], 1), 'block': (a.shape[0], -1)}[grain])


def put(out, prefix, a, name, codes, y, scales):
    out['%s%s_codes' % (prefix, name)] = codes.reshape(a.shape)
    out['%s%s_y' % (prefix, name)] = y.reshape(a.shape)[:DECODED[name]]
    for key, value in scales.items():
        out['%s%s_%s' % (prefix, name, key)] = value


def each(data, rows):
    for name, n in rows.items():
        if n:
            yield name, data[name][:n]


def float_file(data, e):
    out = {}
    for name, a in each(data, SHORT):
        for grain, g in grains(a).items():
            s64 = np.abs(g).max(1).astype(f64) / f64(e.max)
            s = float_scale(s64)
            if grain == 'block' and fits_half(s64):
                s = s.astype(np.float16)
            s = np.where(s64 == 0, s.dtype.type(1), s)
            wide = s.astype(f32)[:, None]
            codes = e.saturated(g / wide)
            put(out, grain + '_', a, name, codes, e.values(codes) * wide, {'scale': scale_shape(a, grain, s)})
    return out


def affine_file(data, bits, signed):
    out, top = {}, 2**(bits - 1) - 1
    lo, hi = (-top, top) if signed else (0, 2**bits - 1)
    for name, a in each(data, SHORT):
        for grain, g in grains(a).items():
            least, most = g.min(1).astype(f64), g.max(1).astype(f64)
            if signed:
                s64 = np.maximum(-least, most) / top
            else:
                s64 = (np.maximum(most, 0) - np.minimum(least, 0)) / hi
            s = float_scale(s64)
            if grain == 'block' and fits_half(s64):
                s = s.astype(np.float16) if signed else half_up(s)
            s = np.where(s64 == 0, s.dtype.type(1), s)
            wide = s.astype(f32)
            zero = np.zeros(len(s), f32)
            if not signed:
                zero = np.clip(np.rint(f32(lo) - np.minimum(least, 0).astype(f32) / wide), lo, hi)
            zero, wide = zero[:, None], wide[:, None]
            q = np.clip(np.rint(g / wide), lo - zero, hi - zero)
            scales = {'scale': scale_shape(a, grain, s)}
            if not signed:
                scales['zero'] = scale_shape(a, grain, zero.astype(np.uint8))
            put(out, grain + '_', a, name, (q + zero).astype(np.int8 if signed else np.uint8), q * wide, scales)
    return out


def minimum_file(data, bits):
    """Blocks of 32 with a minimum: x = q * s + m."""
    out, top = {}, 2**bits - 1
    for name, a in each(data, SHORT):
        g = a.reshape(-1, 32)
        least, most = g.min(1), g.max(1)
        m = half_down(least)
        s64 = (most.astype(f64) - m.astype(f64)) / top
        if fits_half(s64) and fits_half(np.abs(m.astype(f64))):
            s = half_up(float_scale(s64))
        else:
            m, s64 = least, (most.astype(f64) - least.astype(f64)) / top
            s = float_scale(s64)
        s = np.where(s64 == 0, s.dtype.type(1), s)
        ws, wm = s.astype(f32)[:, None], m.astype(f32)[:, None]
        q = np.clip(np.rint((g - wm) / ws), 0, top)
        put(out, '', a, name, q.astype(np.uint8), q * ws + wm,
            {'scale': scale_shape(a, 'block', s), 'minimum': scale_shape(a, 'block', m)})
    return out


def ternary_file(data):
    out = {}
    for name, a in each(data, SHORT):
        s = f32(np.abs(a.astype(f64)).mean())
        q = np.clip(np.rint(a / s), -1, 1)
        put(out, '', a, name, q.astype(np.int8), q * s, {'scale': np.array([s])})
    return out


# ---- MX and NVFP4 ----


def exponent(v):
    """floor(log2(v)) of positive numbers, exact."""
    return np.frexp(v)[1] - 1


def mx_exponent(amax, rule, emax, mantissa):
    if rule == 'even':  # rounded half up to the bits of the element's mantissa
        bits = amax.view(np.uint32) + np.uint32(1 << (22 - mantissa))
        up = (bits & np.uint32(0xffffffff << (23 - mantissa) & 0xffffffff)).view(f32)
        e = np.where(np.isfinite(up), exponent(up), 128)
    else:
        e = exponent(amax)
        if rule == 'ceil':
            e = e + (np.ldexp(f64(1), e) < amax)
    return np.where(amax == 0, 0, np.clip(e - emax, -127, 127))


def mx_file(data, e):
    """e: an Element, or None for int8."""
    out = {}
    for rule in ('floor', 'even', 'ceil'):
        for name, a in each(data, LONG if rule == 'floor' else SHORT):
            g = a.reshape(-1, 32)
            k = mx_exponent(np.abs(g).max(1), rule, e.emax if e else 0, e.mantissa if e else 6)
            scale = np.ldexp(f64(1), k)[:, None]
            v = g / scale  # exact in float64
            if e:
                codes = e.saturated(v.astype(f32))
                values = e.values(codes)
            else:
                codes = np.clip(np.rint(v * 64), -127, 127).astype(np.int8)
                values = codes / f64(64)
            put(out, rule + '_', a, name, codes, (values * scale).astype(f32),
                {'scale_codes': (k + 127).astype(np.uint8).reshape(len(a), -1)})
    return out


def nvfp4_file(data):
    out, small, e = {}, elements()['e4m3'], elements()['e2m1']
    for name, a in each(data, LONG):
        g = a.reshape(-1, 16)
        s1 = np.abs(g).max(1).astype(f64) / 6
        s2 = float_scale(np.array(s1.max() / 448))
        codes = small.saturated(s1.astype(f32) / s2)
        codes = np.where(s1 == 0, small.codes(np.ones(1)), np.maximum(codes, 1)).astype(np.uint8)
        s = (small.values(codes) * s2)[:, None]
        q = e.saturated(g / s)
        put(out, '', a, name, q, e.values(q) * s, {'scale_codes': codes.reshape(len(a), -1), 'outer': s2.reshape(1),
                                                   'scale': s.reshape(len(a), -1)})
    return out


# ---- bitsandbytes ----


def table_file(data, kind):
    import torch, bitsandbytes.functional as F
    out = {}
    table = F.get_4bit_type(kind, device='cpu')
    ascending = torch.sort(table).values
    rank = torch.argsort(torch.argsort(table))  # its code to the place in ascending order
    out['table'] = ascending.numpy()
    out['edges'] = ((ascending[:-1] + ascending[1:]) / 2).numpy()

    def encode(a):
        packed, amax = torch.ops.bitsandbytes.quantize_4bit.default(torch.from_numpy(a), 64, kind, torch.uint8)
        packed = packed.flatten()
        return rank[torch.stack([packed >> 4, packed & 15], 1).flatten().long()], amax

    for name, a in each(data, LONG):
        codes, amax = encode(a)
        y = ascending[codes].reshape(-1, 64) * amax[:, None]
        if kind == 'nf4':
            packed, state = F.quantize_4bit(torch.from_numpy(a), quant_type=kind, blocksize=64)
            assert torch.equal(F.dequantize_4bit(packed, state).reshape(-1, 64), y)
        put(out, '', a, name, codes.numpy().astype(np.uint8), y.numpy(), {'scale': amax.numpy().reshape(len(a), -1)})
    if kind == 'nf4':
        out.update(double_quantization(np.concatenate([data['w'], 4 * data['w']]).reshape(1, -1), encode))
    return out


def double_quantization(a, encode):
    """nf4:64:256 of one row: w, then 4 w."""
    import torch, bitsandbytes.functional as F
    packed, state = F.quantize_4bit(torch.from_numpy(a), quant_type='nf4', blocksize=64, compress_statistics=True)
    amax = encode(a)[1]
    assert f32(amax.double().mean().item()) == f32(state.offset), 'torch sums in another order: choose another seed'
    inner, table = state.state2, state.state2.code
    d = (amax - state.offset).reshape(-1, 256)
    near = torch.bucketize(torch.clamp(d * (1 / inner.absmax)[:, None], -1, 1), (table[:-1] + table[1:]) / 2)
    assert torch.equal(near.flatten(), state.absmax.long()), 'the library rounded by its table of 65536 entries'
    scale = (table[state.absmax.long()].reshape(-1, 256) * inner.absmax[:, None]).flatten() + state.offset
    y = F.dequantize_4bit(packed, state)
    assert torch.equal(state.code[encode(a)[0]].reshape(-1, 64) * scale[:, None], y.reshape(-1, 64))
    return {'double_map': table.numpy(), 'double_scale_codes': state.absmax.numpy().reshape(1, -1),
            'double_outer': inner.absmax.numpy().reshape(1, -1), 'double_offset': np.array([f32(state.offset)]),
            'double_scale': scale.numpy().reshape(1, -1), 'double_y': y[0, ::32].numpy()}


# ---- ggml ----


def nibbles(q):
    return np.concatenate([q & 15, q >> 4], -1)


def fields(blocks, *sizes):
    """Splits blocks of bytes; a size in text is a field of that many float16."""
    at = 0
    for s in sizes:
        n = int(s) * 2 if isinstance(s, str) else s
        part = blocks[:, at:at + n]
        yield np.ascontiguousarray(part).view(np.float16) if isinstance(s, str) else part
        at += n
    assert at == blocks.shape[1]


def pairs(q, n=256):
    """Two bits of each element, in blocks of 128 by 32 bytes."""
    q = q.reshape(len(q), -1, 1, 32) >> (2 * np.arange(4, dtype=np.uint8))[None, None, :, None]
    return (q & 3).reshape(len(q), n)


def high_bits(h):
    """Bit e // 32 of byte e % 32 for element e."""
    return ((h[:, None, :] >> np.arange(8, dtype=np.uint8)[None, :, None]) & 1).reshape(len(h), 256)


def scales_k4(s):
    """Eight scales and minima of 6 bits in 12 bytes."""
    lo, hi, mix = s[:, :4], s[:, 4:8], s[:, 8:]
    scale = np.concatenate([lo & 63, (mix & 15) | (lo >> 6 << 4)], 1)
    return scale, np.concatenate([hi & 63, (mix >> 4) | (hi >> 6 << 4)], 1)


def wide(h):
    return h.astype(f32)


def unpack_32(kind, b):
    """Blocks of 32: codes, scales, and the numpy value of each element for a check."""
    if kind == 'q8_0':
        d, q = fields(b, '1', 32)
        return {'codes': q.view(np.int8), 'd': d}, q.view(np.int8) * wide(d)
    if kind in ('mxfp4', 'iq4_nl'):
        from gguf import quants
        table = np.array(quants.MXFP4.kvalues if kind == 'mxfp4' else quants.IQ4_NL.kvalues, f32)
        d, q = fields(b, 1 if kind == 'mxfp4' else '1', 16)
        q = nibbles(q)
        if kind == 'iq4_nl':
            return {'codes': q, 'd': d}, table[q] * wide(d)
        return {'codes': q, 'scale_codes': d}, (table[q] * np.ldexp(f64(0.5), d.astype(int) - 127)).astype(f32)
    part = dict(zip(('d', 'm'), [None, None]))
    if kind[1] == '4':
        *scales, q = fields(b, *(['1'] * (1 + int(kind[3]))), 16)
        q = nibbles(q)
    else:
        *scales, h, q = fields(b, *(['1'] * (1 + int(kind[3]))), 4, 16)
        q = nibbles(q) | np.unpackbits(h, axis=1, bitorder='little') << 4
    part = dict(zip(('d', 'minimum'), scales), codes=q)
    if kind[3] == '1':
        return part, q * wide(scales[0]) + wide(scales[1])
    return part, (q.astype(f32) - 2**(int(kind[1]) - 1)) * wide(scales[0])


def trits(q, n):
    """n trits of each byte, most significant first, trit by trit."""
    shifted = q[:, None, :] * np.array([1, 3, 9, 27, 81], np.uint8)[None, :n, None]
    return (shifted.astype(np.uint16) * 3 >> 8).astype(np.uint8).reshape(len(q), -1)


def unpack_256(kind, b):
    def spread(v, n):
        return np.repeat(v.astype(f32), n, 1)

    if kind == 'tq1_0':
        q, h, d = fields(b, 48, 4, '1')
        q = np.concatenate([trits(q[:, :32], 5), trits(q[:, 32:], 5), trits(h, 4)], 1)
        return {'codes': q, 'd': d}, (q.astype(f32) - 1) * wide(d)
    if kind == 'tq2_0':
        q, d = fields(b, 64, '1')
        q = pairs(q)
        return {'codes': q, 'd': d}, (q.astype(f32) - 1) * wide(d)
    if kind == 'q2_k':
        s, q, d, dmin = fields(b, 16, 64, '1', '1')
        q, scales, mins = pairs(q), s & 15, s >> 4
        y = spread(wide(d) * scales, 16) * q - spread(wide(dmin) * mins, 16)
        return {'codes': q, 'scale_codes': scales, 'minimum_codes': mins, 'd': d, 'dmin': dmin}, y
    if kind == 'q3_k':
        h, q, s, d = fields(b, 32, 64, 12, '1')
        q = pairs(q) | high_bits(h) << 2
        low = np.concatenate([s[:, :8] & 15, s[:, :8] >> 4], 1)
        high = np.concatenate([s[:, 8:] >> 2 * i & 3 for i in range(4)], 1)
        scales = (low | high << 4).astype(np.int8) - np.int8(32)
        return {'codes': q, 'scale_codes': scales, 'd': d}, spread(wide(d) * scales, 16) * (q.astype(f32) - 4)
    if kind == 'q6_k':
        ql, qh, s, d = fields(b, 128, 64, 16, '1')
        low = ql.reshape(-1, 2, 64)
        low = np.concatenate([low & 15, low >> 4], 2).reshape(-1, 256)
        q, scales = low | pairs(qh) << 4, s.view(np.int8)
        return {'codes': q, 'scale_codes': scales, 'd': d}, spread(wide(d) * scales, 16) * (q.astype(f32) - 32)
    d, dmin, s, *h, q = fields(b, '1', '1', 12, *([32] if kind == 'q5_k' else []), 128)
    q = nibbles(q.reshape(-1, 4, 32)).reshape(-1, 256)
    if h:
        q = q | high_bits(h[0]) << 4
    scales, mins = scales_k4(s)
    y = spread(wide(d) * scales, 32) * q - spread(wide(dmin) * mins, 32)
    return {'codes': q, 'scale_codes': scales, 'minimum_codes': mins, 'd': d, 'dmin': dmin}, y


class Ggml:
    """ggml_quantize_chunk and the functions dequantize_row_*."""
    simple = ['mxfp4', 'q8_0', 'q4_0', 'q4_1', 'q5_0', 'q5_1', 'tq1_0', 'tq2_0']  # gguf has encoders for them
    weighted = ['q4_0', 'q4_1', 'q5_0', 'q5_1', 'q2_k', 'q3_k', 'q4_k', 'q5_k', 'q6_k', 'iq4_nl']
    names = simple + ['q2_k', 'q3_k', 'q4_k', 'q5_k', 'q6_k', 'iq4_nl']

    def __init__(self, path):
        self.lib = ctypes.CDLL(path, mode=os.RTLD_LAZY)
        self.lib.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + \
            [ctypes.c_int64] * 3 + [ctypes.c_void_p]

    @staticmethod
    def type(kind):
        import gguf
        return getattr(gguf.GGMLQuantizationType, kind.upper())

    def encode(self, kind, a, importance=None):
        import gguf
        block, size = gguf.GGML_QUANT_SIZES[self.type(kind)]
        a = np.ascontiguousarray(a)
        out = np.zeros((a.size // block, size), np.uint8)
        weight = None if importance is None else importance.ctypes.data
        self.lib.ggml_quantize_chunk(int(self.type(kind)), a.ctypes.data, out.ctypes.data, 0, *a.shape, weight)
        return out

    def decode(self, kind, blocks, shape):
        y = np.empty(shape, f32)
        blocks = np.ascontiguousarray(blocks)
        row = getattr(self.lib, 'dequantize_row_' + kind.replace('_k', '_K'))
        row(ctypes.c_void_p(blocks.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_int64(y.size))
        return y

    @staticmethod
    def unpack(kind, blocks):
        return (unpack_256 if kind[-1] == 'k' or kind[0] == 't' else unpack_32)(kind, blocks)


def same(a, b):
    """Equal bits, except for the sign of zeros: all-zero blocks have the scale -0 in ggml and 0 in gguf."""
    return np.array_equal((a.reshape(b.shape) + f32(0)).view(np.uint32), (b + f32(0)).view(np.uint32))


def ggml_file(data, kind, ggml):
    import gguf
    out = {}
    for variant in [''] + ['importance_'] * (kind in Ggml.weighted):
        for name, a in each(data, NORMAL):
            blocks = ggml.encode(kind, a, data['importance'] if variant else None)
            y = ggml.decode(kind, blocks, a.shape)
            part, own = ggml.unpack(kind, blocks)
            assert same(own, y) and same(gguf.dequantize(blocks, ggml.type(kind)), y), kind
            if kind in Ggml.simple and not variant:
                peer = ggml.unpack(kind, gguf.quantize(a, ggml.type(kind)).reshape(blocks.shape))[0]
                assert all(np.array_equal(peer[k], part[k]) for k in part), kind
            codes = part.pop('codes')
            put(out, variant, a, name, codes, y, {k: v.reshape(len(a), -1) for k, v in part.items()})
    return out


# ---- files ----


def table_of_files(data, ggml):
    e = elements()
    made = {'inputs': lambda: data, 'elements': lambda: element_file()['elements'], 'nvfp4': lambda: nvfp4_file(data),
            'ternary': lambda: ternary_file(data), 'nf4': lambda: table_file(data, 'nf4'),
            'af4': lambda: table_file(data, 'af4'), 'mxint8': lambda: mx_file(data, None)}
    for name, spec in (('e4m3', 'fp8_e4m3'), ('e5m2', 'fp8_e5m2'), ('e2m3', 'fp6_e2m3'), ('e3m2', 'fp6_e3m2'),
                       ('e2m1', 'fp4_e2m1')):
        made[spec] = lambda name=name: float_file(data, e[name])
        made['mx' + spec.replace('fp4_e2m1', 'fp4')] = lambda name=name: mx_file(data, e[name])
    for bits in (2, 3, 5, 6):
        for signed in (True, False):
            made['%sint%d' % ('' if signed else 'u', bits)] = \
                lambda bits=bits, signed=signed: affine_file(data, bits, signed)
    for bits in range(2, 9):
        made['uint%d_min' % bits] = lambda bits=bits: minimum_file(data, bits)
    for kind in Ggml.names if ggml else []:
        made['gguf_mxfp4' if kind == 'mxfp4' else kind] = lambda kind=kind: ggml_file(data, kind, ggml)
    return made


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--out', default='tests/quant/golden')
    p.add_argument('--ggml', metavar='LIBRARY')
    p.add_argument('names', nargs='*', metavar='NAME')
    args = p.parse_args()
    data = inputs()
    made = table_of_files(data, Ggml(args.ggml) if args.ggml else None)
    unknown = [n for n in args.names if n not in made]
    if unknown:
        sys.exit('goldens.py: wanted names of %s, got %s' % (' '.join(made), ' '.join(unknown)))
    total = 0
    for name in args.names or made:
        path = os.path.join(args.out, name + '.npz')
        np.savez_compressed(path, **made[name]())
        total += os.path.getsize(path)
        print('%8d %s' % (os.path.getsize(path), path))
    print('%8d bytes' % total)


if __name__ == '__main__':
    main()
