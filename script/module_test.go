package script

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
)

// Every class and function of the benchmark models lowers.
func TestLowerModels(t *testing.T) {
	paths, _ := filepath.Glob("../testdata/models/*.py")
	if len(paths) == 0 {
		t.Skip("the benchmark models are not here")
	}
	for _, path := range paths {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		f, err := Parse(filepath.Base(path), src)
		require.NoError(t, err)
		for _, entry := range f.Entries() {
			if c := f.classes[entry]; c != nil {
				if init := c.methods["__init__"]; init != nil && len(init.params) > 1 && init.params[1].deflt == nil {
					continue // not an entry by itself
				}
			} else if entry == "stage" {
				continue
			}
			t.Run(filepath.Base(path)+"/"+entry, func(t *testing.T) {
				fn, _, err := f.Lower(entry, nil)
				require.NoError(t, err)
				require.Empty(t, ir.Verify(fn))
			})
		}
	}
}
