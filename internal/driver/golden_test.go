package driver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

const (
	goldenCases = "../../testdata/golden/cases"
	notYetFile  = "../../testdata/golden/not_yet.txt"
	caseTimeout = 3 * time.Minute
)

var update = flag.Bool("update", false, "rewrite testdata/golden/not_yet.txt with what fails now")

// ways are the ways of running a case that must all give the right answer.
var ways = map[string]driver.Options{
	"interp": {Target: driver.TargetInterp},
	"cpu":    {Target: driver.TargetCPU},
	"eager":  {Eager: true},
}

// caseMeta is a case's meta.json; testdata/golden/README.md describes it.
type caseMeta struct {
	Expect          string
	Grad            bool
	Policy          bool
	ErrorAcceptable bool     `json:"error_acceptable"`
	MatchAny        []string `json:"match_any"`
	RTol, ATol      float64
	RTol64, ATol64  *float64
}

// TestGolden runs every conformance case on every target, in this process, by the contract in testdata/golden/README.md. Cases that are
// known to fail are listed in not_yet.txt, a line "target area/name" each: the test fails when one of those passes (take the line
// out), and when any other case fails. Run with -update to write the list anew.
func TestGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("the conformance cases take a while")
	}
	cases := findCases(t)
	notYet := readNotYet(t)
	var mu sync.Mutex
	failing := map[string]bool{}
	t.Run("cases", func(t *testing.T) {
		for way, o := range ways {
			if why := unavailable(o); why != "" {
				t.Logf("%s is left out: %s", way, why)
				continue
			}
			for _, name := range cases {
				t.Run(way+"/"+name, func(t *testing.T) {
					t.Parallel()
					why := checkCase(name, o)
					key := way + " " + name
					mu.Lock()
					failing[key] = why != ""
					mu.Unlock()
					switch {
					case *update:
					case why != "" && !notYet[key]:
						t.Error(why)
					case why == "" && notYet[key]:
						t.Errorf("it passes now: take %q out of not_yet.txt", key)
					}
				})
			}
		}
	})
	if *update {
		writeNotYet(t, failing, notYet)
		return
	}
	for key := range notYet {
		if _, name, _ := strings.Cut(key, " "); !slices.Contains(cases, name) {
			t.Errorf("not_yet.txt lists %q, which is no case", key)
		}
	}
}

// unavailable says why a way cannot run here; "" where it can.
func unavailable(o driver.Options) string {
	if err := driver.TargetAvailable(&o); err != nil {
		return err.Error()
	}
	return ""
}

func findCases(t *testing.T) []string {
	var names []string
	err := filepath.WalkDir(goldenCases, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "meta.json" {
			name, err := filepath.Rel(goldenCases, filepath.Dir(path))
			if err != nil {
				return err
			}
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, names)
	slices.Sort(names)
	return names
}

func readNotYet(t *testing.T) map[string]bool {
	f, err := os.Open(notYetFile)
	require.NoError(t, err)
	defer f.Close()
	out := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" && !strings.HasPrefix(line, "#") {
			out[line] = true
		}
	}
	return out
}

// writeNotYet rewrites the list; entries of targets that did not run here stay.
func writeNotYet(t *testing.T, failing, old map[string]bool) {
	ran := map[string]bool{}
	for key := range failing {
		way, _, _ := strings.Cut(key, " ")
		ran[way] = true
	}
	var lines []string
	for key, fails := range failing {
		if fails {
			lines = append(lines, key)
		}
	}
	for key := range old {
		if way, _, _ := strings.Cut(key, " "); !ran[way] {
			lines = append(lines, key)
		}
	}
	slices.Sort(lines)
	text := "# Cases that fail, by target; TestGolden of internal/driver keeps this list honest.\n"
	for _, l := range lines {
		text += l + "\n"
	}
	require.NoError(t, os.WriteFile(notYetFile, []byte(text), 0o644))
}

// checkCase runs a case and says what is wrong, or "".
func checkCase(name string, o driver.Options) string {
	dir := filepath.Join(goldenCases, filepath.FromSlash(name))
	var meta caseMeta
	data, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	if err != nil {
		return err.Error()
	}
	o.Inputs, o.Entry, o.Grad = filepath.Join(dir, "in.npz"), "forward", meta.Grad
	got, err := runCase(filepath.Join(dir, "model.py"), &o)
	alternatives, _ := filepath.Glob(filepath.Join(dir, "out.alt*.npz"))
	switch {
	case err != nil && (meta.Expect == "error" || meta.ErrorAcceptable):
		return judgeError(name, err, &meta)
	case err != nil:
		return "failed: " + firstLine(err.Error())
	}
	why := "accepted a program that must be rejected"
	if meta.Expect == "ok" {
		why = compareWith(got, filepath.Join(dir, "out.npz"), &meta)
	}
	for _, alt := range alternatives {
		if why != "" && meta.Policy && compareWith(got, alt, &meta) == "" {
			why = ""
		}
	}
	return why
}

var errCrash = errors.New("internal error")

// runCase runs with a time limit that holds even where the code under test does not watch its context.
func runCase(model string, o *driver.Options) ([]npz.Named, error) {
	type outcome struct {
		results []npz.Named
		err     error
	}
	ctx, cancel := context.WithTimeout(context.Background(), caseTimeout)
	defer cancel()
	done := make(chan outcome, 1)
	go func() {
		var out outcome
		defer func() {
			if r := recover(); r != nil {
				out.err = fmt.Errorf("%w: %v", errCrash, r)
			}
			done <- out
		}()
		out.results, out.err = driver.Run(ctx, model, o)
		if out.err == nil {
			out.err = npz.Encode(discard{}, out.results)
		}
	}()
	select {
	case out := <-done:
		return out.results, out.err
	case <-time.After(caseTimeout + 5*time.Second):
		return nil, fmt.Errorf("%w: no end", errCrash)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// judgeError checks that a program that must be rejected is, for the right reason.
func judgeError(name string, err error, meta *caseMeta) string {
	text := err.Error()
	if errors.Is(err, errCrash) {
		return "crashed: " + firstLine(text)
	}
	// Paths repeat the case's name, which must not count as an explanation.
	base := name[strings.LastIndexByte(name, '/')+1:]
	text = regexp.MustCompile(`\S*`+regexp.QuoteMeta(base)+`\S*`).ReplaceAllString(text, "")
	text = strings.ToLower(text)
	if meta.ErrorAcceptable && meta.Expect != "error" || len(meta.MatchAny) == 0 {
		return ""
	}
	for _, w := range meta.MatchAny {
		if strings.Contains(text, strings.ToLower(w)) {
			return ""
		}
	}
	return fmt.Sprintf("the message has none of %q: %s", meta.MatchAny, firstLine(err.Error()))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}

func compareWith(got []npz.Named, path string, meta *caseMeta) string {
	f, err := npz.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	have := map[string]*ir.Array{}
	for _, g := range got {
		have[g.Name] = g.Array
		if strings.HasPrefix(g.Name, "out.") && !f.Has(g.Name) {
			return "one output too many: " + g.Name
		}
	}
	for _, name := range f.Names() {
		want, err := f.Read(name)
		if err != nil {
			return err.Error()
		}
		if have[name] == nil {
			return name + " is missing"
		}
		if why := compareArrays(have[name], want, meta); why != "" {
			return name + ": " + why
		}
	}
	return ""
}

// compareArrays demands equal dtypes and shapes, integers and bools exactly, floats within the case's tolerance; NaN equals NaN.
func compareArrays(got, want *ir.Array, meta *caseMeta) string {
	if g, w := got.Type(), want.Type(); !g.Equal(w) {
		return fmt.Sprintf("got %s, want %s", g, w)
	}
	if !want.DType.IsFloat() {
		g := got.Ints()
		for i, w := range want.Ints() {
			if g[i] != w {
				return fmt.Sprintf("element %d is %d, want %d", i, g[i], w)
			}
		}
		return ""
	}
	rtol, atol := meta.RTol, meta.ATol
	if want.DType == dtype.F64 && meta.RTol64 != nil {
		rtol, atol = *meta.RTol64, *meta.ATol64
	}
	g := got.Floats()
	for i, w := range want.Floats() {
		ok := g[i] == w || math.IsNaN(w) && math.IsNaN(g[i])
		if !ok && !math.IsNaN(w) && !math.IsInf(w, 0) {
			ok = math.Abs(g[i]-w) <= atol+rtol*math.Abs(w)
		}
		if !ok {
			return fmt.Sprintf("element %d is %.9g, want %.9g (rtol %g atol %g)", i, g[i], w, rtol, atol)
		}
	}
	return ""
}
