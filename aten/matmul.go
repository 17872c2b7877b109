package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
)

// Products of vectors and matrices. All are contractions: the primitive dot after reordering dims.

func init() {
	mat := func(where Where, schema string, f func(e em, x, y *ir.Value) *ir.Value, opts ...option) {
		def(where, schema, expand1(func(e em, a []*ir.Value) *ir.Value { return f(e, a[0], a[1]) }), opts...)
	}
	mat(Method|Torch|Linalg, "matmul(Tensor self, Tensor other) -> Tensor", em.matmul)
	mat(Method|Torch, "mm(Tensor self, Tensor mat2) -> Tensor", em.mm)
	mat(Method|Torch, "bmm(Tensor self, Tensor mat2) -> Tensor", em.bmm)
	mat(Method|Torch, "mv(Tensor self, Tensor vec) -> Tensor", em.mv)
	mat(Method|Torch, "dot(Tensor self, Tensor tensor) -> Tensor", em.vecDot)
	mat(Method|Torch, "vdot(Tensor self, Tensor other) -> Tensor", em.vecDot)
	mat(Method|Torch, "inner(Tensor self, Tensor other) -> Tensor", em.inner)
	mat(Method|Torch, "outer(Tensor self, Tensor vec2) -> Tensor", em.outer)
	mat(Method|Torch, "ger(Tensor self, Tensor vec2) -> Tensor", em.outer)
	mat(Method|Torch, "kron(Tensor self, Tensor other) -> Tensor", em.kron)
	def(Linalg, "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", expand1(linalgVecdot))
	alias(Linalg, "vecdot", "linalg_vecdot")

	for _, f := range []struct {
		schema  string
		product func(e em, x, y *ir.Value) *ir.Value
	}{
		{"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", em.mm},
		{"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", em.mv},
		{"addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", em.outer},
		{"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", em.sumBmm},
		{"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", em.bmm},
	} {
		def(Method|Torch, f.schema, expand1(func(e em, a []*ir.Value) *ir.Value {
			return e.addProduct(a[0], f.product(e, a[1], a[2]), a[3], a[4])
		}))
	}

	def(NN, "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.linear(a[0], a[1], a[2])
	}))
	def(NN|Torch, "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", expand1(bilinear))
	def(Torch, "tensordot.lists(Tensor a, Tensor b, int[][] dims) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		dims := intLists(e, a[2])
		if len(dims) != 2 {
			e.Failf("tensordot expects dims to be two lists of dimensions, got %d", len(dims))
		}
		return e.tensordot(a[0], a[1], dims[0], dims[1])
	}))
	def(Torch, "tensordot(Tensor a, Tensor b, int dims=2) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		n, r := constInt(e.Builder, a[2]), rank(e.Builder, a[0])
		if n < 0 || n > r || n > rank(e.Builder, a[1]) {
			e.Failf("tensordot expects dims between 0 and the number of dimensions of both tensors (%d and %d), but got dims=%d", r, rank(e.Builder, a[1]), n)
		}
		return e.tensordot(a[0], a[1], span(r-n, r), span(0, n))
	}))
	def(Torch, "tensordot.dims(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.tensordot(a[0], a[1], constInts(e.Builder, a[2]), constInts(e.Builder, a[3]))
	}))
	def(Torch, "chain_matmul(Tensor[] matrices) -> Tensor", expand1(multiDot))
	def(Linalg|Hidden, "linalg_multi_dot(Tensor[] tensors) -> Tensor", expand1(multiDot))
	alias(Linalg, "multi_dot", "linalg_multi_dot")
	def(Method|Torch|Linalg, "matrix_power(Tensor self, int n) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.matrixPower(a[0], constInt(e.Builder, a[1]))
	}))
	def(Method|Torch, "cross(Tensor self, Tensor other, int? dim=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.cross(a[0], a[1], a[2])
	}))
	def(Linalg, "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.cross(a[0], a[1], a[2])
	}))
	alias(Linalg, "cross", "linalg_cross")
	def(Torch, "cdist(Tensor x1, Tensor x2, float p=2.0, str? compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor", expand1(cdist))
	def(NN|Torch, "pdist(Tensor self, float p=2.0) -> Tensor", expand1(pdist))
}

// matmul is torch.matmul for operands of every rank.
func (e em) matmul(x, y *ir.Value) *ir.Value {
	rx, ry := rank(e.Builder, x), rank(e.Builder, y)
	if rx == 0 || ry == 0 {
		e.Failf("both arguments to matmul need to be at least 1D, but they are %dD and %dD", rx, ry)
	}
	e.needSame(x, y)
	e.checkInner(x, y)
	switch {
	case ry == 1:
		return e.dot(x, y, 0, 1)
	case ry == 2:
		return e.dot(x, e.swap(y, 0, 1), 0, 1)
	case rx == 1:
		return e.dot(e.swap(y, ry-2, ry-1), x, 0, 1)
	case rx == 2:
		return e.swap(e.dot(e.swap(y, ry-2, ry-1), x, 0, 1), ry-2, ry-1)
	}
	x, y, nb := e.batchMatrices(x, y)
	return e.dot(x, e.swap(y, nb, nb+1), nb, 1)
}

// batchMatrices broadcasts the dims before the last two.
func (e em) batchMatrices(x, y *ir.Value) (*ir.Value, *ir.Value, int) {
	rx, ry := rank(e.Builder, x), rank(e.Builder, y)
	if rx == ry && sameBatchDims(x.Type.Dims[:rx-2], y.Type.Dims[:ry-2]) {
		return x, y, rx - 2
	}
	sx, sy := e.NeedShape(x), e.NeedShape(y)
	batch := broadcastShape(e.Builder, sx[:rx-2], sy[:ry-2])
	x = broadcastTo(e.Builder, x, catInts(batch, sx[rx-2:]))
	y = broadcastTo(e.Builder, y, catInts(batch, sy[ry-2:]))
	return x, y, len(batch)
}

// sameBatchDims reports whether sizes are equal for certain.
func sameBatchDims(a, b []ir.Dim) bool {
	for i := range a {
		if a[i] != b[i] || !a[i].Known() && a[i].Sym == "" {
			return false
		}
	}
	return true
}

// checkInner compares the contracted sizes of a matrix product where they are known.
func (e em) checkInner(x, y *ir.Value) {
	dx, dy := x.Type.Dims, y.Type.Dims
	k, l := dx[len(dx)-1], dy[max(0, len(dy)-2)]
	if !k.Known() || !l.Known() || k.N == l.N {
		return
	}
	switch {
	case len(dx) == 1 && len(dy) == 1:
		e.Failf("inconsistent tensor size, expected tensor [%d] and src [%d] to have the same number of elements, but got %d and %d elements respectively", k.N, l.N, k.N, l.N)
	case len(dy) == 1:
		e.Failf("size mismatch, got shapes %v and %v: the last dimension of the matrix must match the size of the vector", x.Type.Shape(), y.Type.Shape())
	case len(dx) > 2 && len(dy) > 2:
		e.Failf("Expected size for first two dimensions of batch2 tensor to match, but the shapes are %v and %v: %d columns against %d rows", x.Type.Shape(), y.Type.Shape(), k.N, l.N)
	}
	e.Failf("mat1 and mat2 shapes cannot be multiplied (%s and %s)", crossed(x), crossed(y))
}

// crossed writes a shape as PyTorch's messages do: 2x3.
func crossed(x *ir.Value) string {
	s := ""
	for i, d := range x.Type.Dims {
		if i > 0 {
			s += "x"
		}
		s += d.String()
	}
	return s
}

// mm multiplies two matrices.
func (e em) mm(x, y *ir.Value) *ir.Value {
	if rank(e.Builder, x) != 2 || rank(e.Builder, y) != 2 {
		e.Failf("self and mat2 must be matrices, got shapes %s and %s: expected 2 dimensions each", x.Type, y.Type)
	}
	return e.matmul(x, y)
}

// bmm multiplies two batches of as many matrices.
func (e em) bmm(x, y *ir.Value) *ir.Value {
	if rank(e.Builder, x) != 3 || rank(e.Builder, y) != 3 {
		e.Failf("batch1 and batch2 must be 3D tensors, got shapes %s and %s", x.Type, y.Type)
	}
	if p, q := x.Type.Dims[0], y.Type.Dims[0]; p.Known() && q.Known() && p.N != q.N {
		e.Failf("Expected size for first two dimensions of batch2 tensor to be: [%d, %s] but got: [%d, %s]", p.N, x.Type.Dims[2], q.N, y.Type.Dims[1])
	}
	e.needSame(x, y)
	e.checkInner(x, y)
	return e.dot(x, e.swap(y, 1, 2), 1, 1)
}

// sumBmm is the sum of a batch of matrix products.
func (e em) sumBmm(x, y *ir.Value) *ir.Value { return e.sum(e.bmm(x, y), false, 0) }

// mv multiplies a matrix and a vector.
func (e em) mv(x, y *ir.Value) *ir.Value {
	if rank(e.Builder, x) != 2 || rank(e.Builder, y) != 1 {
		e.Failf("vector + matrix @ vector expected, got shapes %s and %s: expected 2 and 1 dimensions", x.Type, y.Type)
	}
	return e.matmul(x, y)
}

// vecDot is the dot product of two vectors.
func (e em) vecDot(x, y *ir.Value) *ir.Value {
	if rank(e.Builder, x) != 1 || rank(e.Builder, y) != 1 {
		e.Failf("1D tensors expected, but got %dD and %dD tensors", rank(e.Builder, x), rank(e.Builder, y))
	}
	return e.matmul(x, y)
}

// inner sums products over the last dims of both operands.
func (e em) inner(x, y *ir.Value) *ir.Value {
	if rank(e.Builder, x) == 0 || rank(e.Builder, y) == 0 {
		return e.mul(x, y)
	}
	e.needSame(x, y)
	e.lastDimsEqual("inner", x, y)
	return e.dot(x, y, 0, 1)
}

func (e em) lastDimsEqual(name string, x, y *ir.Value) {
	k, l := x.Type.Dims[len(x.Type.Dims)-1], y.Type.Dims[len(y.Type.Dims)-1]
	if k.Known() && l.Known() && k.N != l.N {
		e.Failf("%s: the last dimension must match on both input tensors but got shapes %v and %v", name, x.Type.Shape(), y.Type.Shape())
	}
}

func linalgVecdot(e em, a []*ir.Value) *ir.Value {
	p := e.mul(a[0], a[1])
	return e.sum(p, false, wrapDim(e.Builder, constInt(e.Builder, a[2]), rank(e.Builder, p)))
}

// outer is the matrix of products of two vectors.
func (e em) outer(x, y *ir.Value) *ir.Value {
	if rank(e.Builder, x) != 1 || rank(e.Builder, y) != 1 {
		e.Failf("outer: expected 1-D tensors, but got %dD and %dD tensors", rank(e.Builder, x), rank(e.Builder, y))
	}
	return e.mul(e.insert(x, 1), e.insert(y, 0))
}

// addProduct is beta*x + alpha*product; x plays no part at all, not even with NaN, where beta is 0.
func (e em) addProduct(x, product, beta, alpha *ir.Value) *ir.Value {
	d := e.NeedDType(product)
	if !d.IsFloat() && (beta.Type.Kind == ir.KFloat || alpha.Type.Kind == ir.KFloat) {
		e.Failf("For integral input tensors, argument alpha and beta must not be floating point numbers")
	}
	if !isConst(alpha, 1) {
		product = e.mul(product, alpha)
	}
	if isConst(beta, 0) {
		return product
	}
	e.needSame(x, product)
	if !sameInts(broadcastShape(e.Builder, e.NeedShape(x), e.NeedShape(product)), e.NeedShape(product)) {
		e.Failf("the shape %v of the tensor to add does not broadcast to the shape of the product, %v", e.NeedShape(x), e.NeedShape(product))
	}
	if !isConst(beta, 1) {
		scaled := e.mul(x, beta)
		if _, known := beta.Const(); !known {
			scaled = e.where(e.eq(tensorArg(e.Builder, beta, d), e.Int(0)), e.Int(0), scaled)
		}
		x = scaled
	}
	return e.add(x, product)
}

// linear is x @ weight.T + bias for x of any rank.
func (e em) linear(x, w, bias *ir.Value) *ir.Value {
	if rank(e.Builder, x) == 0 || rank(e.Builder, w) == 0 || rank(e.Builder, w) > 2 {
		e.Failf("linear: expected an input with at least 1 dimension and a weight with 2, got shapes %s and %s", x.Type, w.Type)
	}
	e.needSame(x, w)
	k, l := x.Type.Dims[len(x.Type.Dims)-1], w.Type.Dims[len(w.Type.Dims)-1]
	if k.Known() && l.Known() && k.N != l.N {
		e.Failf("mat1 and mat2 shapes cannot be multiplied (%s and %s)", crossed(x), crossed(e.transposed(w)))
	}
	y := e.dot(x, w, 0, 1)
	if isNone(bias) {
		return y
	}
	e.needSame(x, bias)
	return e.add(y, bias)
}

func (e em) transposed(x *ir.Value) *ir.Value {
	if r := rank(e.Builder, x); r >= 2 {
		return e.swap(x, r-2, r-1)
	}
	return x
}

func bilinear(e em, a []*ir.Value) *ir.Value {
	x, y, w, bias := a[0], a[1], a[2], a[3]
	e.needSame(x, y, w)
	sx, sy, sw := e.NeedShape(x), e.NeedShape(y), e.NeedShape(w)
	r := len(sx)
	if r == 0 || len(sy) != r || len(sw) != 3 || !sameInts(sx[:r-1], sy[:r-1]) {
		e.Failf("bilinear(): input batch dimensions do not match: shapes %v and %v, weight %v", sx, sy, sw)
	}
	if sx[r-1] != sw[1] || sy[r-1] != sw[2] {
		e.Failf("bilinear(): input sizes do not match weight size: got %d and %d but expected %d and %d", sx[r-1], sy[r-1], sw[1], sw[2])
	}
	t := e.dot(x, e.permute(w, 0, 2, 1), 0, 1) // [..., out, in2]
	out := e.dot(t, y, r-1, 1)
	if isNone(bias) {
		return out
	}
	return e.add(out, bias)
}

func (e em) kron(x, y *ir.Value) *ir.Value {
	sx, sy := e.NeedShape(x), e.NeedShape(y)
	r := max(len(sx), len(sy))
	sx = catInts(ones(r-len(sx)), sx)
	sy = catInts(ones(r-len(sy)), sy)
	var ax, ay, out []int
	for i := range r {
		ax, ay, out = append(ax, sx[i], 1), append(ay, 1, sy[i]), append(out, sx[i]*sy[i])
	}
	return e.reshape(e.mul(e.reshape(x, ax...), e.reshape(y, ay...)), out...)
}

// tensordot contracts dims dx of x with dims dy of y, pairwise.
func (e em) tensordot(x, y *ir.Value, dx, dy []int) *ir.Value {
	rx, ry := rank(e.Builder, x), rank(e.Builder, y)
	if len(dx) != len(dy) {
		e.Failf("both dimension lists should have same length, got %d and %d", len(dx), len(dy))
	}
	e.needSame(x, y)
	if len(dx) > rx || len(dy) > ry {
		e.Failf("tensordot: dims %v and %v name more dimensions than the tensors have (%d and %d)", dx, dy, rx, ry)
	}
	dx, dy = wrapDims(e.Builder, dx, rx), wrapDims(e.Builder, dy, ry)
	sx, sy := e.NeedShape(x), e.NeedShape(y)
	for i := range dx {
		switch a, c := sx[dx[i]], sy[dy[i]]; {
		case a == c:
		case a == 1:
			y = e.sum(y, true, dy[i])
		case c == 1:
			x = e.sum(x, true, dx[i])
		default:
			e.Failf("contracted dimensions need to match, but first has size %d in dim %d and second has size %d in dim %d", a, dx[i], c, dy[i])
		}
	}
	x = e.permute(x, catInts(others(rx, dx), dx)...)
	y = e.permute(y, catInts(others(ry, dy), dy)...)
	return e.dot(x, y, 0, len(dx))
}

// others are the dims of a tensor of rank r that are not in dims.
func others(r int, dims []int) []int {
	in := make([]bool, r)
	for _, d := range dims {
		in[d] = true
	}
	out := []int{}
	for d := range r {
		if !in[d] {
			out = append(out, d)
		}
	}
	return out
}

// intLists reads a constant list (or tuple) of lists of ints.
func intLists(e em, v *ir.Value) [][]int {
	var elems []ir.Datum
	switch d := e.NeedConst(v).(type) {
	case ir.List:
		elems = d.Elems()
	case ir.Tuple:
		elems = d
	default:
		e.Failf("expected a list of lists of ints, got %s", ir.TypeOf(d))
	}
	out := make([][]int, len(elems))
	for i, el := range elems {
		if t, ok := el.(ir.Tuple); ok {
			el = ir.NewList(t...)
		}
		ints, err := ir.AsInts(el)
		if err != nil {
			e.Fail(err)
		}
		out[i] = ints
	}
	return out
}

// multiDot multiplies a chain of matrices in the order that takes the fewest multiplications; the first and the last may be vectors.
func multiDot(e em, a []*ir.Value) *ir.Value {
	ms := append([]*ir.Value{}, listElems(e.Builder, a[0])...)
	n := len(ms)
	switch n {
	case 0:
		e.Failf("multi_dot(): expected at least 1 tensor, got none")
	case 1:
		return ms[0]
	}
	first, last := rank(e.Builder, ms[0]) == 1, rank(e.Builder, ms[n-1]) == 1
	if first {
		ms[0] = e.insert(ms[0], 0)
	}
	if last {
		ms[n-1] = e.insert(ms[n-1], 1)
	}
	sizes := make([]int, n+1)
	for i, m := range ms {
		s := e.NeedShape(m)
		if len(s) != 2 {
			e.Failf("multi_dot(): tensor %d must be 2D but got %dD", i, len(s))
		}
		if i > 0 && sizes[i] != s[0] {
			e.Failf("multi_dot(): tensors %d and %d with shapes %v and %v cannot be multiplied", i-1, i, e.NeedShape(ms[i-1]), s)
		}
		sizes[i], sizes[i+1] = s[0], s[1]
	}
	split := chainOrder(sizes)
	var product func(i, j int) *ir.Value
	product = func(i, j int) *ir.Value {
		if i == j {
			return ms[i]
		}
		return e.mm(product(i, split[i][j]), product(split[i][j]+1, j))
	}
	out := product(0, n-1)
	s := e.NeedShape(out)
	switch {
	case first && last:
		return e.reshape(out)
	case first:
		return e.reshape(out, s[1])
	case last:
		return e.reshape(out, s[0])
	}
	return out
}

// chainOrder solves the matrix chain problem: split[i][j] says after which factor the product of factors i to j is divided.
func chainOrder(sizes []int) [][]int {
	n := len(sizes) - 1
	cost, split := make([][]float64, n), make([][]int, n)
	for i := range n {
		cost[i], split[i] = make([]float64, n), make([]int, n)
	}
	for l := 1; l < n; l++ {
		for i := 0; i+l < n; i++ {
			j := i + l
			cost[i][j] = math.Inf(1)
			for k := i; k < j; k++ {
				c := cost[i][k] + cost[k+1][j] + float64(sizes[i])*float64(sizes[k+1])*float64(sizes[j+1])
				if c < cost[i][j] {
					cost[i][j], split[i][j] = c, k
				}
			}
		}
	}
	return split
}

// needSquare is the shape of a batch of square matrices.
func (e em) needSquare(name string, x *ir.Value) []int {
	s := e.NeedShape(x)
	if len(s) < 2 {
		e.Failf("%s: The input tensor must have at least 2 dimensions, got shape %v", name, s)
	}
	if s[len(s)-1] != s[len(s)-2] {
		e.Failf("%s: A must be batches of square matrices, but they are %d by %d matrices", name, s[len(s)-2], s[len(s)-1])
	}
	return s
}

// matrixPower multiplies by repeated squaring; a negative power is one of the inverse.
func (e em) matrixPower(x *ir.Value, n int) *ir.Value {
	s := e.needSquare("linalg.matrix_power", x)
	if n == 0 {
		return broadcastTo(e.Builder, e.eye(s[len(s)-1], e.NeedDType(x)), s)
	}
	if n < 0 {
		e.needFloat("linalg.matrix_power", x)
		x, n = e.Op("inverse", x), -n
	}
	var out *ir.Value
	for ; ; x = e.matmul(x, x) {
		if n&1 == 1 {
			if out == nil {
				out = x
			} else {
				out = e.matmul(out, x)
			}
		}
		if n >>= 1; n == 0 {
			return out
		}
	}
}

// cross is the cross product along a dim of size 3: the first such where dim is None.
func (e em) cross(x, y, dim *ir.Value) *ir.Value {
	d := promote(e.Builder, x, y)
	xy := broadcast(e.Builder, cast(e.Builder, x, d), cast(e.Builder, y, d))
	x, y = xy[0], xy[1]
	s, k := e.NeedShape(x), -1
	if isNone(dim) {
		for i := len(s) - 1; i >= 0; i-- {
			if s[i] == 3 {
				k = i
			}
		}
		if k < 0 {
			e.Failf("no dimension of size 3 in input, shape %v", s)
		}
	} else if k = wrapDim(e.Builder, constInt(e.Builder, dim), len(s)); len(s) == 0 || s[k] != 3 {
		e.Failf("linalg.cross: inputs dimension %d must have length 3, got shape %v", k, s)
	}
	turn := func(v *ir.Value, by int) *ir.Value {
		return e.concat(k, e.slice(v, k, by, 3), e.slice(v, k, 0, by))
	}
	return e.sub(e.mul(turn(x, 1), turn(y, 2)), e.mul(turn(x, 2), turn(y, 1)))
}

// cdist is the p-norm of the differences of all pairs of rows: [..., P, M], [..., R, M] -> [..., P, R].
func cdist(e em, a []*ir.Value) *ir.Value {
	x, y, p := a[0], a[1], constFloat(e.Builder, a[2])
	e.needFloat("cdist", x, y)
	sx, sy := e.NeedShape(x), e.NeedShape(y)
	if len(sx) < 2 || len(sy) < 2 {
		e.Failf("cdist only supports at least 2D tensors, got shapes %v and %v", sx, sy)
	}
	if sx[len(sx)-1] != sy[len(sy)-1] {
		e.Failf("X1 and X2 must have the same number of columns, got shapes %v and %v", sx, sy)
	}
	if p < 0 {
		e.Failf("cdist only supports non-negative p values, got %g", p)
	}
	diff := e.sub(e.insert(x, len(sx)-1), e.insert(y, len(sy)-2))
	return e.vectorNorm(diff, p, []int{rank(e.Builder, diff) - 1}, false)
}

// pdist is the p-norm of the differences of all pairs of different rows, in the order of the upper triangle.
func pdist(e em, a []*ir.Value) *ir.Value {
	x, p := a[0], constFloat(e.Builder, a[1])
	e.needFloat("pdist", x)
	s := e.NeedShape(x)
	if len(s) != 2 {
		e.Failf("pdist only supports 2D tensors, got: %dD", len(s))
	}
	var first, second []int
	for i := range s[0] {
		for j := i + 1; j < s[0]; j++ {
			first, second = append(first, i), append(second, j)
		}
	}
	n := []int{len(first)}
	diff := e.sub(e.pick(x, 0, e.intTensor(n, first)), e.pick(x, 0, e.intTensor(n, second)))
	return e.vectorNorm(diff, p, []int{1}, false)
}
