// Package passes turns generic functions into specialised ones and makes them cheaper, without changing a bit of what they compute.
//
// A function takes this way:
//
//	Specialise   a copy for given arguments: types are inferred through the whole body, calls of the function library and their
//	             gradients are expanded into primitive ops, known values computed, known branches taken, short loops unrolled
//	Gradient     the same for the function and its gradient
//	Run          the passes of Table, in order; fuse, the last, makes the kernels
//	Compile      all of it, as the runtime wants it
//
// What stays generic because its types are only known at run time, the Resolver expands then, by the same code, from actual operands.
//
// Rewrites of single nodes are the entries of rewrites. A rewrite may assume only what the op table promises; it is exact for NaN, Inf and -0.
// Walks loop over nodes and recurse over nested blocks and expansions only, so that chains of any length are fine.
package passes
