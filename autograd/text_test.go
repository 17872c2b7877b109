package autograd_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
)

var update = flag.Bool("update", false, "rewrite the expected functions in testdata/grad")

// Every file in testdata/grad holds a function and its gradient with respect to all tensor parameters.
func TestGradByText(t *testing.T) {
	files, err := filepath.Glob("../testdata/grad/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	const separator = "\n=>\n\n"
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			in, want, _ := strings.Cut(string(text), separator)
			f := parse(t, in)
			var wrt []int
			for i, p := range f.Body.Params {
				if p.Type.IsTensor() {
					wrt = append(wrt, i)
				}
			}
			g, err := autograd.Grad(f, wrt, nil)
			require.NoError(t, err)
			require.Empty(t, ir.Verify(g))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(strings.TrimRight(in, "\n")+"\n"+separator+g.String()), 0o644))
				return
			}
			require.Equal(t, want, g.String())
		})
	}
}
