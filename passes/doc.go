// Package passes turns generic functions into specialised ones and makes them cheaper, without changing a bit of what they compute.
//
// A function takes this way:
//
//	Specialise   a copy for given argument types: types are inferred through the whole body, calls of the function library and
//	             their gradients are expanded into primitive ops, branches on constants are taken, short loops unrolled
//	Optimise     the passes of Table, in order, in place: canonicalise, fold, cse, licm, dce, …, fuse
//
// What stays generic because its types are only known at run time, the Resolver expands then, by the same code, from actual operands.
//
// Rewrites of single nodes are the rows of Rules. A rewrite may assume only what the op table promises; it is exact for NaN, Inf and -0.
// Passes loop over nodes and recurse over nested blocks only, so that chains of any length are fine.
package passes
