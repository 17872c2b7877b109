package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Attention.

func init() {
	def(NN, "multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int embed_dim_to_check, int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, Tensor? bias_v, bool add_zero_attn, float dropout_p, Tensor out_proj_weight, Tensor? out_proj_bias, bool training=True, Tensor? key_padding_mask=None, bool need_weights=True, Tensor? attn_mask=None, bool use_separate_proj_weight=False, Tensor? q_proj_weight=None, Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, Tensor? static_v=None, bool average_attn_weights=True) -> (Tensor, Tensor?)",
		func(b *ir.Builder, a []*ir.Value) []*ir.Value { return em{b}.multiHead(a) }, isRandom)
	def(NN, "_scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool need_attn_weights=False, bool is_causal=False) -> (Tensor, Tensor)",
		func(b *ir.Builder, a []*ir.Value) []*ir.Value {
			e := em{b}
			q, k := a[0], a[1]
			for _, x := range a[:3] {
				if rank(b, x) < 2 {
					e.Failf("_scaled_dot_product_attention: expected query, key and value with at least 2 dimensions, got shape %v", e.NeedShape(x))
				}
			}
			mask := a[3]
			if constBool(b, a[6]) {
				if !isNone(mask) {
					e.Failf("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
				}
				mask = e.causalMask(e.NeedShape(q)[rank(b, q)-2], e.NeedShape(k)[rank(b, k)-2])
			}
			out, weights := e.attend(q, k, a[2], mask, a[4], e.Bool(true), a[7])
			return []*ir.Value{out, weights}
		}, isRandom)
}

// causalMask is true where a query may look at a key: those not after it.
func (e em) causalMask(queries, keys int) *ir.Value {
	i, j := e.Op("iota", e.Int(queries), e.DType(dtype.I64)), e.Op("iota", e.Int(keys), e.DType(dtype.I64))
	return e.ge(e.reshape(i, queries, 1), e.reshape(j, 1, keys))
}

// attend is softmax(q kᵀ / sqrt(d) + mask) v over the last two dims; a bool mask is true where attention is allowed.
func (e em) attend(q, k, v, mask, p, training, key *ir.Value) (out, weights *ir.Value) {
	e.needFloat("scaled_dot_product_attention", q, k, v)
	d := e.NeedShape(q)[rank(e.Builder, q)-1]
	scores := e.matmul(e.mulF(q, 1/math.Sqrt(float64(d))), e.transposed(k))
	if !isNone(mask) {
		if e.NeedDType(mask) == dtype.Bool {
			scores = e.where(mask, scores, e.Float(math.Inf(-1)))
		} else {
			scores = e.add(scores, mask)
		}
	}
	weights = e.softmax(scores, -1, e.None())
	weights = e.dropout(weights, p, training, key, nil)
	return e.matmul(weights, v), weights
}

// forbidden turns a mask that is true (or nonzero u8) where attention is not allowed into one to be added to scores.
func (e em) forbidden(mask *ir.Value, d dtype.DType) *ir.Value {
	if t := e.NeedDType(mask); t.IsFloat() {
		return mask
	}
	return e.where(cast(e.Builder, mask, dtype.Bool), e.full(d, math.Inf(-1)), e.full(d, 0))
}

// multiHead works on [length, batch, features], or on [length, features].
func (e em) multiHead(a []*ir.Value) []*ir.Value {
	q, k, v := a[0], a[1], a[2]
	unbatched := rank(e.Builder, q) == 2
	if r := rank(e.Builder, q); r < 2 || r > 3 || rank(e.Builder, k) != r || rank(e.Builder, v) != r {
		e.Failf("query, key and value should all be unbatched 2D or batched 3D tensors, but have shapes %v, %v and %v", e.NeedShape(q), e.NeedShape(k), e.NeedShape(v))
	}
	if unbatched {
		q, k, v = e.insert(q, 1), e.insert(k, 1), e.insert(v, 1)
	}
	sq, heads := e.NeedShape(q), constInt(e.Builder, a[4])
	embed := sq[2]
	if want := constInt(e.Builder, a[3]); embed != want {
		e.Failf("was expecting embedding dimension of %d, but got %d", want, embed)
	}
	if heads <= 0 || embed%heads != 0 {
		e.Failf("embed_dim %d not divisible by num_heads %d", embed, heads)
	}
	for _, unsupported := range []struct {
		name string
		v    *ir.Value
	}{{"static_k", a[21]}, {"static_v", a[22]}} {
		if !isNone(unsupported.v) {
			e.Failf("multi_head_attention_forward: %s is not supported", unsupported.name)
		}
	}
	if sk, sv := e.NeedShape(k), e.NeedShape(v); sk[0] != sv[0] || sk[1] != sq[1] || sv[1] != sq[1] {
		e.Failf("key shape %v does not match value shape %v or query shape %v", sk, sv, sq)
	}
	q, k, v = e.projections(q, k, v, embed, a)
	keyMask, mask := a[14], a[16]
	extra := 0
	if !isNone(a[7]) && !isNone(a[8]) {
		k, v = e.appendRow(k, a[7]), e.appendRow(v, a[8])
		extra++
	}
	if constBool(e.Builder, a[9]) {
		zero := e.zeros(e.NeedDType(k), 1, 1, embed)
		k, v = e.appendRow(k, zero), e.appendRow(v, zero)
		extra++
	}
	target, batch, source := sq[0], sq[1], e.NeedShape(k)[0]
	d := e.NeedDType(q)
	// [length, batch, embed] -> [batch, heads, length, embed/heads]
	split := func(x *ir.Value) *ir.Value {
		return e.permute(e.reshape(x, e.NeedShape(x)[0], batch, heads, embed/heads), 1, 2, 0, 3)
	}
	var scores *ir.Value
	if !isNone(mask) {
		m := e.padDims(e.forbidden(mask, d), []int{0}, []int{extra}, 0.0)
		switch s := e.NeedShape(m); {
		case sameInts(s, []int{target, source}):
		case sameInts(s, []int{batch * heads, target, source}):
			m = e.reshape(m, batch, heads, target, source)
		default:
			e.Failf("The shape of the attn_mask is %v, but should be %v or %v", e.NeedShape(mask), []int{target, source - extra}, []int{batch * heads, target, source - extra})
		}
		scores = m
	}
	if !isNone(keyMask) {
		m := e.forbidden(keyMask, d)
		if unbatched && rank(e.Builder, m) == 1 {
			m = e.insert(m, 0)
		}
		if s := e.NeedShape(m); !sameInts(s, []int{batch, source - extra}) {
			e.Failf("expecting key_padding_mask shape of %v, but got %v", []int{batch, source - extra}, s)
		}
		m = e.reshape(e.padDims(m, []int{0}, []int{extra}, 0.0), batch, 1, 1, source)
		if scores == nil {
			scores = m
		} else {
			scores = e.add(scores, m)
		}
	}
	if scores == nil {
		scores = e.None()
	}
	out, weights := e.attend(split(q), split(k), split(v), scores, a[10], a[13], a[24])
	out = e.reshape(e.permute(out, 2, 0, 1, 3), target, batch, embed)
	out = e.linear(out, a[11], a[12])
	if unbatched {
		out = e.reshape(out, target, embed)
	}
	if !constBool(e.Builder, a[15]) {
		return []*ir.Value{out, e.None()}
	}
	if constBool(e.Builder, a[23]) {
		weights = e.mean(weights, false, 1)
	}
	if unbatched {
		weights = e.reshape(weights, e.NeedShape(weights)[1:]...)
	}
	return []*ir.Value{out, weights}
}

// projections applies the input projections: one packed weight, or three.
func (e em) projections(q, k, v *ir.Value, embed int, a []*ir.Value) (_, _, _ *ir.Value) {
	in := []*ir.Value{q, k, v}
	out := make([]*ir.Value, 3)
	for i, x := range in {
		w := a[18+i]
		if !constBool(e.Builder, a[17]) {
			if isNone(a[5]) {
				e.Failf("use_separate_proj_weight is False but in_proj_weight is None")
			}
			if s := e.NeedShape(a[5]); !sameInts(s, []int{3 * embed, embed}) {
				e.Failf("expecting in_proj_weight shape of %v, but got %v", []int{3 * embed, embed}, s)
			}
			w = e.slice(a[5], 0, i*embed, (i+1)*embed)
		} else if isNone(w) {
			e.Failf("use_separate_proj_weight is True but a projection weight is None")
		}
		bias := e.None()
		if !isNone(a[6]) {
			if s := e.NeedShape(a[6]); !sameInts(s, []int{3 * embed}) {
				e.Failf("expecting in_proj_bias shape of %v, but got %v", []int{3 * embed}, s)
			}
			bias = e.slice(a[6], 0, i*embed, (i+1)*embed)
		}
		out[i] = e.linear(x, w, bias)
	}
	return out[0], out[1], out[2]
}

// appendRow puts one more row [1, 1, features] after x [length, batch, features].
func (e em) appendRow(x, row *ir.Value) *ir.Value {
	s := e.NeedShape(x)
	return e.concat(0, x, broadcastTo(e.Builder, row, []int{1, s[1], s[2]}))
}
