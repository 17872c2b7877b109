package aten

import (
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Tables of vectors, looked up by index.

func init() {
	def(NN, "embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			e.noMaxNorm("embedding", a[3])
			return e.embedding(a[0], a[1], e.paddingRow(a[1], a[2]), constBool(e.Builder, a[5]))
		}))
	def(Torch, "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.embeddingRenorm(a[0], a[1], constFloat(e.Builder, a[2]), constFloat(e.Builder, a[3]))
	}))
	// torch.embedding has the table first, and a negative padding_idx means none
	def(Torch, "embedding.torch(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			return e.embedding(a[1], a[0], constInt(e.Builder, a[2]), constBool(e.Builder, a[3]))
		}))
	def(NN, "embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, float norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			e.noMaxNorm("embedding_bag", a[3])
			return e.embeddingBag(bagCall{index: a[0], table: a[1], offsets: a[2], mode: constStr(e.Builder, a[6]), weights: a[8], scale: constBool(e.Builder, a[5]),
				lastOffset: constBool(e.Builder, a[9]), padding: e.paddingRow(a[1], a[10])})
		}))
}

// noMaxNorm rejects an option that changes the table in place. Scripts never come here with it: they write what embedding_renorm gives.
func (e em) noMaxNorm(name string, maxNorm *ir.Value) {
	if !isNone(maxNorm) {
		e.Failf("%s: max_norm is only supported in scripts, since it changes the weight in place: use torch.embedding_renorm before the call", name)
	}
}

// embeddingRenorm is the table with the rows that index names scaled down to a norm, where theirs is larger; the gradient passes them unscaled.
func (e em) embeddingRenorm(table, index *ir.Value, maxNorm, p float64) *ir.Value {
	s := e.NeedShape(table)
	if len(s) != 2 {
		e.Failf("embedding_renorm: 'weight' must be 2-D, got shape %v", s)
	}
	index = e.reshape(e.indices(index), numel(e.Builder, index))
	named := e.Op("put", e.full(dtype.Bool, 0, s[0]), index, e.full(dtype.Bool, 1, numel(e.Builder, index)), e.Bool(false))
	norm := call(e.Builder, "linalg_vector_norm", table, e.Float(p), e.Ints(1), e.Bool(true))
	scaled := e.mul(table, e.div(e.Float(maxNorm), e.addF(norm, 1e-7)))
	return e.Op("graft", e.where(e.and(e.insert(named, 1), e.gt(norm, e.Float(maxNorm))), scaled, table), table)
}

// paddingRow is the row without gradient, -1 for none.
func (e em) paddingRow(table, v *ir.Value) int {
	if isNone(v) {
		return -1
	}
	if rank(e.Builder, table) != 2 {
		e.Failf("'weight' must be 2-D, got shape %s", table.Type)
	}
	n, p := e.NeedShape(table)[0], constInt(e.Builder, v)
	if p < -n || p >= n {
		e.Failf("Padding_idx must be within num_embeddings: got %d for %d rows", p, n)
	}
	if p < 0 {
		p += n
	}
	return p
}

// rows looks up the table's rows: index of any shape -> [index shape..., columns].
func (e em) rows(index, table *ir.Value) *ir.Value {
	if rank(e.Builder, table) != 2 {
		e.Failf("'weight' must be 2-D, got shape %s", table.Type)
	}
	return e.Op("take", table, e.indices(index))
}

// indices is an index tensor of one of the two dtypes that tables take, as i64.
func (e em) indices(index *ir.Value) *ir.Value {
	if d := e.NeedDType(index); d != dtype.I64 && d != dtype.I32 {
		e.Failf("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got %s instead", d.Torch())
	}
	return cast(e.Builder, index, dtype.I64)
}

// byFrequency is rows, looked up in a table at index, with a gradient divided by how often each row was looked up.
func (e em) byFrequency(rows, index, table *ir.Value) *ir.Value {
	d := e.NeedDType(rows)
	index = e.indices(index)
	flat := e.reshape(index, numel(e.Builder, index))
	times := e.Op("put", e.zeros(d, e.NeedShape(table)[0]), flat, e.full(d, 1, numel(e.Builder, index)), e.Bool(true))
	share := e.insert(e.div(e.Float(1), e.Op("take", times, index)), rank(e.Builder, index))
	return e.Op("graft", rows, e.mul(rows, share))
}

func (e em) embedding(index, table *ir.Value, padding int, byFrequency bool) *ir.Value {
	out := e.rows(index, table)
	if byFrequency {
		out = e.byFrequency(out, index, table)
	}
	if padding < 0 {
		return out
	}
	isPad := e.eq(index, e.Int(padding))
	return e.where(e.insert(isPad, rank(e.Builder, index)), e.detach(out), out)
}

type bagCall struct {
	index, table, offsets, weights *ir.Value
	mode                           string
	lastOffset, scale              bool
	padding                        int
}

// embeddingBag reduces the rows of every bag: a row of a 2-d index, or the part of a 1-d index from one offset to the next.
func (e em) embeddingBag(c bagCall) *ir.Value {
	s := e.NeedShape(c.index)
	d := e.NeedDType(c.table)
	if c.mode != "sum" && c.mode != "mean" && c.mode != "max" {
		e.Failf("mode has to be one of sum, mean, max, got %q", c.mode)
	}
	if !isNone(c.weights) && c.mode != "sum" {
		e.Failf("embedding_bag: per_sample_weights is only supported for mode='sum' (got mode=%q)", c.mode)
	}
	var bag *ir.Value // the number of every index's bag
	var bags int
	var left *ir.Value // which indices are in no bag; nil for none
	index, weights := c.index, c.weights
	switch {
	case len(s) == 2:
		if !isNone(c.offsets) {
			e.Failf("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences")
		}
		bags = s[0]
		bag = broadcastTo(e.Builder, e.insert(e.Op("iota", e.Int(bags), e.DType(dtype.I64)), 1), s)
		bag = e.reshape(bag, product(s))
		index = e.reshape(index, product(s))
		if !isNone(weights) {
			weights = e.reshape(weights, product(s))
		}
	case len(s) == 1 && !isNone(c.offsets):
		offsets := cast(e.Builder, c.offsets, dtype.I64)
		if rank(e.Builder, offsets) != 1 {
			e.Failf("offsets has to be a 1D Tensor, but got Tensor of dimension %d", rank(e.Builder, offsets))
		}
		bags = e.NeedShape(offsets)[0]
		if c.lastOffset && bags == 0 {
			e.Failf("include_last_offset: number of offsets should be at least 1")
		}
		place := e.Op("iota", e.Int(s[0]), e.DType(dtype.I64))
		if c.lastOffset { // the end of the last bag
			bags--
			left = e.ge(place, e.slice(offsets, 0, bags, bags+1))
			offsets = e.slice(offsets, 0, 0, bags)
		}
		started := cast(e.Builder, e.le(offsets, e.insert(place, 1)), dtype.I64)
		bag = e.add(e.sum(started, false, 1), e.Int(-1))
	default:
		e.Failf("input has to be 1D with offsets or 2D Tensor, but got Tensor of dimension %d", len(s))
	}
	rows := e.rows(index, c.table)
	if c.scale {
		rows = e.byFrequency(rows, index, c.table)
	}
	columns := e.NeedShape(rows)[1]
	if !isNone(weights) {
		rows = e.mul(rows, e.insert(weights, 1))
	}
	used := e.full(d, 1, e.NeedShape(index)...)
	if c.padding >= 0 {
		isPad := e.eq(index, e.Int(c.padding))
		if left == nil {
			left = isPad
		} else {
			left = e.Op("logical_or", left, isPad)
		}
	}
	if left != nil {
		used = e.where(left, e.Float(0), used)
		out := e.Float(0)
		if c.mode == "max" {
			out = e.Const(lowest(d))
		}
		rows = e.where(e.insert(left, 1), out, rows)
	}
	count := e.insert(e.Op("put", e.zeros(d, bags), bag, used, e.Bool(true)), 1)
	if c.mode == "max" {
		at := broadcastTo(e.Builder, e.insert(bag, 1), e.NeedShape(rows))
		m := e.Op("scatter_reduce", e.zeros(d, bags, columns), e.Int(0), at, rows, e.Str("amax"), e.Bool(false))
		return e.where(e.eq(count, e.Float(0)), e.Float(0), m)
	}
	sum := e.Op("put", e.zeros(d, bags, columns), bag, rows, e.Bool(true))
	if c.mode == "mean" {
		sum = e.div(sum, e.maxi(count, e.Float(1)))
	}
	return sum
}
