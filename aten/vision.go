package aten

import "github.com/gtc-project/gtc/ir"

// Rearrangements of channels and pixels.

func init() {
	def(NN|Torch, "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		x, r := a[0], constInt(e.Builder, a[1])
		s := e.imageShape("pixel_shuffle", x, r)
		c, h, w, batch := s[len(s)-3], s[len(s)-2], s[len(s)-1], s[:len(s)-3]
		if c%(r*r) != 0 {
			e.Failf("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)=%d is not divisible by %d", c, r*r)
		}
		k := len(batch)
		x = e.reshape(x, catInts(batch, []int{c / (r * r), r, r, h, w})...)
		x = e.permute(x, catInts(span(0, k), []int{k, k + 3, k + 1, k + 4, k + 2})...)
		return e.reshape(x, catInts(batch, []int{c / (r * r), h * r, w * r})...)
	}))
	def(NN|Torch, "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		x, r := a[0], constInt(e.Builder, a[1])
		s := e.imageShape("pixel_unshuffle", x, r)
		c, h, w, batch := s[len(s)-3], s[len(s)-2], s[len(s)-1], s[:len(s)-3]
		if h%r != 0 || w%r != 0 {
			e.Failf("pixel_unshuffle expects height and width to be divisible by downscale_factor, but sizes %d and %d are not divisible by %d", h, w, r)
		}
		k := len(batch)
		x = e.reshape(x, catInts(batch, []int{c, h / r, r, w / r, r})...)
		x = e.permute(x, catInts(span(0, k), []int{k, k + 2, k + 4, k + 1, k + 3})...)
		return e.reshape(x, catInts(batch, []int{c * r * r, h / r, w / r})...)
	}))
	def(NN|Torch, "channel_shuffle(Tensor self, int groups) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		x, g := a[0], constInt(e.Builder, a[1])
		s := e.NeedShape(x)
		if len(s) < 3 {
			e.Failf("channel_shuffle expects input with > 2 dims, but got input with sizes %v", s)
		}
		if g <= 0 || s[1]%g != 0 {
			e.Failf("Number of channels must be divisible by groups. Got %d channels and %d groups.", s[1], g)
		}
		y := e.reshape(x, catInts([]int{s[0], g, s[1] / g}, s[2:])...)
		return e.reshape(e.swap(y, 1, 2), s...)
	}))
	alias(Torch, "native_channel_shuffle", "channel_shuffle")
}

func (e em) imageShape(name string, x *ir.Value, factor int) []int {
	s := e.NeedShape(x)
	if len(s) < 3 {
		e.Failf("%s expects input to have at least 3 dimensions, but got input with %d dimension(s)", name, len(s))
	}
	if factor <= 0 {
		e.Failf("%s expects a positive factor, but got %d", name, factor)
	}
	return s
}
