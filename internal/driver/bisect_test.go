package driver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
)

// TestBisectFindsAWrongRewrite: a pass that turns additions into subtractions is found, at the first place where that matters.
func TestBisectFindsAWrongRewrite(t *testing.T) {
	defer func(table []passes.Pass) { passes.Table = table }(passes.Table)
	passes.Table = append(passes.Table[:len(passes.Table):len(passes.Table)], passes.Pass{
		Name: "wrong", Doc: "additions become subtractions",
		Run: func(f *ir.Func, fuel *passes.Fuel) (*ir.Func, error) {
			f.Body.Walk(func(n *ir.Node) {
				if n.Op.Name == "add" && fuel.Take("spoil", n) {
					n.Op = ir.LookupOp("sub")
				}
			})
			return f, nil
		},
	})
	file := filepath.Join(t.TempDir(), "m.py")
	require.NoError(t, os.WriteFile(file, []byte("import torch\n\n\ndef forward(x, y):\n    a = x + torch.zeros_like(x)\n    return a + y\n"), 0o600))
	o := &Options{Input: []string{"x=f32[3]", "y=f32[3]"}, Target: TargetInterp}
	found, err := Bisect(t.Context(), file, o, []string{"wrong"}, Tolerance{})
	require.NoError(t, err)
	require.Equal(t, "pass wrong: spoil add at "+file+":6:12", found.Rewrite)
	require.Regexp(t, `^result 0 differs at element \d: `, found.Change)
	require.LessOrEqual(t, found.Checked, 10)

	found, err = Bisect(t.Context(), file, o, nil, Tolerance{})
	require.NoError(t, err)
	require.Zero(t, found.Number, found.String())
	require.Contains(t, found.String(), "no difference")
}
