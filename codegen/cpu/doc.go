// Package cpu makes machine code for the host's CPU.
//
// A [Backend] joins LLVM, the kernel cache and the worker threads. It offers three kinds of kernels, all of which take and fill
// *ir.Array views and nothing else:
//
//   - [Backend.Elementwise]: a scalar program, usually a whole fused group, applied at every index;
//   - [Backend.Reduce]: the same followed by a reduction over some dims;
//   - [Backend.Dot]: a general contraction.
//
// Way of the data: package kernel reduces shapes and strides to a short loop nest and a class of access per operand; that class
// and the program select a kernel, whose LLVM text is written here (emit.go, lanes.go, nest.go and a file per kind), compiled once
// and cached; sizes, strides and pointers reach it in one flat struct, so new shapes compile nothing. Vectors are explicit in
// the text: LLVM is asked to clean up, select instructions and allocate registers, not to vectorise.
//
// Elementwise and reduction kernels give the reference evaluator's results bit for bit, whatever the vector width and the number
// of threads; NaNs may differ in payload and sign.
package cpu
