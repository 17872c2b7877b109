package driver

import (
	"cmp"
	"slices"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
)

// Info describes a model.
type Info struct {
	Path        string       `json:"path"`
	Kind        Kind         `json:"kind"`
	Entry       string       `json:"entry"`
	Params      []string     `json:"params"`
	Results     []string     `json:"results"`
	Weights     []WeightInfo `json:"weights"`
	WeightElems int          `json:"weight_elements"`
	WeightBytes int          `json:"weight_bytes"`
	Nodes       int          `json:"nodes"`
	Ops         []OpCount    `json:"ops"`
	Unsupported []string     `json:"unsupported"`
}

// WeightInfo describes a weight.
type WeightInfo struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Trainable bool   `json:"trainable"`
}

// OpCount says how often an op occurs, nested blocks included.
type OpCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Describe reads a model and describes it.
func Describe(path string, o *Options) (*Info, error) {
	m, err := loadShape(path, o)
	if err != nil {
		return nil, err
	}
	info := &Info{Path: path, Kind: m.Kind, Entry: m.Entry, Params: []string{}, Results: []string{}, Weights: []WeightInfo{}, Ops: []OpCount{}, Unsupported: []string{}}
	for _, p := range m.Params {
		info.Params = append(info.Params, p.String())
	}
	f := m.Func
	if o.hasSignature() { // then types are known
		if f, err = m.shape(o, []string{}, &Observe{}); err != nil {
			return nil, err
		}
	}
	for _, t := range f.ResultTypes() {
		info.Results = append(info.Results, typeName(t))
	}
	for _, w := range m.Weights {
		info.Weights = append(info.Weights, WeightInfo{w.Name, w.Array.Type().String(), w.Trainable})
		info.WeightElems += w.Array.Len()
		info.WeightBytes += w.Array.Len() * w.Array.DType.Size()
	}
	info.count(f)
	return info, nil
}

// count fills in the ops, and lists calls of functions that do not exist.
func (info *Info) count(f *ir.Func) {
	counts, unknown := map[string]int{}, map[string]bool{}
	f.Body.Walk(func(n *ir.Node) {
		info.Nodes++
		name := n.Op.Name
		if n.Op == ir.OpAten || n.Op == ir.OpVjp {
			name += "." + n.Attrs.Callee
			if aten.Lookup(n.Attrs.Callee) == nil && !unknown[n.Attrs.Callee] {
				unknown[n.Attrs.Callee] = true
				info.Unsupported = append(info.Unsupported, n.Pos.String()+": function "+n.Attrs.Callee)
			}
		}
		counts[name]++
	})
	for name, n := range counts {
		info.Ops = append(info.Ops, OpCount{name, n})
	}
	slices.SortFunc(info.Ops, func(a, b OpCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
}
