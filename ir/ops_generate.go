package ir

import (
	"math"
	"math/bits"

	"github.com/gtc-project/gtc/ir/dtype"
)

// The ops that make tensors from scalars. Random ones are functions of a key: the counter-based generator Philox4x32-10 gives the
// same numbers whatever computes them, in any order.

var (
	_ = register(&Op{
		Name: "full", Doc: "A tensor of the given shape and dtype with one value everywhere, converted to the dtype.",
		Params: []string{"shape", "value", "dtype"}, Class: Generate, NoGrad: true,
		Infer: func(c *Call) ([]Type, error) {
			if err := c.need(3); err != nil {
				return nil, err
			}
			if _, _, err := c.scalarArg(1, KInt, KFloat, KBool); err != nil {
				return nil, err
			}
			return c.generated(0, 2)
		},
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			y, err := tensorOf(out[0])
			if err != nil {
				return nil, err
			}
			fill(y, c.Args[1])
			return one(y)
		}),
	})
	_ = register(&Op{
		Name: "iota", Doc: "The numbers 0, 1, … n-1.",
		Params: []string{"n", "dtype"}, Class: Generate, NoGrad: true,
		Infer: inferIota,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			y, err := tensorOf(out[0])
			if err != nil {
				return nil, err
			}
			for i := 0; i < y.Shape[0]; i++ {
				y.SetInt(i, int64(i))
			}
			return one(y)
		}),
	})
	_ = register(&Op{
		Name: "scalar_tensor", Doc: "The 0-d tensor of a number, converted to the dtype.",
		Params: []string{"value", "dtype"}, Class: Generate, NoGrad: true,
		Infer: func(c *Call) ([]Type, error) {
			if err := c.need(2); err != nil {
				return nil, err
			}
			if _, _, err := c.scalarArg(0, KInt, KFloat, KBool); err != nil {
				return nil, err
			}
			d, err := c.dtypeArg(1)
			return []Type{TensorOf(d)}, err
		},
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) { return one(Scalar(c.DType(1), c.Args[0])) }),
	})
	_ = register(&Op{
		Name: "uniform", Doc: "Random floats, evenly spread over [0, 1): multiples of 2^-24 (f32), 2^-53 (f64), 2^-11 (f16) or 2^-8 (bf16).",
		Params: []string{"shape", "key", "dtype"}, Class: Generate, NoGrad: true,
		Infer: inferRandom, Eval: checked(evalUniform),
	})
	_ = register(&Op{
		Name: "normal", Doc: "Random floats of the standard normal distribution, by the Box-Muller transform in f64, rounded to the dtype.",
		Params: []string{"shape", "key", "dtype"}, Class: Generate, NoGrad: true,
		Infer: inferRandom, Eval: checked(evalNormal),
	})
	_ = register(&Op{
		Name: "randint_bits", Doc: "Random non-negative i64 numbers of 63 bits.",
		Params: []string{"shape", "key"}, Class: Generate, NoGrad: true,
		Infer: func(c *Call) ([]Type, error) {
			if err := c.need(2); err != nil {
				return nil, err
			}
			if _, _, err := c.intArg(1); err != nil {
				return nil, err
			}
			ts, err := c.generated(0, -1)
			if err != nil {
				return nil, err
			}
			return t1(ts[0].withDType(dtype.I64))
		},
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			y, err := tensorOf(out[0])
			if err != nil {
				return nil, err
			}
			r := philox{key: uint64(c.Args[1].(int64))}
			for i := 0; i < y.Len(); i++ {
				y.SetInt(i, int64(r.bits64(i)>>1))
			}
			return one(y)
		}),
	})
)

// generated is the type of a tensor whose shape is operand shape and whose dtype is operand dt (-1: none).
func (c *Call) generated(shape, dt int) ([]Type, error) {
	t := AnyTensor
	if dt >= 0 {
		d, err := c.dtypeArg(dt)
		if err != nil {
			return nil, err
		}
		t.DType = d
	}
	dims, known, err := c.listArg(shape)
	if err != nil {
		return nil, err
	}
	if !known {
		return t1(t)
	}
	n := 1
	for _, d := range dims {
		if d.Known() {
			if n = satMul(n, d.N); n >= MaxElems {
				return nil, c.Errorf("shape %s has too many elements", dimsString(dims))
			}
		}
	}
	return t1(t.withDims(dims))
}

func inferIota(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	n, known, err := c.intArg(0)
	if err != nil {
		return nil, err
	}
	if known && n < 0 {
		return nil, c.Errorf("expected a non-negative size, got %d", n)
	}
	d, err := c.dtypeArg(1)
	if err != nil {
		return nil, err
	}
	if d == dtype.Bool {
		return nil, c.Errorf("expected a dtype of numbers, got %s", d)
	}
	size := Unknown
	if len(c.Vals) > 0 {
		size = sizeValue(c.Vals[0])
	}
	return t1(TensorDims(d, []Dim{size}))
}

func inferRandom(c *Call) ([]Type, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	if _, _, err := c.intArg(1); err != nil {
		return nil, err
	}
	ts, err := c.generated(0, 2)
	if err == nil && ts[0].DType != dtype.Invalid && !ts[0].DType.IsFloat() {
		return nil, c.Errorf("expected a floating-point dtype, got %s", ts[0].DType)
	}
	return ts, err
}

// philox draws from one key's stream. Block n of the stream is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", 2011) of the counter (n low, n high, 0, 0) and the key (low, high).
type philox struct {
	key   uint64
	block [4]uint32
	at    int // the number of the block at hand, plus 1
}

func (p *philox) word(block, w int) uint32 {
	if p.at != block+1 {
		p.block, p.at = PhiloxBlock(p.key, uint64(block)), block+1
	}
	return p.block[w]
}

// bits64 are the 64 bits of element i: words 0 and 1, or 2 and 3, of block i/2, the first one low.
func (p *philox) bits64(i int) uint64 {
	w := 2 * (i & 1)
	return uint64(p.word(i/2, w)) | uint64(p.word(i/2, w+1))<<32
}

// PhiloxBlock is Philox4x32-10 of a counter and a key.
func PhiloxBlock(key, counter uint64) [4]uint32 {
	c := [4]uint32{uint32(counter), uint32(counter >> 32), 0, 0}
	k0, k1 := uint32(key), uint32(key>>32)
	for round := 0; round < 10; round++ {
		hi0, lo0 := bits.Mul32(0xD2511F53, c[0])
		hi1, lo1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k0, lo1, hi0 ^ c[3] ^ k1, lo0}
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return c
}

// evalUniform takes word i%4 of block i/4 for element i, for f64 bits64(i); the low bits count.
func evalUniform(c *EvalCall, out []Type) ([]Datum, error) {
	y, err := tensorOf(out[0])
	if err != nil {
		return nil, err
	}
	r := philox{key: uint64(c.Args[1].(int64))}
	digits := map[dtype.DType]int{dtype.F32: 24, dtype.F16: 11, dtype.BF16: 8}[y.DType]
	for i := 0; i < y.Len(); i++ {
		if y.DType == dtype.F64 {
			y.SetFloat(i, float64(r.bits64(i)&(1<<53-1))*0x1p-53)
			continue
		}
		w := r.word(i/4, i%4) & (1<<digits - 1)
		y.SetFloat(i, math.Ldexp(float64(w), -digits))
	}
	return one(y)
}

// evalNormal makes elements 2n and 2n+1 from block n: with u and v of 53 bits from bits64(2n) and bits64(2n+1), radius
// sqrt(-2 ln(1-u)) and angle 2 pi v give the cosine and the sine part.
func evalNormal(c *EvalCall, out []Type) ([]Datum, error) {
	y, err := tensorOf(out[0])
	if err != nil {
		return nil, err
	}
	r := philox{key: uint64(c.Args[1].(int64))}
	n := y.Len()
	for i := 0; i < n; i += 2 {
		u := float64(r.bits64(i)&(1<<53-1)) * 0x1p-53
		v := float64(r.bits64(i+1)&(1<<53-1)) * 0x1p-53
		radius := math.Sqrt(-2 * math.Log1p(-u))
		sin, cos := math.Sincos(2 * math.Pi * v)
		y.SetFloat(i, radius*cos)
		if i+1 < n {
			y.SetFloat(i+1, radius*sin)
		}
	}
	return one(y)
}
