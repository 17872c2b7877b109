package aten

import (
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Random tensors and dropout. Each draw is named by its key, so the same key gives the same numbers on every path.

const drawOptions = tensorOptions + ", Generator? generator=None"

func init() {
	creations()
	distributions()
	dropouts()
}

func (e em) uniform(d dtype.DType, shape []int, key *ir.Value) *ir.Value {
	return e.Op("uniform", e.Ints(shape...), key, e.DType(d))
}

func (e em) normal(d dtype.DType, shape []int, key *ir.Value) *ir.Value {
	return e.Op("normal", e.Ints(shape...), key, e.DType(d))
}

// creations make tensors of independent numbers.
func creations() {
	for _, c := range []struct {
		name string
		draw func(e em, d dtype.DType, shape []int, key *ir.Value) *ir.Value
	}{{"rand", em.uniform}, {"randn", em.normal}} {
		def(Torch, c.name+"(int[] size, "+drawOptions+") -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
			d := optDType(e.Builder, a[1], dtype.F32)
			e.floatDraw(c.name, d)
			return c.draw(e, d, e.drawShape(constInts(e.Builder, a[0])), a[len(a)-1])
		}), isRandom)
		def(Torch, c.name+"_like(Tensor self, "+likeOptions+") -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
			d := optDType(e.Builder, a[1], e.NeedDType(a[0]))
			e.floatDraw(c.name+"_like", d)
			return c.draw(e, d, e.NeedShape(a[0]), a[len(a)-1])
		}), isRandom)
	}
	def(Torch, "randint(int high, int[] size, "+drawOptions+") -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.randint(e.Int(0), a[0], e.drawShape(constInts(e.Builder, a[1])), optDType(e.Builder, a[2], dtype.I64), a[len(a)-1])
	}), isRandom)
	def(Torch, "randint.low(int low, int high, int[] size, "+drawOptions+") -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.randint(a[0], a[1], e.drawShape(constInts(e.Builder, a[2])), optDType(e.Builder, a[3], dtype.I64), a[len(a)-1])
	}), isRandom)
	def(Torch, "randint_like(Tensor self, int high, "+likeOptions+") -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.randint(e.Int(0), a[1], e.NeedShape(a[0]), optDType(e.Builder, a[2], e.NeedDType(a[0])), a[len(a)-1])
	}), isRandom)
	def(Torch, "randint_like.low(Tensor self, int low, int high, "+likeOptions+") -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.randint(a[1], a[2], e.NeedShape(a[0]), optDType(e.Builder, a[3], e.NeedDType(a[0])), a[len(a)-1])
	}), isRandom)
	def(Torch, "randperm(int n, "+drawOptions+") -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		n := constInt(e.Builder, a[0])
		if n < 0 {
			e.Failf("n must be non-negative, got %d", n)
		}
		order := e.Emit("sort", e.uniform(dtype.F64, []int{n}, a[len(a)-1]), e.Int(0), e.Bool(false), e.Bool(true))[1]
		return cast(e.Builder, order, optDType(e.Builder, a[1], dtype.I64))
	}), isRandom)
}

func (e em) floatDraw(name string, d dtype.DType) {
	if !d.IsFloat() {
		e.Failf("%q not implemented for '%s': expected a floating point dtype", name, typeName(d))
	}
}

// drawShape checks the sizes of a tensor to be made.
func (e em) drawShape(shape []int) []int {
	for _, n := range shape {
		if n < 0 {
			e.Failf("Trying to create tensor with negative dimension %d: %v", n, shape)
		}
	}
	return shape
}

// randint draws from low … high-1.
func (e em) randint(low, high *ir.Value, shape []int, d dtype.DType, key *ir.Value) *ir.Value {
	lo, hi := constInt(e.Builder, low), constInt(e.Builder, high)
	if lo >= hi {
		e.Failf("random_ expects 'from' to be less than 'to', but got from=%d >= to=%d", lo, hi)
	}
	bits := e.Op("randint_bits", e.Ints(shape...), key)
	v := e.add(binary(e.Builder, "remainder", bits, e.Int(hi-lo)), e.Int(lo))
	return cast(e.Builder, v, d)
}

// distributions draw numbers whose law depends on arguments. Those with a tensor self are also the bases of the in-place methods
// normal_, uniform_, …, which use only its shape and dtype.
func distributions() {
	fillWith := func(schema string, f func(e em, u *ir.Value, a []*ir.Value) *ir.Value) {
		def(Method|Hidden, schema, expand1(func(e em, a []*ir.Value) *ir.Value {
			d := e.NeedDType(a[0])
			e.floatDraw(schema[:indexByte(schema, '(')]+"_", d)
			return f(e, e.uniform(d, e.NeedShape(a[0]), a[len(a)-1]), a)
		}), isRandom)
	}
	fillWith("uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor", func(e em, u *ir.Value, a []*ir.Value) *ir.Value {
		lo, hi := constFloat(e.Builder, a[1]), constFloat(e.Builder, a[2])
		if lo > hi {
			e.Failf("uniform_ expects to return a [from, to) range, but found from=%g > to=%g", lo, hi)
		}
		return e.addF(e.mulF(u, hi-lo), lo)
	})
	fillWith("exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor", func(e em, u *ir.Value, a []*ir.Value) *ir.Value {
		return e.div(e.neg(e.Op("log1p", e.neg(u))), a[1])
	})
	fillWith("cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor", func(e em, u *ir.Value, a []*ir.Value) *ir.Value {
		return e.add(e.mul(e.Op("tan", e.mulF(e.addF(u, -0.5), math.Pi)), a[2]), a[1])
	})
	fillWith("geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor", func(e em, u *ir.Value, a []*ir.Value) *ir.Value {
		p := constFloat(e.Builder, a[1])
		if p <= 0 || p >= 1 {
			e.Failf("geometric_ expects p to be in (0, 1), but got p=%g", p)
		}
		return e.addF(e.Op("floor", e.divF(e.Op("log1p", e.neg(u)), math.Log1p(-p))), 1)
	})
	def(Method|Hidden, "log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.exp(e.normalLike(a[0], a[1], a[2], a[len(a)-1]))
	}), isRandom)
	def(Method|Hidden, "normal.fill(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.normalLike(a[0], a[1], a[2], a[len(a)-1])
	}), isRandom)
	def(Method|Hidden, "random(Tensor self, int from=0, int? to=None, *, Generator? generator=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		d := e.NeedDType(a[0])
		to := a[2]
		if isNone(to) {
			to = e.Int(randomLimit(d))
		}
		return e.randint(a[1], to, e.NeedShape(a[0]), d, a[len(a)-1])
	}), isRandom)
	def(Method|Hidden, "random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.randint(e.Int(0), a[1], e.NeedShape(a[0]), e.NeedDType(a[0]), a[len(a)-1])
	}), isRandom)

	def(Method|Torch, "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		d := e.NeedDType(a[0])
		e.floatDraw("bernoulli", d)
		return cast(e.Builder, e.lt(e.uniform(d, e.NeedShape(a[0]), a[2]), e.detach(a[0])), d)
	}), isRandom)
	def(Method|Torch, "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return cast(e.Builder, e.lt(e.uniform(dtype.F64, e.NeedShape(a[0]), a[3]), a[1]), e.NeedDType(a[0]))
	}), isRandom)
	def(Torch, "normal.float_float(float mean, float std, int[] size, "+drawOptions+") -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		d := optDType(e.Builder, a[3], dtype.F32)
		return e.add(e.mul(e.normal(d, e.drawShape(constInts(e.Builder, a[2])), a[len(a)-1]), a[1]), a[0])
	}), isRandom)
	spread := func(e em, a []*ir.Value) *ir.Value {
		mean, std, key := a[0], a[1], a[len(a)-1]
		d := floatOf(promote(e.Builder, mean, std))
		shape := e.NeedShape(operands(e.Builder, d, mean, std)[0])
		return e.add(e.mul(e.normal(d, shape, key), std), mean)
	}
	def(Torch, "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor", expand1(spread), isRandom)
	def(Torch, "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor", expand1(spread), isRandom)
	def(Torch, "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", expand1(spread), isRandom)
	def(Method|Torch, "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.multinomial(a[0], constInt(e.Builder, a[1]), constBool(e.Builder, a[2]), a[4])
	}), isRandom)
	def(Torch, "poisson(Tensor self, Generator? generator=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		e.Failf("torch.poisson is not supported: draw from torch.rand or torch.normal instead")
		return nil
	}), isRandom)
}

func indexByte(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return len(s)
}

func (e em) normalLike(x, mean, std, key *ir.Value) *ir.Value {
	d := e.NeedDType(x)
	e.floatDraw("normal_", d)
	return e.add(e.mul(e.normal(d, e.NeedShape(x), key), std), mean)
}

// randomLimit is one more than the largest number that random_ draws: the dtype's largest, or all integers that a float dtype has.
func randomLimit(d dtype.DType) int {
	switch d {
	case dtype.Bool:
		return 2
	case dtype.U8:
		return 1 << 8
	case dtype.I8:
		return 1 << 7
	case dtype.I16:
		return 1 << 15
	case dtype.I32:
		return 1 << 31
	case dtype.F16:
		return 1<<11 + 1
	case dtype.BF16:
		return 1<<8 + 1
	case dtype.F32:
		return 1<<24 + 1
	case dtype.F64:
		return 1<<53 + 1
	}
	return math.MaxInt64
}

// multinomial draws indices of the last dim with the probabilities that the rows are proportional to.
func (e em) multinomial(x *ir.Value, n int, replacement bool, key *ir.Value) *ir.Value {
	e.floatDraw("multinomial", e.NeedDType(x))
	s := e.NeedShape(x)
	if len(s) != 1 && len(s) != 2 {
		e.Failf("prob_dist must be 1 or 2 dim, got shape %v", s)
	}
	classes := s[len(s)-1]
	last := len(s) - 1
	if n <= 0 {
		e.Failf("cannot sample n_sample <= 0 samples, got %d", n)
	}
	if !replacement && n > classes {
		e.Failf("cannot sample n_sample > prob_dist.size(-1) samples without replacement: %d of %d", n, classes)
	}
	p := cast(e.Builder, e.detach(x), dtype.F64)
	if !replacement { // an exponential race: the n largest of p/exponential
		expo := e.maxi(e.neg(e.Op("log1p", e.neg(e.uniform(dtype.F64, s, key)))), e.Float(1e-300))
		order := e.Emit("sort", e.div(p, expo), e.Int(last), e.Bool(true), e.Bool(true))[1]
		return e.slice(order, last, 0, n)
	}
	sums := e.Op("cumsum", p, e.Int(last))
	total := e.slice(sums, last, classes-1, classes)
	u := e.mul(e.uniform(dtype.F64, replace(s, last, n), key), total)
	passed := e.le(e.insert(sums, last), e.insert(u, last+1)) // [..., n, classes]
	return e.mini(e.sum(cast(e.Builder, passed, dtype.I64), false, last+1), e.Int(classes-1))
}

// dropouts give their operand itself where they drop nothing.
func dropouts() {
	def(NN, "dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.dropout(a[0], a[1], a[2], a[4], nil)
	}), isRandom, mayView)
	def(Torch, "dropout.torch(Tensor input, float p, bool train) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.dropout(a[0], a[1], a[2], a[3], nil)
	}), isRandom, mayView)
	for n := 1; n <= 3; n++ {
		name := fmt.Sprintf("dropout%dd", n)
		def(NN, name+"(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
			if e.dropsNothing(a[1], a[2]) {
				return a[0]
			}
			return e.dropout(a[0], a[1], a[2], a[4], e.channelMask(n, e.NeedShape(a[0])))
		}), isRandom, mayView)
	}
	def(NN, "alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.alphaDropout(a[0], a[1], a[2], a[4], e.NeedShape(a[0]))
	}), isRandom, mayView)
	def(NN, "feature_alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.featureAlphaDropout(a[0], a[1], a[2], a[4])
	}), isRandom, mayView)
	def(Torch, "alpha_dropout.torch(Tensor input, float p, bool train) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.alphaDropout(a[0], a[1], a[2], a[3], e.NeedShape(a[0]))
	}), isRandom, mayView)
	def(Torch, "feature_alpha_dropout.torch(Tensor input, float p, bool train) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.featureAlphaDropout(a[0], a[1], a[2], a[3])
	}), isRandom, mayView)
	def(Torch, "feature_dropout(Tensor input, float p, bool train) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		if e.dropsNothing(a[1], a[2]) {
			return a[0]
		}
		s := e.NeedShape(a[0])
		return e.dropout(a[0], a[1], a[2], a[3], e.channelMask(len(s)-2, s))
	}), isRandom, mayView)
	def(Torch, "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
		e := em{b}
		if isNone(a[2]) {
			a[2] = e.Bool(true)
		}
		kept := e.dropout(e.full(e.NeedDType(a[0]), 1, e.NeedShape(a[0])...), a[1], a[2], a[3], nil)
		return []*ir.Value{e.mul(a[0], kept), e.ne(kept, e.Float(0))}
	}, isRandom)
}

// dropsNothing reports whether a dropout gives its operand itself.
func (e em) dropsNothing(p, training *ir.Value) bool {
	return e.dropProbability(p) == 0 || !constBool(e.Builder, training)
}

func (e em) featureAlphaDropout(x, p, training, key *ir.Value) *ir.Value {
	if e.dropsNothing(p, training) {
		return x
	}
	s := e.NeedShape(x)
	return e.alphaDropout(x, p, training, key, e.channelMask(len(s)-2, s))
}

// channelMask is the shape of a mask that drops whole channels: [N, C, 1, …]. A 3-d operand of dropout2d counts as [N, C, L].
func (e em) channelMask(n int, s []int) []int {
	mask := ones(len(s))
	if len(s) < 2 {
		e.Failf("Feature dropout requires at least 2 dimensions in the input, got shape %v", s)
	}
	channel := 1
	if len(s) == n+1 && n != 2 {
		channel = 0
	}
	copy(mask[:channel+1], s[:channel+1])
	return mask
}

func (e em) dropProbability(p *ir.Value) float64 {
	f := constFloat(e.Builder, p)
	if !(f >= 0 && f <= 1) {
		e.Failf("dropout probability has to be between 0 and 1, but got %g", f)
	}
	return f
}

// dropout zeroes elements with probability p and scales the others by 1/(1-p); mask is the shape of the random mask, nil for x's.
func (e em) dropout(x, p, training, key *ir.Value, mask []int) *ir.Value {
	prob := e.dropProbability(p)
	if !constBool(e.Builder, training) || prob == 0 {
		return x
	}
	e.needFloat("dropout", x)
	if mask == nil {
		mask = e.NeedShape(x)
	}
	d := e.NeedDType(x)
	if prob == 1 {
		return e.mul(x, e.zeros(d, mask...))
	}
	kept := cast(e.Builder, e.lt(e.uniform(dtype.F32, mask, key), e.Float(1-prob)), d)
	return e.mul(x, e.mulF(kept, 1/(1-prob)))
}

// alphaDropout replaces elements by the negative saturation value of SELU, and keeps mean and variance.
func (e em) alphaDropout(x, p, training, key *ir.Value, mask []int) *ir.Value {
	prob := e.dropProbability(p)
	if !constBool(e.Builder, training) || prob == 0 {
		return x
	}
	e.needFloat("alpha_dropout", x)
	d := e.NeedDType(x)
	if prob == 1 {
		return e.mul(x, e.zeros(d, mask...))
	}
	const alpha = 1.7580993408473766
	a := 1 / math.Sqrt((alpha*alpha*prob+1)*(1-prob))
	kept := cast(e.Builder, e.lt(e.uniform(dtype.F32, mask, key), e.Float(1-prob)), d)
	shift := e.addF(e.mulF(e.addF(kept, -1), alpha*a), alpha*a*prob)
	return e.add(e.mul(x, e.mulF(kept, a)), shift)
}
