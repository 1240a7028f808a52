"""Writes an input and weights of frontend.json, with which results use most bytes."""
import numpy, sys
r = numpy.random.default_rng(1)
n = {}
for l, k, c in (('Conv_1', 16, 3), ('Conv_2', 24, 16)):
    n[l + '.weight'] = r.integers(-127, 128, (k, c, 3, 3), 'i1')
    n[l + '.scale'] = r.uniform(0.5, 1.5, k).astype('f4') * 4e-5
    n[l + '.bias'] = r.uniform(-0.2, 0.2, k).astype('f4')
n['input1'] = r.normal(size=(2, 3, 10, 10)).astype('f2')
numpy.savez(sys.argv[1], **n)
