package script

import (
	"github.com/gtc-project/gtc/ir"
)

// module is an instance of an nn.Module, known completely while lowering.
type module struct {
	class string
}

func (m *module) iterate() ([]value, bool)                                         { return nil, false }
func (m *module) has(name string) bool                                             { return false }
func (m *module) method(f *File, name string) *funcDef                             { return nil }
func (l *lowering) moduleAttr(m *module, e *attrExpr) value                        { return nil }
func (l *lowering) setModuleAttr(m *module, t *attrExpr, v value)                  {}
func (l *lowering) moduleCall(m *module, a *attrExpr, e *callExpr) (value, bool)   { return nil, false }
func (l *lowering) callModule(m *module, args []value, kws []kwValue, p Pos) value { return nil }
func (l *lowering) moduleItem(m *module, e *indexExpr) value                       { return nil }
func (l *lowering) superCall(e *callExpr, a *attrExpr) value                       { return nil }
func (l *lowering) classAttr(c *classDef, name string) value                       { return nil }
func knownLayer(name string) bool                                                  { return false }

var _ = ir.Int

func (l *lowering) entryClass(c *classDef, call *callExpr, opts *Options) (*ir.Func, *Signature) {
	return nil, nil
}
func (l *lowering) updatedBuffers(sig *Signature) []*ir.Value { return nil }
