// Package trace turns Go functions on tensors into IR.
//
// The function runs on clones of example inputs whose scope has a tracer; every operation runs as usual and is recorded. What comes out is an ir.Func
// of generic calls, one per operation, whose parameters are the inputs and then the captured tensors (weights, constants).
//
// # What a trace sees
//
// Operations and in-place writes, whatever Go code calls them. A Bool or Int that the function reads from a tensor steers Go code that the tracer cannot
// see; so it is recorded as a guard with the source line. A Function that is called with inputs for which the guard does not hold traces
// anew, and both paths become an if (at most MaxPaths values per place). Reading floats or data in a trace is an error that says what to
// write instead: If, While and For record control flow directly, Peek reads a value with the promise not to steer by it, and
// Print writes values at each call.
//
// Sizes that Go code reads are numbers of the trace. At the second size of a dimension a Function compares both traces and computes the numbers in which they
// differ from the sizes; it traces once at each new size before it relies on that. Trace does so for Options.Dynamic at several sizes at once. A Program whose function read
// sizes refuses others. Where the function does something else at size 0, as writes in place and loops do, the program refuses that.
//
// What is computed in a scope without gradients is a constant of the program's gradient.
//
// The values of captured tensors are read at each call of a Function, and in-place writes to them and to inputs are done at each call, as are random draws. The training modes that
// modules read, whether or not Options.Model names them, are guards. Every trace is made
// twice: two runs that differ depend on something of Go that is no tensor.
package trace
