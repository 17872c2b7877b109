package aten

import (
	"sort"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

func init() {
	def(Torch, "einsum(str equation, Tensor[] operands, *, int[]? path=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.einsum(constStr(e.Builder, a[0]), listElems(e.Builder, a[1]))
	}))
	// torch.einsum also takes the operands one by one
	for n, params := 1, "Tensor op0"; n <= 6; n++ {
		name := "einsum.n" + string(rune('0'+n))
		def(Torch, name+"(str equation, "+params+") -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
			return e.einsum(constStr(e.Builder, a[0]), a[1:])
		}))
		params += ", Tensor op" + string(rune('0'+n))
	}
}

// An einsum label is a letter, or a number below ellipsisEnd for a dim that an ellipsis covers, counted from its last one.
const ellipsisEnd = 'A'

// labelled is an operand whose dims carry labels, all different.
type labelled struct {
	v      *ir.Value
	labels []rune
}

func (l labelled) find(r rune) int {
	for i, x := range l.labels {
		if x == r {
			return i
		}
	}
	return -1
}

// einsum contracts the operands from left to right as the equation says.
func (e em) einsum(equation string, ops []*ir.Value) *ir.Value {
	equation = strings.ReplaceAll(equation, " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	terms := strings.Split(left, ",")
	if len(ops) == 0 {
		e.Failf("einsum(): must provide at least one operand")
	}
	if len(terms) != len(ops) {
		e.Failf("einsum(): the equation %q has %d operands, but %d tensors were given: expected as many subscripts as operands", equation, len(terms), len(ops))
	}
	e.needSame(ops...)
	labels := make([][]rune, len(ops))
	covered := 0 // the most dims that an ellipsis stands for
	for i, t := range terms {
		var n int
		labels[i], n = e.einsumTerm(t, i, rank(e.Builder, ops[i]))
		covered = max(covered, n)
	}
	out := e.einsumOutput(right, explicit, labels, covered)
	sizes := e.einsumSizes(ops, labels)
	for _, r := range out {
		if _, ok := sizes[r]; !ok {
			e.Failf("einsum(): output subscript %c does not appear in the equation for any input operand", r)
		}
	}
	acc := e.einsumOperand(ops[0], labels[0])
	for i := 1; i < len(ops); i++ {
		acc = e.einsumPair(acc, e.einsumOperand(ops[i], labels[i]), needed(out, labels[i+1:]))
	}
	acc = e.sumLabels(acc, needed(out, nil))
	perm := make([]int, len(out))
	for i, r := range out {
		perm[i] = acc.find(r)
	}
	return e.permute(acc.v, perm...)
}

// einsumTerm gives the labels of an operand's dims, and how many of them an ellipsis covers.
func (e em) einsumTerm(term string, operand, r int) (labels []rune, covered int) {
	before, after, dots := strings.Cut(term, "...")
	named := len(before) + len(after)
	if covered = r - named; covered < 0 || covered > 0 && !dots {
		e.Failf("einsum(): the number of subscripts in the equation (%d) does not match the number of dimensions (%d) for operand %d", named, r, operand)
	}
	labels = e.letters(before)
	for i := covered - 1; i >= 0 && dots; i-- {
		labels = append(labels, rune(i))
	}
	return append(labels, e.letters(after)...), covered
}

func (e em) letters(s string) []rune {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			e.Failf("einsum(): invalid subscript given: %q, subscripts must be in [a-zA-Z]", string(r))
		}
	}
	return []rune(s)
}

// einsumOutput gives the labels of the result: those after the arrow, or the ellipsis and then in alphabetical order (capitals
// first) the letters that occur once.
func (e em) einsumOutput(right string, explicit bool, labels [][]rune, covered int) []rune {
	var ellipsis []rune
	for i := covered - 1; i >= 0; i-- {
		ellipsis = append(ellipsis, rune(i))
	}
	if explicit {
		before, after, dots := strings.Cut(right, "...")
		out := e.letters(before)
		if dots {
			out = append(out, ellipsis...)
		}
		out = append(out, e.letters(after)...)
		seen := map[rune]bool{}
		for _, r := range out {
			if seen[r] {
				e.Failf("einsum(): output subscript %c appears more than once in the output", r)
			}
			seen[r] = true
		}
		return out
	}
	count := map[rune]int{}
	for _, ls := range labels {
		for _, r := range ls {
			count[r]++
		}
	}
	out := ellipsis
	var once []rune
	for r, n := range count {
		if n == 1 && r >= ellipsisEnd {
			once = append(once, r)
		}
	}
	sort.Slice(once, func(i, j int) bool { return once[i] < once[j] })
	return append(out, once...)
}

// einsumSizes checks that equal labels have equal sizes, where a size of 1 is repeated.
func (e em) einsumSizes(ops []*ir.Value, labels [][]rune) map[rune]int {
	sizes := map[rune]int{}
	for i, op := range ops {
		s := e.NeedShape(op)
		for d, r := range labels[i] {
			switch have, ok := sizes[r]; {
			case !ok || have == 1:
				sizes[r] = s[d]
			case s[d] != 1 && s[d] != have:
				e.Failf("einsum(): operands do not broadcast with remapped shapes: subscript %c has size %d for operand %d which does not match the size %d seen before", max(r, '.'), s[d], i, have)
			}
		}
	}
	return sizes
}

// einsumOperand takes diagonals until no label repeats.
func (e em) einsumOperand(v *ir.Value, labels []rune) labelled {
	for i, r := range labels {
		for j := i + 1; j < len(labels); j++ {
			if labels[j] != r {
				continue
			}
			s := e.NeedShape(v)
			if s[i] != s[j] {
				e.Failf("einsum(): subscript %c is repeated for operand %s but the sizes don't match, %d != %d", r, v.Type, s[j], s[i])
			}
			rest := append(append([]rune{}, labels[:i]...), labels[i+1:j]...)
			rest = append(append(rest, labels[j+1:]...), r) // a diagonal comes last
			return e.einsumOperand(e.Op("diagonal", v, e.Int(0), e.Int(i), e.Int(j)), rest)
		}
	}
	return labelled{v, labels}
}

// needed is the set of labels that are still used after some step.
func needed(out []rune, later [][]rune) map[rune]bool {
	set := map[rune]bool{}
	for _, ls := range append([][]rune{out}, later...) {
		for _, r := range ls {
			set[r] = true
		}
	}
	return set
}

// sumLabels sums the dims whose labels are not kept.
func (e em) sumLabels(x labelled, keep map[rune]bool) labelled {
	var dims []int
	var left []rune
	for d, r := range x.labels {
		if keep[r] {
			left = append(left, r)
		} else {
			dims = append(dims, d)
		}
	}
	if len(dims) == 0 {
		return x
	}
	return labelled{e.sum(x.v, false, dims...), left}
}

// einsumPair contracts two operands over the labels that both have and nobody needs any more.
func (e em) einsumPair(x, y labelled, keep map[rune]bool) labelled {
	x = e.sumLabels(x, union(keep, y.labels))
	y = e.sumLabels(y, union(keep, x.labels))
	x, y = e.einsumBroadcast(x, y)
	var batch, sumOver, onlyX, onlyY []rune
	for _, r := range x.labels {
		switch {
		case y.find(r) < 0:
			onlyX = append(onlyX, r)
		case keep[r]:
			batch = append(batch, r)
		default:
			sumOver = append(sumOver, r)
		}
	}
	for _, r := range y.labels {
		if x.find(r) < 0 {
			onlyY = append(onlyY, r)
		}
	}
	order := func(l labelled, groups ...[]rune) *ir.Value {
		var p []int
		for _, g := range groups {
			for _, r := range g {
				p = append(p, l.find(r))
			}
		}
		return e.permute(l.v, p...)
	}
	v := e.dot(order(x, batch, onlyX, sumOver), order(y, batch, onlyY, sumOver), len(batch), len(sumOver))
	return labelled{v, append(append(append([]rune{}, batch...), onlyX...), onlyY...)}
}

// einsumBroadcast repeats dims of size 1 that the other operand has with another size.
func (e em) einsumBroadcast(x, y labelled) (labelled, labelled) {
	fit := func(l, other labelled) labelled {
		s := append([]int{}, e.NeedShape(l.v)...)
		for d, r := range l.labels {
			if o := other.find(r); o >= 0 && s[d] == 1 {
				s[d] = e.NeedShape(other.v)[o]
			}
		}
		return labelled{broadcastTo(e.Builder, l.v, s), l.labels}
	}
	return fit(x, y), fit(y, x)
}

func union(set map[rune]bool, more []rune) map[rune]bool {
	out := map[rune]bool{}
	for r := range set {
		out[r] = true
	}
	for _, r := range more {
		out[r] = true
	}
	return out
}
