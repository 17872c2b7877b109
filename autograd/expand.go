package autograd

import "github.com/gtc-project/gtc/ir"

func expandIn(f *ir.Func) error { return nil }
