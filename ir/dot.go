package ir

import (
	"fmt"
	"io"
	"strings"

	"github.com/emicklei/dot"
)

// WriteDot writes a function as a Graphviz graph: a box per node with its literal operands, a cluster per block and fused kernel, and
// an edge per other operand, labelled with its type. Dashed edges lead from a node to the parameters of its blocks.
func WriteDot(w io.Writer, f *Func) error {
	g := dot.NewGraph(dot.Directed)
	g.Attr("label", "@"+f.Name)
	g.Attr("compound", "true")
	d := &dotWriter{namer: newNamer(), at: map[*Value]dot.Node{}}
	(&printer{namer: d.namer}).nameAll(f)
	d.block(g, f.Body)
	_, err := io.WriteString(w, g.String())
	return err
}

type dotWriter struct {
	*namer
	at map[*Value]dot.Node // the box that makes a value
	n  int
}

// box adds a box; ids are padded so that the library's order of ids is program order.
func (d *dotWriter) box(g *dot.Graph, label string) dot.Node {
	d.n++
	return g.Node(fmt.Sprintf("n%07d", d.n)).Label(label).Box()
}

func (d *dotWriter) cluster(g *dot.Graph, label string) *dot.Graph {
	d.n++
	return g.Subgraph(fmt.Sprintf("c%07d", d.n), dot.ClusterOption{}).Label(label)
}

// block adds a block's nodes and gives the boxes of its parameters.
func (d *dotWriter) block(g *dot.Graph, b *Block) []dot.Node {
	var params []dot.Node
	for _, p := range b.Params {
		d.at[p] = d.box(g, d.use(p)+": "+p.Type.String()).Attr("shape", "ellipse")
		params = append(params, d.at[p])
	}
	for _, n := range b.Nodes {
		if n.Op != OpConst {
			d.node(g, n)
		}
	}
	return params
}

func (d *dotWriter) node(g *dot.Graph, n *Node) {
	if len(n.Blocks) > 0 {
		g = d.cluster(g, n.head())
	}
	box := d.box(g, d.label(n))
	for _, a := range n.Args {
		if from, ok := d.at[a]; ok {
			g.Edge(from, box, a.Type.String())
		}
	}
	for _, r := range n.Results {
		d.at[r] = box
	}
	for i, b := range n.Blocks {
		title := "block"
		switch {
		case n.Op == OpIf:
			title = []string{"then", "else"}[i&1]
		case n.Op == OpWhile:
			title = []string{"condition", "body"}[i&1]
		}
		for _, p := range d.block(d.cluster(g, title), b) {
			g.Edge(box, p).Dashed()
		}
	}
}

// label is the op with its literal operands, a dot for each other one, and the results.
func (d *dotWriter) label(n *Node) string {
	args := make([]string, len(n.Args))
	for i, a := range n.Args {
		args[i] = "·"
		if _, ok := d.at[a]; !ok {
			args[i] = shorten(d.use(a))
		}
	}
	s := n.head() + "(" + strings.Join(args, ", ") + ")"
	for _, r := range n.Results {
		s += "\n" + d.use(r) + ": " + r.Type.String()
	}
	return s
}
