package driver

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/internal/atomicfile"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
)

// Drawing says how Draw draws.
type Drawing struct {
	After  string // a pass
	Format string // dot, svg, png; "" goes by Output's name
	Output string // "" only returns the drawing
}

// Check settles the format.
func (d *Drawing) Check() error {
	if d.Format == "" {
		d.Format = strings.TrimPrefix(filepath.Ext(d.Output), ".")
	}
	switch d.Format {
	case "", "gv":
		d.Format = "dot"
	case "dot", "svg", "png":
	default:
		return fmt.Errorf("format %q is not known; the formats are dot, svg and png", shortText(d.Format))
	}
	if d.After != "" && !slices.ContainsFunc(passes.Table, func(p passes.Pass) bool { return p.Name == d.After }) {
		return fmt.Errorf("there is no pass %q; the passes are %s", shortText(d.After), passNames())
	}
	return nil
}

// Draw draws a model's graph.
func Draw(ctx context.Context, path string, o *Options, d *Drawing) ([]byte, error) {
	m, err := loadShape(path, o)
	if err != nil {
		return nil, err
	}
	f, err := m.shape(o, passesUpTo(d.After), &Observe{})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := ir.WriteDot(&text, f); err != nil {
		return nil, err
	}
	data := text.Bytes()
	if d.Format != "dot" {
		if data, err = graphviz(ctx, data, d.Format); err != nil {
			return nil, err
		}
	}
	if d.Output != "" {
		return data, atomicfile.WriteBytes(d.Output, data)
	}
	return data, nil
}

// passesUpTo names the passes of the default pipeline up to and with one, which itself need not be a default one; none for "".
func passesUpTo(last string) []string {
	names := []string{}
	if last == "" {
		return names
	}
	for _, p := range passes.Table {
		if p.Default || p.Name == last {
			names = append(names, p.Name)
		}
		if p.Name == last {
			break
		}
	}
	return names
}

func graphviz(ctx context.Context, text []byte, format string) ([]byte, error) {
	bin, err := exec.LookPath("dot")
	if err != nil {
		return nil, fmt.Errorf("the format %s needs Graphviz's dot: apt-get install graphviz, or write --format dot", format)
	}
	c := exec.CommandContext(ctx, bin, "-T"+format)
	c.Stdin = bytes.NewReader(text)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("dot failed: %w: %s", err, shortText(errs.String()))
	}
	return out, nil
}
