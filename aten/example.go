package aten

import "github.com/gtc-project/gtc/ir"

// one wraps the single result of an expansion.
func one(v *ir.Value) []*ir.Value { return []*ir.Value{v} }
