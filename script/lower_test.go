package script

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
)

// caseMeta is what a conformance case says of itself.
type caseMeta struct {
	Expect   string   `json:"expect"`
	Phase    string   `json:"phase"`
	MatchAny []string `json:"match_any"`
}

func goldenCases(t *testing.T) []string {
	paths, err := filepath.Glob("../testdata/golden/cases/*/*/model.py")
	require.NoError(t, err)
	if len(paths) == 0 {
		t.Skip("the conformance cases are not here")
	}
	return paths
}

// Every conformance case lowers to valid IR, and what PyTorch refuses to compile is refused with a message that says why.
func TestLowerConformance(t *testing.T) {
	for _, path := range goldenCases(t) {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir), func(t *testing.T) {
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			raw, err := os.ReadFile(filepath.Join(dir, "meta.json"))
			require.NoError(t, err)
			var meta caseMeta
			require.NoError(t, json.Unmarshal(raw, &meta))
			f, err := Parse("model.py", src)
			require.NoError(t, err)
			start := time.Now()
			fn, _, err := f.Lower("forward", nil)
			require.Less(t, time.Since(start), 5*time.Second)
			if meta.Expect == "error" && meta.Phase == "compile" {
				require.Error(t, err)
				require.IsType(t, &Error{}, err)
				msg := strings.ToLower(err.Error())
				for _, m := range meta.MatchAny {
					if strings.Contains(msg, m) {
						return
					}
				}
				t.Fatalf("%v\nmatches none of %q", err, meta.MatchAny)
			}
			if meta.Expect == "error" && err != nil {
				return
			}
			require.NoError(t, err)
			require.Empty(t, ir.Verify(fn))
		})
	}
}
