package passes

import "github.com/gtc-project/gtc/ir"

// Freeze gives f with the parameters from first on replaced by constants, one per value. The values, weights that never change, must not be
// written to afterwards. f is not changed.
func Freeze(f *ir.Func, first int, values []ir.Datum) *ir.Func {
	if len(values) == 0 {
		return f
	}
	f = f.Clone()
	consts := make([]*ir.Node, len(values))
	subst := map[*ir.Value]*ir.Value{}
	for i, d := range values {
		p := f.Body.Params[first+i]
		consts[i] = f.NewNode(ir.OpConst, nil, []ir.Type{ir.TypeOf(d)}, ir.Pos{})
		consts[i].Attrs.Value = d
		consts[i].Results[0].Name = p.Name
		subst[p] = consts[i].Results[0]
	}
	f.Body.Params, f.ParamNames = f.Body.Params[:first], f.ParamNames[:first]
	f.Replace(subst)
	f.Body.Nodes = append(consts, f.Body.Nodes...)
	return f
}
