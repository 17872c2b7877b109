package autograd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
)

// A gradient inside a program, here of x^3 at an intermediate value, is itself differentiable.
func TestGradNode(t *testing.T) {
	f := parse(t, `func @f(%x: tensor<f64[2]>) {
		%y = mul(%x, %x) %z = mul(%y, %x) %s = sum(%z, [0], false)
		%g: tensor<f64[2]> = grad[1](%s, none, %x)
		%h: tensor<f64[2]> = sin(%g)
		return(%h) }`)
	require.NoError(t, autograd.Check(run, f, 2, 1e-6, vec(.3, .7)))
	require.NoError(t, autograd.ExpandGradNodes(f))
	require.Empty(t, ir.Verify(f))
	out, err := run(f, vec(1, 2))
	require.NoError(t, err)
	require.Equal(t, "f64[2]{0.1411200080598672,-0.5365729180004349}", ir.FormatDatum(out[0]))
}

// Gradients of gradients, in a loop whose forward pass itself loops, and of what an enclosing block computed.
func TestGradNodesNest(t *testing.T) {
	for _, text := range []string{
		`func @f(%x: tensor<f64[2]>, %n: int) {
			%r = for(%n, %x) (%i: int, %w: tensor<f64[2]>) {
				%l = for(%n, %w) (%j: int, %h: tensor<f64[2]>) { %a = mul(%h, %w) %b = sin(%a) yield(%b) }
				%s = sum(%l, [0], false)
				%g: tensor<f64[2]> = grad[1](%s, none, %w)
				%u = sub(%w, %g)
				yield(%u) }
			return(%r) }`,
		`func @f(%x: tensor<f64[2]>, %n: int) {
			%l = for(%n, %x) (%j: int, %h: tensor<f64[2]>) { %a = mul(%h, %x) %b = sin(%a) yield(%b) }
			%s = sum(%l, [0], false)
			%c = py_gt(%n, 1)
			%r = if(%c) {
				%g: tensor<f64[2]> = grad[1](%s, none, %x)
				%t = sum(%g, [0], false)
				%k: tensor<f64[2]> = grad[1](%t, none, %x)
				yield(%k)
			} else { yield(%x) }
			return(%r) }`,
	} {
		require.NoError(t, autograd.Check(run, parse(t, text), 1, 1e-6, vec(.3, .7), int64(2)))
	}
}

// An input that nothing depends on gives None.
func TestGradNodeOfUnused(t *testing.T) {
	f := parse(t, `func @f(%x: tensor<f64[2]>, %y: tensor<f64[2]>) {
		%s = sum(%x, [0], false) %g: any = grad[1](%s, none, %y) %c = is_none(%g) return(%c) }`)
	require.NoError(t, autograd.ExpandGradNodes(f))
	out, err := run(f, vec(1, 2), vec(1, 2))
	require.NoError(t, err)
	require.Equal(t, true, out[0])
}
