// Package check reads PTX text and verifies that it is well formed, independently of what made it.
//
// It knows the subset of PTX (ISA 6.0 and later, 64-bit addresses) that gtc's kernels use, and rejects everything else with the line
// number: so a mistake in code generation, or an instruction whose result is not exactly defined (approximate, flushing subnormals,
// fused), is found where no GPU is at hand. [Parse] gives the module's structure, [Module.Verify] judges it, and [Check] does both.
//
// What is verified: version, target and address size are given and fit together; names are declared once; registers are declared and have a type
// that the instruction takes; branches go to labels of the same entry; variables and parameters that are read exist and are large
// enough; nothing is external; every instruction is on the list, with the right operands; control does not run off the end of an entry.
package check
