// Package autograd differentiates IR functions in reverse mode.
//
// Grad takes a function and gives another that also computes gradients; there is no other differentiation, and what it gives can be
// differentiated again. It works on generic and on specialised functions: a primitive node's gradient is the rule of its row in
// the op table, an aten node's is a vjp node, which is expanded once operand types are known.
//
// # How it works
//
// The function is copied, and the copy extended by the backward part, which walks the nodes from the last to the first. Only values
// that depend on the chosen parameters (activity) and that a result with a cotangent needs take part.
//
// A cotangent is in one of three states: nil in the builder, which is zero for certain; a value that may be None at run time, which is
// zero too; or a value like the one that it belongs to. Rules of tensor ops see the last only.
//
// # Control flow
//
// The backward of an if is an if on the same condition, that of a for or while is a for over the same number of iterations (a while counts
// them), last one first. A backward block is first built as if it could read the values of the forward block that it reverses.
// What it then reads of these is what has to be saved: constants and cheap scalars are computed again, all else the forward block
// yields: an if as a further result, a loop by appending to a list that it carries.
// Cotangents of values from outside a loop are summed in values that the backward loop carries.
package autograd
