package tensor

import "fmt"

// Call runs a random aten function (rand, randint, bernoulli, multinomial, dropout, …) on this stream instead of that of the operands' scopes. What it draws depends on
// the generator's seed and on how many draws came before it, nothing else.
func (g *Generator) Call(name string, args ...any) *Tensor {
	fn, full, err := bind(name, args)
	if err == nil && !fn.Random {
		err = fmt.Errorf("%s draws no random numbers: call tensor.Call", name)
	}
	if err != nil {
		return failed(located(name, args, err))
	}
	rs, err := dispatch(Op{Callee: fn.Name, Count: len(fn.Returns)}, fn, append(full, g.Key()))
	if err != nil {
		return failed(located(name, args, err))
	}
	return rs[0].(*Tensor)
}

// Rand draws from [0, 1).
func (g *Generator) Rand(d DType, shape ...int) *Tensor { return g.Call("rand", shape, d) }

// Randn draws from the normal distribution.
func (g *Generator) Randn(d DType, shape ...int) *Tensor { return g.Call("randn", shape, d) }

// Perm is a random order of 0, 1, …, n-1 as I64.
func (g *Generator) Perm(n int) *Tensor { return g.Call("randperm", n) }

// Fork makes a generator whose stream is independent of g's and depends on g's seed and on number only: one for each worker, say.
func (g *Generator) Fork(number uint64) *Generator {
	g.mu.Lock()
	defer g.mu.Unlock()
	return NewGenerator(mix(g.rng.Seed ^ mix(number+1)))
}

// mix is the finaliser of SplitMix64: every bit of the result depends on every bit of x.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
