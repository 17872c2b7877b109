// Package ptx makes CUDA kernels: it turns a specialised function into one module of PTX text by way of LLVM's NVPTX back end.
//
// The way of the data: [Compile] walks the function in program order. Views only change the description of an array (buffer, strides,
// offset). Elementwise nodes collect into scalar programs (ir/scalar), which become elementwise kernels or the prologue of reduction kernels;
// dot becomes a tiled matrix product. Each of these is a launch of a kernel; kernels that differ only in sizes, strides and operands are
// made once. All kernels are written as one module of LLVM text, which LLVM turns into PTX.
//
// # Numbers
//
// The translation is instruction by instruction, in IEEE arithmetic with subnormals: no approximate instruction, no flushing, no
// fused multiply-add, no library call. So elementwise kernels and reductions give the reference evaluator's bits (NaN payloads apart, which
// the hardware chooses). Half types are loaded and stored as 16-bit integers and converted by integer arithmetic, so every arch has them.
// Products of matrices add in the order of the reference evaluator, too.
//
// # Calling convention
//
// Every kernel is an .entry whose parameters are 64 bits each: first one address per array that it reads, then one per array that it
// writes, then, for kernels whose program can fail, the address of the fault word, and then sizes and strides in elements. The fault word is
// a 32-bit integer that is zero before the first launch; afterwards it holds zero or the largest scalar.FaultCode that occurred.
// Kernels loop, so that any grid computes everything; the block size must be the one that the module states (.maxntid).
//
// The subpackage check reads PTX back and verifies, independently of LLVM, that a module is well formed and keeps to the above.
package ptx
