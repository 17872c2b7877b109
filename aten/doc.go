// Package aten holds PyTorch's functions by their own names, parameters and defaults: torch.softmax, F.conv2d, Tensor.view, ….
//
// Each is declared once, by a schema in PyTorch's own notation and a Go function that expands it over ir.Builder into primitive
// ops, given the types of its operands. Script, the eager API and the importers all resolve names here, so that a function means
// the same on every path.
//
// An expansion is called with operand types known as far as the caller knows them. Where it needs a dtype, rank or size that is
// not known it stops with ir.ErrNeedsTypes (Builder.NeedDType, NeedRank, NeedShape, NeedConst do), and the call is expanded later,
// at run time, from the actual operands. Where the operands are wrong it stops with Builder.Failf and a message that names the
// shapes or dtypes.
package aten
