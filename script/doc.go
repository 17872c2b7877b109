// Package script is the front end for scripts: the statement subset of Python that torch.jit.script accepts.
//
//	source text → scan → tokens → Parse → File → File.Lower → a generic *ir.Func and its Signature
//
// Lowering interprets the program abstractly, statement by statement, and emits IR as it goes. Types are inferred on the way and
// never guessed: an expression has one static type, Optionals are refined by tests for None, and what PyTorch refuses to compile
// is refused with the source line and a caret. Calls of the script's own functions are inlined; break, continue and early return
// become branches that take the rest of the statements along (stmt.go).
//
// A Union is carried as a tuple of a tag and its members (union.go); backward() in a script is a grad node with respect to the tensors that
// require grad (autograd.go).
//
// IR values never change, but the program's tensors, lists and dicts do. cells.go holds the memory model that turns writes, views
// and aliases into values; join.go and loop.go carry it through branches and loops. A write whose effect cannot be tracked is an
// error that proposes clone(); it is never dropped. Before that, lowering is tried again with short constant loops unrolled.
//
// A module class is constructed while lowering: pyeval.go runs its __init__, nn.py has the layers of torch.nn as scripts of their
// own, and the module's parameters and buffers become inputs behind those of forward.
package script
