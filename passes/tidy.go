package passes

import "github.com/gtc-project/gtc/ir"

// tidy simplifies an expansion and puts it into kernels.
func tidy(f *ir.Func) (*ir.Func, error) {
	g, err := SpecialiseTypes(f, nil)
	if err != nil {
		return nil, err
	}
	forget(g)
	if err := fuse(g, nil); err != nil {
		return nil, err
	}
	return g, nil
}
