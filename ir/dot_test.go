package ir

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteDot(t *testing.T) {
	f, err := ParseFunc(`func @f(%x: tensor<f32[2]>, %c: bool) {
		%y = if(%c) { %a = neg(%x) yield %a } else { yield %x }
		%z = sum(%y, [0], false)
		return %z }`)
	require.NoError(t, err)
	var a, b strings.Builder
	require.NoError(t, WriteDot(&a, f))
	require.NoError(t, WriteDot(&b, f))
	require.Equal(t, a.String(), b.String(), "the order is the same every time")
	for _, want := range []string{
		`label="@f"`, `sum(·, [0], false)\n%z: tensor<f32[]>`, `subgraph cluster`, `label="then"`, `label="else"`, `label="tensor<f32[2]>"`,
	} {
		require.Contains(t, a.String(), want)
	}
}
