// Package scalar defines every elementwise operation of gtc, once, as a straight-line program over scalars.
//
// A [Prog] is a list of typed instructions in SSA form. It describes what happens to one element ("lane"); all lanes are
// independent, so the same program is run
//
//   - by the interpreter ([Frame]) in plain Go, 256 lanes at a time, one loop per instruction, and
//   - by code generators, which translate each instruction to one or a few LLVM or PTX instructions.
//
// Both give the same bits, because the instructions are only such as IEEE 754 and two's complement arithmetic define exactly:
// there are no library calls, no fused multiply-add and no approximations below the level of instructions. exp, log, sin and
// the like are programs over them (see the files named after the function families), and these programs are the definition of
// the operation: what the tests bound is their distance from the real function.
//
// Way of the data: an op's [Form] writes instructions through a [Builder]; a fused group of ops uses one Builder for all its
// forms, which share common subexpressions; [Builder.Finish] yields the Prog.
//
//	b := scalar.NewBuilder()
//	x, y := b.Input(dtype.F32), b.Input(dtype.F32)
//	s, err := scalar.Apply(b, "add", x, y)
//	t, err := scalar.Apply(b, "tanh", s)
//	b.Output(t)
//	prog := b.Finish()
//
// # Registers and dtypes
//
// Registers hold Bool, U8, I8, I16, I32, I64, F32 or F64. A [Value] also knows its logical dtype: f16 and bf16 values live in
// F32 registers and always hold a value that the half type represents. [Apply] computes halves in F32 and rounds the result
// with RoundF16 or RoundBF16 after every op; loads widen and stores narrow exactly.
//
// # Accuracy
//
// Largest errors found, in units in the last place (the tests bound them): F32 exp 0.93, log 0.79, tanh 1.3, sigmoid 1.55,
// erf 1.12; every other F32 function computes in F64 and is rounded once, so within 0.51. F64: below 2 over the full range, huge
// and subnormal arguments included, but for lgamma 2.01, logaddexp 2.1, erfc 2.5, i0 2.8, i1 3.3, digamma 2.5 (8.3 at large negative
// arguments) and trigamma 6.1; lgamma and digamma near their zeros are that accurate absolutely, not relatively.
//
// # Errors at run time
//
// A Fault instruction names a condition under which the whole execution fails (integer division by zero). The lane's result
// is then unspecified; the executor reports the fault instead of results.
package scalar
