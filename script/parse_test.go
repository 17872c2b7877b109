package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func parseDir(t *testing.T, glob string) []string {
	paths, err := filepath.Glob(glob)
	require.NoError(t, err)
	if len(paths) == 0 {
		t.Skip("no files at " + glob)
	}
	return paths
}

// Every program of the conformance suite and every benchmark model parses.
func TestParseConformance(t *testing.T) {
	for _, glob := range []string{"../testdata/golden/cases/*/*/model.py", "../testdata/models/*.py"} {
		paths, _ := filepath.Glob(glob)
		for _, path := range paths {
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = Parse(path, src)
			require.NoError(t, err)
		}
	}
}

// Files made to break a parser end quickly with a short message, or parse.
func TestParseHostile(t *testing.T) {
	for _, path := range parseDir(t, "../testdata/hostile/script/*.py") {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		start := time.Now()
		_, err = Parse(filepath.Base(path), src)
		require.Less(t, time.Since(start), 10*time.Second, path)
		if err != nil {
			t.Log(err)
			require.Less(t, len(err.Error()), 600, path)
		}
	}
}

func TestDiagnosticPointsAtTheExpression(t *testing.T) {
	_, err := Parse("m.py", []byte("def forward(x):\n    return x +* 2\n"))

	require.Contains(t, err.Error(), "m.py:2:15: error: invalid syntax")
}

func TestLongChainsParse(t *testing.T) {
	src := "def forward(a):\n    return " + strings.TrimSuffix(strings.Repeat("a+", 5000), "+") + "\n"
	_, err := Parse("m.py", []byte(src))
	require.NoError(t, err)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "def f(x: int = 3) -> int:\n  return x\n", "def f():\n\tif a:\n\t\tpass\n\telif b:\n\t\tbreak\n", "x = f'{a!r:>{b}}'\n", "def f(*, a): return [i for i in a if i]\n",
		"class A(nn.Module):\n    def f(self): pass\n", "a = b[..., None, 1:2:3, ::]\n", "a = -9223372036854775808\n", "(((", "'''", "\\", "0x", "1e", "a\n b\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if _, err := Parse("fuzz.py", []byte(src)); err != nil {
			require.IsType(t, &Error{}, err)
		}
	})
}
