package aten

import (
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Ordering, searching, running totals, and sets of values.

func init() {
	sorts()
	scans()
	searches()
	sets()
	differences()
}

func sorts() {
	def(Method|Torch, "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return sortAlong(b, args[0], args[1], args[2])
	})
	def(Method|Torch, "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value { return sortAlong(b, args[0], args[2], args[3]) })
	def(Method|Torch, "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return sortAlong(b, args[0], args[1], args[2])[1:]
	})
	def(Method|Torch, "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return sortAlong(b, args[0], args[2], args[3])[1:]
	})
	def(Method|Torch, "msort(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return sortAlong(b, args[0], b.Int(0), b.Bool(false))[:1]
	})
	def(Method|Torch, "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", topk)
	def(Method|Torch, "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			k := constInt(b, args[1])
			return pick(b, args[0], args[2], args[3], func(x *ir.Value, dim int) *ir.Value {
				if n := shapeOf(b, x)[dim]; k < 1 || k > n {
					b.Failf("kthvalue(): selected number k out of range for dimension %d: k = %d, size %d", dim, k, n)
				}
				_, order := sorted(b, x, dim)
				return sliceDim(b, order, dim, k-1, k, 1)
			})
		})
}

func sortAlong(b *ir.Builder, x, dimArg, descending *ir.Value) []*ir.Value {
	dim := wrapDim(b, constInt(b, dimArg), rank(b, x))
	if rank(b, x) == 0 {
		return []*ir.Value{x, fill(b, 0, dtype.I64, nil)}
	}
	return b.Emit("sort", x, b.Int(dim), b.Bool(constBool(b, descending)), b.Bool(true))
}

func topk(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, k := args[0], constInt(b, args[1])
	dim := wrapDim(b, constInt(b, args[2]), rank(b, x))
	if rank(b, x) == 0 {
		if k > 1 {
			b.Failf("selected index k out of range: k = %d for a 0-d tensor", k)
		}
		return []*ir.Value{x, fill(b, 0, dtype.I64, nil)}
	}
	if n := shapeOf(b, x)[dim]; k < 0 || k > n {
		b.Failf("selected index k out of range: k = %d for dimension %d of size %d", k, dim, n)
	}
	r := b.Emit("sort", x, b.Int(dim), args[3], b.Bool(true))
	return []*ir.Value{sliceDim(b, r[0], dim, 0, k, 1), sliceDim(b, r[1], dim, 0, k, 1)}
}

func scans() {
	for _, op := range []string{"cumsum", "cumprod"} {
		def(Method|Torch, op+"(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			x := args[0]
			dim := wrapDim(b, constInt(b, args[1]), rank(b, x))
			x = cast(b, x, optDType(b, args[2], sumType(dt(b, x))))
			if rank(b, x) == 0 {
				return one(x)
			}
			return one(b.Op(op, x, b.Int(dim)))
		})
	}
	for _, op := range []string{"cummax", "cummin"} {
		def(Method|Torch, op+"(Tensor self, int dim) -> (Tensor values, Tensor indices)", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			dim := wrapDim(b, constInt(b, args[1]), rank(b, args[0]))
			if rank(b, args[0]) == 0 {
				return []*ir.Value{args[0], fill(b, 0, dtype.I64, nil)}
			}
			return b.Emit(op, args[0], b.Int(dim))
		})
	}
	def(Method|Torch, "logcumsumexp(Tensor self, int dim) -> Tensor", logcumsumexp)
}

// logcumsumexp gives each place the logsumexp of the elements up to it, each with its own maximum, so that small beginnings keep
// their precision. It looks at all pairs.
func logcumsumexp(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x := args[0]
	needFloat(b, "logcumsumexp", x)
	r := rank(b, x)
	dim := wrapDim(b, constInt(b, args[1]), r)
	if r == 0 || numel(b, x) == 0 {
		return one(x)
	}
	n := shapeOf(b, x)[dim]
	row := moveDim(b, x, dim, r-1)
	upTo := b.Op("le", broadcast(b, along(b, 2, 1, n, 0), along(b, 2, 0, n, 0))...)
	pairs := em{b}.where(upTo, unsqueeze(b, row, r-1), number(b, negInf(), dt(b, x)))
	return one(moveDim(b, logsumexp(b, pairs, []int{r}, false), r-1, dim))
}

func negInf() float64 { return lowest(dtype.F64).(float64) }

func searches() {
	for _, form := range []string{"Tensor self", "Scalar self"} {
		name := map[string]string{"Tensor self": ".Tensor", "Scalar self": ".Scalar"}[form]
		def(Torch, "searchsorted"+name+"(Tensor sorted_sequence, "+form+", *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
			func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				seq, right := args[0], constBool(b, args[3])
				if !isNone(args[4]) {
					side := constStr(b, args[4])
					if side != "left" && side != "right" || side == "left" && right {
						b.Failf("torch.searchsorted(): side can only be 'left' or 'right' and must agree with right, got side = %s", side)
					}
					right = side == "right"
				}
				if !isNone(args[5]) {
					seq = b.Op("gather", seq, b.Int(rank(b, seq)-1), args[5])
				}
				return one(place(b, seq, args[1], right, constBool(b, args[2])))
			})
		def(Torch, "bucketize"+name+"("+form+", Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
			func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				if rank(b, args[1]) != 1 {
					b.Failf("boundaries tensor must be 1 dimension, but got dim(%d)", rank(b, args[1]))
				}
				return one(place(b, args[1], args[0], constBool(b, args[3]), constBool(b, args[2])))
			})
	}
	isin := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d := promote(b, args[0], args[1])
		x, set := tensorArg(b, args[0], d), tensorArg(b, args[1], d)
		r := rank(b, x)
		set = reshape(b, set, []int{numel(b, set)})
		eq := b.Op("eq", broadcast(b, unsqueeze(b, x, r), set)...)
		in := reduce(b, "any", eq, []int{r}, false)
		if constBool(b, args[3]) {
			in = b.Op("logical_not", in)
		}
		return one(in)
	}
	def(Torch, "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor", isin)
	def(Torch, "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor", isin)
	def(Torch, "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor", isin)
}

// place is the number of elements of an ascending sequence that come before each value. The sequence is a vector, or has one row for
// each row of values.
func place(b *ir.Builder, seq, values *ir.Value, right, int32Out bool) *ir.Value {
	d := promote(b, seq, values)
	seq, values = cast(b, seq, d), tensorArg(b, values, d)
	rs, rv := rank(b, seq), rank(b, values)
	if rs > 1 && (rv != rs || !sameInts(shapeOf(b, seq)[:rs-1], shapeOf(b, values)[:rs-1])) {
		b.Failf("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor %v and input value tensor %v", shapeOf(b, seq), shapeOf(b, values))
	}
	if rs > 1 {
		seq = unsqueeze(b, seq, rs-1)
	}
	xy := broadcast(b, unsqueeze(b, values, rv), seq)
	v, s := xy[0], xy[1]
	// "not <" rather than ">=": a NaN value comes after every element
	before := b.Op("logical_not", b.Op("le", v, s))
	if right {
		before = b.Op("logical_not", b.Op("lt", v, s))
	}
	out := dtype.I64
	if int32Out {
		out = dtype.I32
	}
	return cast(b, reduce(b, "sum", cast(b, before, dtype.I64), []int{rv}, false), out)
}

// sets are functions whose result sizes depend on the values. The number of their results depends on the flags: there is a form for
// each set of them.
func sets() {
	for flags, pick := range map[string][]int{
		".inverse(Tensor self%s, bool return_inverse, int? dim=None) -> (Tensor, Tensor)":                          {0, 1},
		".counts(Tensor self%s, *, bool return_counts, int? dim=None) -> (Tensor, Tensor)":                         {0, 2},
		".both(Tensor self%s, bool return_inverse, bool return_counts, int? dim=None) -> (Tensor, Tensor, Tensor)": {0, 1, 2},
		"(Tensor self%s, *, int? dim=None) -> Tensor":                                                              {0},
	} {
		for name, order := range map[string]string{"unique": ", bool sorted=True", "unique_consecutive": ""} {
			first := 1
			if order != "" {
				first = 2
			}
			def(Method|Torch, name+strings.Replace(flags, "%s", order, 1), func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				last := len(args) - 1
				for _, flag := range args[first:last] {
					if !constBool(b, flag) {
						b.Failf("%s: leave out return_inverse and return_counts rather than pass False: they decide how many results there are", name)
					}
				}
				var all []*ir.Value
				if isNone(args[last]) {
					all = uniqueValues(b, args[0], name == "unique", len(pick) > 1)
				} else {
					all = uniqueSlices(b, args[0], constInt(b, args[last]), name == "unique")
				}
				var out []*ir.Value
				for _, i := range pick {
					out = append(out, all[i])
				}
				return out
			})
		}
	}
	def(Torch|Hidden, "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value { return uniqueValues(b, args[0], true, true) })
}

// runStarts is true for each place along dim 0 whose elements differ from those of the place before.
func runStarts(b *ir.Builder, v *ir.Value) *ir.Value {
	n := shapeOf(b, v)[0]
	changed := b.Op("ne", sliceDim(b, v, 0, 1, n, 1), sliceDim(b, v, 0, 0, n-1, 1))
	if r := rank(b, v); r > 1 {
		changed = reduce(b, "any", changed, seq(r)[1:], false)
	}
	return concat(b, 0, fill(b, true, dtype.Bool, []int{1}), changed)
}

// uniqueValues gives the distinct elements of x in ascending order, or of each run of equal ones the first, and with all where each
// element of x is among them and how often each occurs.
func uniqueValues(b *ir.Builder, x *ir.Value, ordered, all bool) []*ir.Value {
	shape := shapeOf(b, x)
	n := product(shape)
	x = reshape(b, x, []int{n})
	if n == 0 {
		return []*ir.Value{x, fill(b, 0, dtype.I64, shape), fill(b, 0, dtype.I64, []int{0})}
	}
	v, order := x, counting(b, n, dtype.I64)
	if ordered {
		v, order = sorted(b, x, 0)
	}
	starts := runStarts(b, v)
	out := []*ir.Value{b.Op("take", v, positions(b, starts)[0])}
	if !all {
		return out
	}
	inverse, counts := groups(b, starts, order)
	return append(out, reshape(b, inverse, shape), counts)
}

// groups numbers runs: the run that each element, whose place before sorting is in order, lies in, and how long each run is.
func groups(b *ir.Builder, starts, order *ir.Value) (inverse, counts *ir.Value) {
	group := apply(b, "sub", b.Op("cumsum", cast(b, starts, dtype.I64), b.Int(0)), 1)
	zeros := zerosLike(b, group)
	inverse = b.Op("scatter", zeros, b.Int(0), order, group)
	counts = b.Op("scatter_reduce", zeros, b.Int(0), group, onesLike(b, group), b.Str("add"), b.Bool(true))
	return inverse, b.Op("take", counts, positions(b, apply(b, "gt", counts, 0))[0])
}

// uniqueSlices is uniqueValues for the slices of x along a dim, which are ordered by their elements, the first ones first.
func uniqueSlices(b *ir.Builder, x *ir.Value, dimArg int, ordered bool) []*ir.Value {
	shape := shapeOf(b, x)
	dim := wrapDim(b, dimArg, len(shape))
	if len(shape) == 0 {
		return uniqueValues(b, x, ordered, true)
	}
	n := shape[dim]
	if n == 0 {
		none := fill(b, 0, dtype.I64, []int{0})
		return []*ir.Value{x, none, none}
	}
	if product(shape) == 0 {
		b.Failf("unique: there are 0 sized dimensions in %v, and they aren't selected, so unique cannot be applied", shape)
	}
	m := product(shape) / n
	rows := reshape(b, moveDim(b, x, dim, 0), []int{n, m})
	order := counting(b, n, dtype.I64)
	if ordered {
		needFew(b, m, "elements of a slice")
		// stable sorts by one element after the other, the first last
		for j := m - 1; j >= 0; j-- {
			key := b.Op("take", reshape(b, sliceDim(b, rows, 1, j, j+1, 1), []int{n}), order)
			_, next := sorted(b, key, 0)
			order = b.Op("take", order, next)
		}
		rows = call(b, "index_select", rows, b.Int(0), order)
	}
	starts := runStarts(b, rows)
	inverse, counts := groups(b, starts, order)
	chosen := b.Op("take", order, positions(b, starts)[0])
	return []*ir.Value{call(b, "index_select", x, b.Int(dim), chosen), inverse, counts}
}

func differences() {
	def(Method|Torch, "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, n := args[0], constInt(b, args[1])
		if rank(b, x) == 0 {
			b.Failf("diff expects input to be at least one-dimensional")
		}
		if n < 0 {
			b.Failf("order must be non-negative but got %d", n)
		}
		dim := wrapDim(b, constInt(b, args[2]), rank(b, x))
		var parts []*ir.Value
		for _, p := range []*ir.Value{args[3], x, args[4]} {
			if !isNone(p) {
				parts = append(parts, p)
			}
		}
		if len(parts) > 1 {
			x = cat(b, parts, dim)
		}
		sub := "sub"
		if dt(b, x) == dtype.Bool {
			sub = "logical_xor"
		}
		for range n {
			size := shapeOf(b, x)[dim]
			if size == 0 {
				break
			}
			x = b.Op(sub, sliceDim(b, x, dim, 1, size, 1), sliceDim(b, x, dim, 0, size-1, 1))
		}
		return one(x)
	})
}
