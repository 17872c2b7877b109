package debug

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotice(t *testing.T) {
	require.Empty(t, notice(parse("")))
	require.Empty(t, notice(parse("verify, stack")))
	require.Contains(t, notice(parse("help")), "  verify   check functions after every pass\n")
	require.Contains(t, notice(parse("verfy")), "unknown: verfy\n")
	require.Panics(t, func() { On("verfy") }, "a name that is asked for must be in the list")
	require.False(t, On("help"))
}
