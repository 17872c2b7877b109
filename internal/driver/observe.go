package driver

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gtc-project/gtc/internal/atomicfile"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
)

// Observe says which passes run, and what of their work is shown.
type Observe struct {
	Passes     string // comma-separated; "" is the default ones
	PrintAfter string // a pass, or all
	TimePasses bool
	HTML       string // a file: the function after every pass, side by side
	DotDir     string // a folder: a drawing after every pass
	Stderr     io.Writer

	stages []stage
	err    error // the first of a drawing
}

// stage is the function after a pass.
type stage struct {
	pass string
	took time.Duration
	text string
}

// check finds passes that do not exist.
func (e *Observe) check() error {
	names := strings.Split(e.Passes, ",")
	if e.Passes == "" {
		names = nil
	}
	if e.PrintAfter != "" && e.PrintAfter != "all" {
		names = append(names, e.PrintAfter)
	}
	for _, n := range names {
		if !slices.ContainsFunc(passes.Table, func(p passes.Pass) bool { return p.Name == n }) {
			return fmt.Errorf("there is no pass %q; the passes are %s", shortText(n), passNames())
		}
	}
	if e.Passes != "" && e.PrintAfter != "" && e.PrintAfter != "all" && !slices.Contains(names[:len(names)-1], e.PrintAfter) {
		return fmt.Errorf("--print-after=%s: that pass is not among --passes=%s", e.PrintAfter, e.Passes)
	}
	return nil
}

// names are the passes to run; nil stands for the default ones. A pass whose outcome is to be printed runs too.
func (e *Observe) names() []string {
	if e.Passes != "" {
		return strings.Split(e.Passes, ",")
	}
	if e.PrintAfter == "" || e.PrintAfter == "all" {
		return nil
	}
	var names []string
	for _, p := range passes.Table {
		if p.Default || p.Name == e.PrintAfter {
			names = append(names, p.Name)
		}
	}
	return names
}

// Names are the passes to run, nil for the default ones; a name that does not exist is an error.
func (e *Observe) Names() ([]string, error) { return e.names(), e.check() }

// looking reports whether anything of the passes is shown.
func (e *Observe) looking() bool {
	return e.PrintAfter != "" || e.TimePasses || e.HTML != "" || e.DotDir != ""
}

// start notes the function before the passes.
func (e *Observe) start(f *ir.Func) {
	if e.looking() {
		e.stages = nil
		e.show("input", f, 0)
	}
}

// after is what the pass driver calls; nil where nobody looks.
func (e *Observe) after() func(p *passes.Pass, f *ir.Func, took time.Duration) {
	if !e.looking() {
		return nil
	}
	return func(p *passes.Pass, f *ir.Func, took time.Duration) { e.show(p.Name, f, took) }
}

func (e *Observe) show(pass string, f *ir.Func, took time.Duration) {
	s := stage{pass: pass, took: took, text: printIR(f)}
	if e.DotDir != "" && e.err == nil {
		e.err = e.draw(f, fmt.Sprintf("%02d-%s.dot", len(e.stages), pass))
	}
	e.stages = append(e.stages, s)
	if pass != "input" && (e.PrintAfter == "all" || e.PrintAfter == pass) {
		fmt.Fprintf(e.Stderr, "// after %s\n%s", pass, s.text)
	}
}

func (e *Observe) draw(f *ir.Func, name string) error {
	if err := os.MkdirAll(e.DotDir, 0o777); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := ir.WriteDot(&b, f); err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(e.DotDir, name), b.Bytes())
}

// finish prints the times and writes the page.
func (e *Observe) finish() error {
	if e.err != nil {
		return e.err
	}
	if e.TimePasses {
		w := tabwriter.NewWriter(e.Stderr, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "pass\tms\tlines\t\n")
		for _, s := range e.stages {
			fmt.Fprintf(w, "%s\t%.3f\t%d\t\n", s.pass, ms(s.took), strings.Count(s.text, "\n"))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if e.HTML == "" {
		return nil
	}
	page, err := e.page()
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(e.HTML, page)
}

//go:embed passes.html
var pageText string

var pageTemplate = template.Must(template.New("passes").Parse(pageText))

// column is one state of the function on the page, and the passes that left it so.
type column struct {
	Title string
	Lines []line
}

// line is a line of IR text; New says that the column before has none like it.
type line struct {
	New   bool
	Parts []part
}

// part is a piece of a line; Value is the name of a value in it, or "".
type part struct{ Text, Value string }

var valueName = regexp.MustCompile(`%[\w.]+`)

// page shows the stages as columns; those that are equal are one.
func (e *Observe) page() ([]byte, error) {
	var columns []column
	last := ""
	for i, s := range e.stages {
		title := s.pass
		if s.took > 0 {
			title = fmt.Sprintf("%s (%.1f ms)", s.pass, ms(s.took))
		}
		if i > 0 && s.text == last {
			columns[len(columns)-1].Title += " = " + title
			continue
		}
		before := map[string]bool{}
		for l := range strings.Lines(last) {
			before[strings.TrimSpace(l)] = true
		}
		c := column{Title: title}
		for l := range strings.Lines(s.text) {
			l = strings.TrimRight(l, "\n")
			c.Lines = append(c.Lines, line{New: i > 0 && !before[strings.TrimSpace(l)], Parts: partsOf(l)})
		}
		columns, last = append(columns, c), s.text
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, columns)
	return b.Bytes(), err
}

func partsOf(l string) []part {
	var out []part
	at := 0
	for _, m := range valueName.FindAllStringIndex(l, -1) {
		out = append(out, part{Text: l[at:m[0]]}, part{Text: l[m[0]:m[1]], Value: l[m[0]:m[1]]})
		at = m[1]
	}
	return append(out, part{Text: l[at:]})
}
