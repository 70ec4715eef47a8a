# SPDX-License-Identifier: MIT
"""TensorFlow Lite (LiteRT) with XNNPACK, its default: MLPerf Tiny's int8 ResNet8, codes in and out, one thread. Its file is taken from
QUOLL_DATA/weights."""
import os

FILE = 'mlperf-tiny-resnet8-int8.tflite'


def network(case, item, a, threads):
    if case != 'exported' or threads != 1:
        return None
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter
    path = os.path.join(os.environ.get('QUOLL_DATA', ''), 'weights', FILE)
    if not os.path.exists(path):
        raise ValueError('no weights/%s in QUOLL_DATA' % FILE)
    t = Interpreter(path, num_threads=1)
    t.allocate_tensors()
    i = t.get_input_details()[0]
    t.set_tensor(i['index'], np.zeros(i['shape'], i['dtype']))
    return t.invoke


PEERS = {'tflite': network}
