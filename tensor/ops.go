package tensor

// Operations by name, for Go programs that read like mathematics. Each is the aten function of the same name; Call reaches the others.

// To converts to a dtype; the same tensor where it has it already.
func (t *Tensor) To(d DType) *Tensor { return Call("to.dtype", t, d) }

// Clone copies the values; the copy is differentiable.
func (t *Tensor) Clone() *Tensor { return Call("clone", t) }

// Contiguous gives the tensor packed in row-major order; itself where it is.
func (t *Tensor) Contiguous() *Tensor { return Call("contiguous", t) }

// The elementwise operations of two operands take a *Tensor or a number, and broadcast and promote as PyTorch does.

func (t *Tensor) Add(o any) *Tensor         { return Call("add", t, o) }
func (t *Tensor) Sub(o any) *Tensor         { return Call("sub", t, o) }
func (t *Tensor) Mul(o any) *Tensor         { return Call("mul", t, o) }
func (t *Tensor) Div(o any) *Tensor         { return Call("div", t, o) }
func (t *Tensor) FloorDiv(o any) *Tensor    { return Call("floor_divide", t, o) }
func (t *Tensor) Remainder(o any) *Tensor   { return Call("remainder", t, o) }
func (t *Tensor) Pow(o any) *Tensor         { return Call("pow", t, o) }
func (t *Tensor) Maximum(o *Tensor) *Tensor { return Call("maximum", t, o) }
func (t *Tensor) Minimum(o *Tensor) *Tensor { return Call("minimum", t, o) }
func (t *Tensor) Eq(o any) *Tensor          { return Call("eq", t, o) }
func (t *Tensor) Ne(o any) *Tensor          { return Call("ne", t, o) }
func (t *Tensor) Lt(o any) *Tensor          { return Call("lt", t, o) }
func (t *Tensor) Le(o any) *Tensor          { return Call("le", t, o) }
func (t *Tensor) Gt(o any) *Tensor          { return Call("gt", t, o) }
func (t *Tensor) Ge(o any) *Tensor          { return Call("ge", t, o) }

// Where gives a where cond is true and b elsewhere.
func Where(cond *Tensor, a, b any) *Tensor { return Call("where", cond, a, b) }

// The elementwise functions.

func (t *Tensor) Neg() *Tensor        { return Call("neg", t) }
func (t *Tensor) Abs() *Tensor        { return Call("abs", t) }
func (t *Tensor) Exp() *Tensor        { return Call("exp", t) }
func (t *Tensor) Log() *Tensor        { return Call("log", t) }
func (t *Tensor) Sqrt() *Tensor       { return Call("sqrt", t) }
func (t *Tensor) Rsqrt() *Tensor      { return Call("rsqrt", t) }
func (t *Tensor) Sin() *Tensor        { return Call("sin", t) }
func (t *Tensor) Cos() *Tensor        { return Call("cos", t) }
func (t *Tensor) Tanh() *Tensor       { return Call("tanh", t) }
func (t *Tensor) Sigmoid() *Tensor    { return Call("sigmoid", t) }
func (t *Tensor) Relu() *Tensor       { return Call("relu", t) }
func (t *Tensor) Gelu() *Tensor       { return Call("gelu", t) }
func (t *Tensor) Silu() *Tensor       { return Call("silu", t) }
func (t *Tensor) Square() *Tensor     { return Call("square", t) }
func (t *Tensor) LogicalNot() *Tensor { return Call("logical_not", t) }

// Clamp limits the values; a nil bound is none.
func (t *Tensor) Clamp(lo, hi any) *Tensor { return Call("clamp", t, lo, hi) }

// Reductions over the given dims, or all of them; see SumKeep and the like by Call("sum", t, dims, true).

func (t *Tensor) Sum(dims ...int) *Tensor  { return t.reduce("sum", dims) }
func (t *Tensor) Mean(dims ...int) *Tensor { return t.reduce("mean", dims) }

func (t *Tensor) reduce(name string, dims []int) *Tensor {
	if len(dims) == 0 {
		return Call(name, t)
	}
	return Call(name, t, dims)
}

// Max and Min are the extreme elements; NaN wins.
func (t *Tensor) Max() *Tensor { return Call("max", t) }
func (t *Tensor) Min() *Tensor { return Call("min", t) }

// MaxDim gives the largest elements along a dimension and their indices, the lowest among equals.
func (t *Tensor) MaxDim(dim int) (values, indices *Tensor) { return two(CallN("max", t, dim)) }

// ArgMax is the index of the largest element along a dimension.
func (t *Tensor) ArgMax(dim int) *Tensor { return Call("argmax", t, dim) }

func two(rs []*Tensor) (a, b *Tensor) {
	if len(rs) < 2 {
		return rs[0], rs[0]
	}
	return rs[0], rs[1]
}

// Softmax and LogSoftmax along a dimension.
func (t *Tensor) Softmax(dim int) *Tensor    { return Call("softmax", t, dim) }
func (t *Tensor) LogSoftmax(dim int) *Tensor { return Call("log_softmax", t, dim) }

// MatMul is torch.matmul: matrices [M,K] x [K,N], with leading batch dimensions broadcast, and vectors.
func (t *Tensor) MatMul(o *Tensor) *Tensor { return Call("matmul", t, o) }

// Views share t's storage.

func (t *Tensor) View(shape ...int) *Tensor        { return Call("view", t, shape) }
func (t *Tensor) Reshape(shape ...int) *Tensor     { return Call("reshape", t, shape) }
func (t *Tensor) Flatten(from, to int) *Tensor     { return Call("flatten", t, from, to) }
func (t *Tensor) Transpose(a, b int) *Tensor       { return Call("transpose", t, a, b) }
func (t *Tensor) T() *Tensor                       { return Call("t", t) }
func (t *Tensor) Permute(dims ...int) *Tensor      { return Call("permute", t, dims) }
func (t *Tensor) Expand(shape ...int) *Tensor      { return Call("expand", t, shape) }
func (t *Tensor) Unsqueeze(dim int) *Tensor        { return Call("unsqueeze", t, dim) }
func (t *Tensor) Squeeze(dim int) *Tensor          { return Call("squeeze", t, dim) }
func (t *Tensor) Select(dim, index int) *Tensor    { return Call("select", t, dim, index) }
func (t *Tensor) Narrow(dim, start, n int) *Tensor { return Call("narrow", t, dim, start, n) }

// Slice is t[…, start:stop:step, …] along a dimension; it shares t's storage.
func (t *Tensor) Slice(dim, start, stop, step int) *Tensor {
	return Call("slice", t, dim, start, stop, step)
}

// Cat joins tensors along a dimension.
func Cat(ts []*Tensor, dim int) *Tensor { return Call("cat", ts, dim) }

// Stack joins tensors along a new dimension.
func Stack(ts []*Tensor, dim int) *Tensor { return Call("stack", ts, dim) }

// IndexSelect gives the slices of t along dim with the given i64 indices.
func (t *Tensor) IndexSelect(dim int, index *Tensor) *Tensor {
	return Call("index_select", t, dim, index)
}

// In-place forms write into t and give t.

func (t *Tensor) Add_(o any) *Tensor { return t.InPlace("add", o) }
func (t *Tensor) Sub_(o any) *Tensor { return t.InPlace("sub", o) }
func (t *Tensor) Mul_(o any) *Tensor { return t.InPlace("mul", o) }
func (t *Tensor) Div_(o any) *Tensor { return t.InPlace("div", o) }
func (t *Tensor) Relu_() *Tensor     { return t.InPlace("relu") }
func (t *Tensor) Zero_() *Tensor     { return t.Fill(0) }

// Zeros, Ones and Full make tensors; Rand and Randn draw from [0,1) and the normal distribution, from the default generator.

func Zeros(d DType, shape ...int) *Tensor       { return Call("zeros", shape, d) }
func Ones(d DType, shape ...int) *Tensor        { return Call("ones", shape, d) }
func Full(d DType, v any, shape ...int) *Tensor { return Call("full", shape, v, d) }
func Rand(d DType, shape ...int) *Tensor        { return Call("rand", shape, d) }
func Randn(d DType, shape ...int) *Tensor       { return Call("randn", shape, d) }

// Arange gives 0, 1, …, n-1 as I64.
func Arange(n int) *Tensor { return Call("arange", n) }

// ZerosLike and OnesLike have the dtype and shape of t.
func ZerosLike(t *Tensor) *Tensor { return Call("zeros_like", t) }
func OnesLike(t *Tensor) *Tensor  { return Call("ones_like", t) }

// CrossEntropy is the mean loss of scores [N, C] against class numbers [N] (I64).
func CrossEntropy(scores, target *Tensor) *Tensor { return Call("cross_entropy", scores, target) }
