// Package runtime runs functions of the IR.
//
// An Engine has a target. The reference target is ir's evaluator. On the cpu target a function is made ready to run, once, and kept with it:
//
//	ir.Func -> flatten -> jobs over numbered slots (flatten.go): a fused group is one map and its reductions, constants are known,
//	           kernels over the same rows form chains (chain.go)
//	        -> planMemory -> where results of known size lie in one block of memory (plan.go)
//	        -> emit -> steps (build.go, steps.go), whose kernels are compiled ahead, several at once (prepare.go)
//	        -> program (program.go), which any number of goroutines run, each on an instance
//
// A step that runs a kernel keeps its launch: what codegen/cpu has worked out for the layouts of the operands. Results that a list, a loop or
// the caller may hold on to are not planned but counted, and their memory is used again when nobody holds it. Views stay metadata; views of planned
// memory are made once. Nodes that only move elements, and the linear algebra of whole matrices, run on the host on every target; `gtc ops`
// says which. Generic nodes are expanded for the operands that are there, and the expansion is a program again; an eager op is one such expansion.
//
// Below it: llvm binds the LLVM library, jit loads object code, cache keeps it on disk, pool shares work among threads, arena keeps memory.
package runtime
