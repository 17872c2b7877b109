package progen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/ir/dtype"
)

// signed is a dim, counted from either end.
func (g *gen) signed(dim, rank int) int {
	if g.IntN(2) == 0 {
		return dim - rank
	}
	return dim
}

func (g *gen) view() {
	x := g.find(small)
	if x == nil {
		return
	}
	rank := len(x.shape)
	s := slices.Clone(x.shape)
	let := func(owned bool, format string, args ...any) {
		g.let(s, x.dtype, x.inexact, owned && x.owned, format, args...)
	}
	if rank == 0 {
		s = pick(g, []int{1}, []int{3}, []int{1, 1})
		let(count(s) == 1, pick(g, "%s.expand(%s)"), x.name, list(s))
		return
	}
	d := g.IntN(rank)
	switch g.IntN(11) {
	case 0:
		to := []int{count(s)}
		if rank >= 2 && g.IntN(2) == 0 {
			to = append([]int{s[0] * s[1]}, s[2:]...)
		} else if count(s) > 0 && s[rank-1]%2 == 0 {
			to = append(slices.Clone(s[:rank-1]), 2, s[rank-1]/2)
		}
		s = to
		let(false, "%s.reshape(%s)", x.name, list(s))
	case 1:
		e := g.IntN(rank)
		s[d], s[e] = s[e], s[d]
		let(true, "%s.transpose(%d, %d)", x.name, g.signed(d, rank), g.signed(e, rank))
	case 2:
		p := g.Perm(rank)
		for i, j := range p {
			s[i] = x.shape[j]
		}
		let(true, "%s.permute(%s)", x.name, list(p))
	case 3:
		s = slices.Insert(s, d, 1)
		let(true, "%s.unsqueeze(%d)", x.name, d)
	case 4:
		if i := slices.Index(s, 1); i >= 0 {
			s = slices.Delete(s, i, i+1)
			let(true, "%s.squeeze(%d)", x.name, g.signed(i, rank))
		}
	case 5:
		if s[d] > 0 {
			from := g.IntN(s[d])
			s[d] = 1 + g.IntN(s[d]-from)
			let(true, "%s.narrow(%d, %d, %d)", x.name, g.signed(d, rank), from, s[d])
		}
	case 6:
		if s[d] > 0 {
			i := g.signed(g.IntN(s[d]), s[d])
			s = slices.Delete(s, d, d+1)
			let(true, "%s[%s%d]", x.name, strings.Repeat(":, ", d), i)
		}
	case 7:
		if s[d] > 0 {
			from, step := g.IntN(s[d]), 1+g.IntN(3)
			s[d] = (s[d] - from + step - 1) / step
			let(true, "%s[%s%d::%d]", x.name, strings.Repeat(":, ", d), from, step)
		}
	case 8:
		if i := slices.Index(s, 1); i >= 0 {
			s[i] = 3
			let(false, "%s.expand(%s)", x.name, list(s))
		} else {
			s = append([]int{2}, s...)
			let(false, "%s.expand(%s)", x.name, list(s))
		}
	case 9:
		if s[d] >= 2 {
			half := (s[d] + 1) / 2
			s[d] -= half
			let(true, "%s.chunk(2, %d)[1]", x.name, d)
		}
	case 10:
		if rank >= 2 {
			n := min(s[0], s[1])
			s = append(s[2:], n)
			let(true, "%s.diagonal()", x.name)
		}
	}
}

func (g *gen) move() {
	x := g.find(ranked(1), small, filled)
	if x == nil {
		return
	}
	s, rank := slices.Clone(x.shape), len(x.shape)
	d := g.IntN(rank)
	let := func(format string, args ...any) { g.let(s, x.dtype, x.inexact, true, format, args...) }
	switch g.IntN(16) {
	case 0, 1:
		y := g.find(typed(x.dtype), rankedJust(rank), func(v *variable) bool {
			return slices.Equal(slices.Delete(slices.Clone(v.shape), d, d+1), slices.Delete(slices.Clone(s), d, d+1))
		})
		s[d] += y.shape[d]
		g.let(s, x.dtype, x.inexact || y.inexact, true, "torch.cat([%s, %s], dim=%d)", x.name, y.name, g.signed(d, rank))
	case 2:
		y := g.find(typed(x.dtype), shaped(s))
		s = slices.Insert(s, d, 2)
		g.let(s, x.dtype, x.inexact || y.inexact, true, "torch.stack([%s, %s], %d)", x.name, y.name, d)
	case 3:
		let("%s.flip([%d])", x.name, d)
	case 4:
		let("%s.roll(%d, %d)", x.name, g.IntN(5)-2, d)
	case 5:
		n := 1 + g.IntN(4)
		idx := make([]int, n)
		for i := range idx {
			idx[i] = g.IntN(s[d])
		}
		s[d] = n
		let("%s.index_select(%d, torch.tensor(%s))", x.name, g.signed(d, rank), list(idx))
	case 6:
		idx := []int{g.IntN(s[0]), -1, g.IntN(s[0])}
		s[0] = 3
		let("%s[torch.tensor(%s)]", x.name, list(idx))
	case 7:
		if m := g.find(isBool, shaped(s)); m != nil && isWide(x) {
			s = nil
			let("%s[%s].sum()", x.name, m.name)
		}
	case 8:
		s[d] *= 2
		r := slices.Repeat([]int{1}, rank)
		r[d] = 2
		let("%s.repeat(%s)", x.name, list(r))
	case 9:
		if isWide(x) {
			s[rank-1] += 3
			let("F.pad(%s, [1, 2], value=0.5)", x.name)
		}
	case 10:
		if isExact(x) && isWide(x) {
			let("torch.sort(%s, dim=%d, descending=%s)[0]", x.name, d, pick(g, "True", "False"))
		}
	case 11:
		if isExact(x) && isWide(x) {
			s[d] = 1 + g.IntN(s[d])
			let("torch.topk(%s, %d, %d)[0]", x.name, s[d], d)
		}
	case 12:
		if rank >= 2 {
			let(pick(g, "torch.tril(%s)", "torch.triu(%s, 1)", "torch.tril(%s, -1)"), x.name)
		}
	case 13:
		i := g.find(isInt, shaped(s))
		if i != nil {
			let("torch.gather(%s, %d, %s.abs() %% %d)", x.name, d, i.name, s[d])
		}
	case 14:
		if isWide(x) {
			i := g.find(isInt, rankedJust(1), filled)
			y := g.find(typed(x.dtype), rankedJust(rank), func(v *variable) bool {
				w := slices.Clone(v.shape)
				if i == nil || w[d] != i.shape[0] {
					return false
				}
				w[d] = s[d]
				return slices.Equal(w, s)
			})
			if y != nil {
				g.let(s, x.dtype, x.inexact || y.inexact, true, "%s.index_add(%d, %s.abs() %% %d, %s)", x.name, d, i.name, s[d], y.name)
			}
		}
	case 15:
		if m := g.find(isBool, shaped(s)); m != nil && number(x) {
			let("%s.masked_fill(%s, 2)", x.name, m.name)
		}
	}
}

func (g *gen) reduce() {
	x := g.find(ranked(1), filled)
	if x == nil {
		return
	}
	s, rank := slices.Clone(x.shape), len(x.shape)
	d := g.IntN(rank)
	if !isFloat(x) {
		if isInt(x) {
			s = slices.Delete(s, d, d+1)
			g.let(s, dtype.I64, false, true, pick(g, "%s.sum(%d)", "%s.clamp(-2, 2).prod(%d)"), x.name, d)
		} else {
			s = slices.Delete(s, d, d+1)
			e, to := "%s.any(%d)", dtype.Bool
			if g.IntN(2) == 0 {
				e, to = "%s.sum(%d)", dtype.I64
			}
			g.let(s, to, false, true, e, x.name, d)
		}
		return
	}
	if !isWide(x) {
		s = slices.Delete(s, d, d+1)
		g.let(s, x.dtype, x.inexact, true, pick(g, "%s.sum(%d)", "%s.mean(%d)"), x.name, d)
		return
	}
	switch g.IntN(8) {
	case 0:
		g.let(nil, x.dtype, x.inexact, true, pick(g, "%s.sum()", "%s.mean()", "%s.norm()", "%s.max()", "torch.tanh(%s).prod()", "%s.square().sum()", "F.mse_loss(%s, torch.zeros_like(%[1]s))"), x.name)
	case 1, 2:
		keep := g.IntN(2) == 0
		if keep {
			s[d] = 1
		} else {
			s = slices.Delete(s, d, d+1)
		}
		e := pick(g, "%s.sum(%d, %s)", "%s.mean(%d, %s)", "%s.amax(%d, %s)", "%s.amin(%d, %s)", "torch.logsumexp(%s, %d, %s)", "torch.var(%s, %d, False, %s)", "%s.norm(2, %d, %s)", "torch.tanh(%s).prod(%d, %s)")
		if x.inexact && strings.Contains(e, ".a") {
			return
		}
		g.let(s, x.dtype, x.inexact, true, e, x.name, g.signed(d, rank), map[bool]string{true: "True", false: "False"}[keep])
	case 3:
		g.let(s, x.dtype, x.inexact, true, pick(g, "F.softmax(%s, %d)", "F.log_softmax(%s, %d)", "%s.cumsum(%d)", "torch.cumprod(torch.sigmoid(%s) + 0.5, %d)", "torch.logcumsumexp(%s, %d)", "F.normalize(%s, dim=%d)"), x.name, g.signed(d, rank))
	case 4:
		g.let(s, x.dtype, x.inexact, true, "F.layer_norm(%s, [%d])", x.name, s[rank-1])
	case 5:
		if isExact(x) {
			s = slices.Delete(s, d, d+1)
			g.let(s, dtype.I64, false, true, pick(g, "%s.argmax(%d)", "%s.argmin(%d)", "torch.max(%s, %d)[1]"), x.name, d)
		}
	case 6:
		if isExact(x) {
			s = slices.Delete(s, d, d+1)
			g.let(s, x.dtype, false, true, pick(g, "torch.max(%s, %d)[0]", "torch.median(%s, %d)[0]", "torch.min(%s, %d)[0]"), x.name, d)
		}
	case 7:
		if rank >= 2 {
			e := (d + 1) % rank
			for _, i := range []int{max(d, e), min(d, e)} {
				s = slices.Delete(s, i, i+1)
			}
			g.let(s, x.dtype, x.inexact, true, pick(g, "%s.sum([%d, %d])", "%s.mean([%d, %d])"), x.name, d, e)
		}
	}
}

func (g *gen) product() {
	x := g.find(isWide, ranked(1), small, filled)
	if x == nil {
		return
	}
	rank := len(x.shape)
	k := x.shape[rank-1]
	switch g.IntN(4) {
	case 0:
		y := g.find(typed(x.dtype), rankedJust(2), func(v *variable) bool { return v.shape[0] == k })
		if y != nil {
			g.inexact = true
			g.let(append(slices.Clone(x.shape[:rank-1]), y.shape[1]), x.dtype, true, true, "torch.tanh(%s) @ torch.tanh(%s)", x.name, y.name)
		}
	case 1:
		y := g.find(typed(x.dtype), rankedJust(2), func(v *variable) bool { return v.shape[1] == k })
		if y != nil {
			g.inexact = true
			g.let(append(slices.Clone(x.shape[:rank-1]), y.shape[0]), x.dtype, true, true, "F.linear(torch.sin(%s), torch.sin(%s))", x.name, y.name)
		}
	case 2:
		if rank >= 2 {
			g.inexact = true
			g.let(append(slices.Clone(x.shape[:rank-1]), x.shape[rank-2]), x.dtype, true, true, "torch.matmul(torch.tanh(%s), torch.cos(%s).transpose(-1, -2))", x.name, x.name)
		}
	case 3:
		if rank == 3 && k >= 3 {
			g.inexact = true
			c := x.shape[1]
			g.let([]int{x.shape[0], 2, k}, x.dtype, true, true, "F.conv1d(torch.tanh(%s), torch.ones([2, %d, 3], dtype=%s) * 0.3, padding=1)", x.name, c, torchName(x.dtype))
		}
	}
}

// write changes memory in place.
func (g *gen) write() {
	x := g.find(isOwned, isFloat, filled)
	if x == nil {
		if y := g.find(isFloat); y != nil {
			g.let(y.shape, y.dtype, y.inexact, true, "%s.clone()", y.name)
		}
		return
	}
	rank := len(x.shape)
	fits := func(shape []int) *variable {
		return g.find(typed(x.dtype), isExactUnless(x.inexact), func(v *variable) bool {
			s, ok := broadcast(shape, v.shape)
			return ok && slices.Equal(s, shape) && v != x
		})
	}
	switch k := g.IntN(6); {
	case k == 0:
		g.line(pick(g, "%s.mul_(0.5)", "%s.add_(1.0)", "%s.clamp_(-2.0, 2.0)", "%s.neg_()", "%s.tanh_()", "%s.zero_()", "%s.fill_(0.25)", "%s.sigmoid_()", "%s -= 0.5", "%s *= -1"), x.name)
	case k == 1:
		if y := fits(x.shape); y != nil {
			g.line(pick(g, "%s += %s", "%s.copy_(%s)", "%s -= torch.sin(%s)", "%s.add_(%s, alpha=0.5)", "%s *= torch.cos(%s)"), x.name, y.name)
		}
	case k == 2 && rank >= 1:
		d := g.IntN(rank)
		part := slices.Delete(slices.Clone(x.shape), d, d+1)
		at := fmt.Sprintf("%s%d", strings.Repeat(":, ", d), g.signed(g.IntN(x.shape[d]), x.shape[d]))
		if y := fits(part); y != nil {
			g.line(pick(g, "%s[%s] = %s", "%s[%s] += %s", "%s[%s] *= torch.tanh(%s)"), x.name, at, y.name)
		} else {
			g.line(pick(g, "%s[%s] = 0.5", "%s[%s] *= 2"), x.name, at)
		}
	case k == 3 && rank >= 1:
		d := g.IntN(rank)
		from := g.IntN(x.shape[d])
		part := slices.Clone(x.shape)
		part[d] -= from
		at := fmt.Sprintf("%s%d:", strings.Repeat(":, ", d), from)
		if y := fits(part); y != nil {
			g.line(pick(g, "%s[%s] = %s", "%s[%s] += %s", "%s[%s].mul_(%s)"), x.name, at, y.name)
		} else {
			g.line(pick(g, "%s[%s] = -1.0", "%s[%s].add_(1)"), x.name, at)
		}
	case k == 4:
		if m := g.find(isBool, shaped(x.shape)); m != nil {
			g.line(pick(g, "%s.masked_fill_(%s, 0.5)", "%s[%s] = 1.5"), x.name, m.name)
		}
	case k == 5 && rank >= 1:
		i := g.find(isInt, rankedJust(1), filled)
		if i != nil {
			g.line("%s[%s.abs() %% %d] = 0.75", x.name, i.name, x.shape[0])
		}
	}
}

// isExactUnless keeps values that depend on products away from memory that something jumpy may read.
func isExactUnless(inexact bool) func(*variable) bool {
	return func(v *variable) bool { return inexact || !v.inexact }
}

func (g *gen) random() {
	x := g.find(isWide, small)
	if x == nil {
		return
	}
	g.let(x.shape, x.dtype, x.inexact, true, pick(g, "F.dropout(%s, 0.3, True)", "%s + torch.rand_like(%[1]s)", "%s * torch.randn_like(%[1]s)", "%s * torch.bernoulli(torch.full_like(%[1]s, 0.5))"), x.name)
}
