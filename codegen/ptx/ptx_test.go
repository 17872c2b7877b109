package ptx

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime/llvm"
)

// needLLVM skips a test where LLVM 19 is missing.
func needLLVM(t testing.TB) {
	t.Helper()
	l, err := llvm.Load()
	if err != nil {
		t.Skip("PTX is made by LLVM 19: ", err)
	}
	if l.Version().Major < 19 {
		t.Skipf("PTX is made by LLVM 19; found version %v", l.Version())
	}
}

func parse(t testing.TB, text string) *ir.Func {
	t.Helper()
	f, err := ir.ParseFunc(text)
	require.NoError(t, err)
	return f
}
