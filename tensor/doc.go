// Package tensor is the eager API: tensors with PyTorch's semantics and automatic differentiation for Go programs.
//
//	x, _ := tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
//	w := tensor.Ones(tensor.F32, 2, 2).RequiresGrad()
//	loss := x.MatMul(w).Tanh().Sum()
//	if err := loss.Backward(); err != nil { … }
//	fmt.Println(w.Grad())
//
// # Errors
//
// Operations chain, so they give no error of their own. An operation that cannot be done gives a tensor that holds the error (Err); every
// further operation on it gives it on, and what leaves the package (Data, Item, Backward, Floats, …) returns it. The error names the operation,
// the shapes or dtypes, and the line of the caller that first went wrong.
//
// # How data flows
//
// A Tensor is a handle: a view (dtype, shape, strides, offset) of a storage, which views share. Every operation goes through one function,
// Call (dispatch.go), by the name of an aten function; it runs the function on the engine and, unless gradients are off, records it on the tape
// (tape.go). Backward (backward.go) runs the recorded functions' gradients, which are aten functions again; with CreateGraph they are recorded in turn.
// A Function has a gradient of its own (function.go).
// In-place operations (inplace.go) compute the new value and write it through the view; the storage counts its versions, by which the tape notices a
// saved value that was overwritten, and handles of the same storage find the gradient of what was written (views.go).
//
// # Scopes
//
// Nothing is global. A handle carries its Scope: whether gradients are recorded, which tracer listens, which engine computes, where random numbers
// come from. A result joins its arguments' scopes: where one is a NoGrad scope, the result's is, too, until Detach leaves it.
package tensor
