// Package runtime runs functions of the IR.
//
// An Engine has a target. On the reference target its Evaluator is ir's own; on the cpu target the same evaluator walks the control flow and the host
// ops, and hands every other node to kernels of machine code (cpu.go): elementwise nodes and fused groups, reductions, and dot. Views stay metadata. Nodes that
// only move elements, and the linear algebra of whole matrices, run on the host on every target; `gtc ops` says which.
//
// Below it: llvm binds the LLVM library, jit loads object code, cache keeps it on disk, pool shares work among threads, arena keeps memory.
package runtime
