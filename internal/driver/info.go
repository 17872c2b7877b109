package driver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/script"
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
	unsupported := unsupportedIn(path)
	if err != nil {
		if len(unsupported) > 0 {
			err = fmt.Errorf("%w\nnot supported in this file:\n  %s", err, strings.Join(unsupported, "\n  "))
		}
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
	info.Unsupported = append(info.Unsupported, unsupported...)
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

// unsupportedIn lists everything in a script that is not supported, also where no entry reaches it.
func unsupportedIn(path string) []string {
	kind, src, err := sniff(path)
	if err != nil || kind != Script {
		return nil
	}
	f, err := script.Parse(path, src)
	if err != nil {
		return nil
	}
	var out []string
	for _, u := range f.Unsupported() {
		out = append(out, fmt.Sprintf("%s:%d:%d: %s", u.File, u.Pos.Line, u.Pos.Col, u.Msg))
	}
	return out
}
