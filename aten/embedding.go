package aten

import (
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Tables of vectors, looked up by index.

func init() {
	def(NN, "embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			e.plainTable("embedding", a[3], a[5])
			return e.embedding(a[0], a[1], e.paddingRow(a[1], a[2]))
		}))
	// torch.embedding has the table first, and a negative padding_idx means none
	def(Torch, "embedding.torch(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			e.plainTable("embedding", e.None(), a[3])
			return e.embedding(a[1], a[0], constInt(e.Builder, a[2]))
		}))
	def(NN, "embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, float norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			e.plainTable("embedding_bag", a[3], a[5])
			return e.embeddingBag(bagCall{index: a[0], table: a[1], offsets: a[2], mode: constStr(e.Builder, a[6]), weights: a[8],
				lastOffset: constBool(e.Builder, a[9]), padding: e.paddingRow(a[1], a[10])})
		}))
}

// plainTable rejects the options that change the table or its gradient in ways that are not supported.
func (e em) plainTable(name string, maxNorm, scaleByFreq *ir.Value) {
	if !isNone(maxNorm) {
		e.Failf("%s: max_norm is not supported, since it changes the weight in place: renormalise it with torch.renorm before the call", name)
	}
	if constBool(e.Builder, scaleByFreq) {
		e.Failf("%s: scale_grad_by_freq=True is not supported", name)
	}
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
	switch d := e.NeedDType(index); d {
	case dtype.I64, dtype.I32:
	default:
		e.Failf("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got %s instead", d.Torch())
	}
	return e.Op("take", table, cast(e.Builder, index, dtype.I64))
}

func (e em) embedding(index, table *ir.Value, padding int) *ir.Value {
	out := e.rows(index, table)
	if padding < 0 {
		return out
	}
	isPad := e.eq(index, e.Int(padding))
	return e.where(e.insert(isPad, rank(e.Builder, index)), e.detach(out), out)
}

type bagCall struct {
	index, table, offsets, weights *ir.Value
	mode                           string
	lastOffset                     bool
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
		if c.lastOffset {
			bags--
			offsets = e.slice(offsets, 0, 0, bags)
		}
		place := e.Op("iota", e.Int(s[0]), e.DType(dtype.I64))
		started := cast(e.Builder, e.le(offsets, e.insert(place, 1)), dtype.I64)
		bag = e.add(e.sum(started, false, 1), e.Int(-1))
	default:
		e.Failf("input has to be 1D with offsets or 2D Tensor, but got Tensor of dimension %d", len(s))
	}
	rows := e.rows(index, c.table)
	columns := e.NeedShape(rows)[1]
	if !isNone(weights) {
		rows = e.mul(rows, e.insert(weights, 1))
	}
	used := e.full(d, 1, e.NeedShape(index)...)
	if c.padding >= 0 {
		isPad := e.eq(index, e.Int(c.padding))
		used = e.where(isPad, e.Float(0), used)
		out := e.Float(0)
		if c.mode == "max" {
			out = e.Const(lowest(d))
		}
		rows = e.where(e.insert(isPad, 1), out, rows)
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
