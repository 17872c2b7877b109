package cpu

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime/pool"
)

// rowwise is how a grid goes through its operands, row after row.
type rowwise struct {
	outer kernel.Nest               // over the rows, one stride per operand; where any is set, over single elements
	sizes []int                     // bytes per element, per operand
	any   bool                      // the elements are contiguous in all operands, and rows may have any length
	cut   func(rows, per int) *grid // the same work in units of so many rows
}

// step is how many bytes operand i moves from one row to the next; ok is false where that is not always the same.
func (r *rowwise) step(i, rows int) (bytes int, ok bool) {
	if r.any {
		return r.outer[0].Size / rows * r.sizes[i], true
	}
	if len(r.outer) == 0 {
		return 0, false
	}
	n := len(r.outer) - 1
	s := r.outer[n].Strides[i]
	for d, size := n-1, r.outer[n].Size; d >= 0; d-- {
		if r.outer[d].Strides[i] != s*size {
			return 0, false
		}
		size *= r.outer[d].Size
	}
	return s * r.sizes[i], true
}

// chainBytes is how much of the operands one unit of a chain goes through: it stays in the second-level cache from one kernel to the next.
const chainBytes = 192 << 10

// Chain joins launches that are to run one after another on these operands, so that each takes up a few rows right after the one before has left
// them, while they are in the cache. It is nil where the launches do not all go by the same rows, or one needs more of another's
// result than its own row. The operands of launch i are ops[i], inputs before outputs; arrays of different launches share memory only if
// they share its beginning. Nobody reads the arrays in local but the launches: they may be left as they are, and each worker keeps the rows it is at
// in its own memory.
func Chain(launches []Launch, ops [][]*ir.Array, local []*ir.Array) *Chained {
	c := &Chained{grids: make([]*grid, len(launches)), local: make([][]int, len(launches))}
	rows, bytes := 0, 0
	for i, l := range launches {
		g, ok := l.(*grid)
		if !ok || g.rows == nil || g.units == 0 {
			return nil
		}
		c.grids[i] = g
		if n := g.rows.outer.Len(); !g.rows.any {
			if rows != 0 && n != rows {
				return nil
			}
			rows = n
		}
	}
	if rows < 2 {
		return nil
	}
	steps := map[*byte]int{} // by memory of a result: how far apart its rows are
	inside := map[*byte]int{}
	for i, a := range local {
		inside[unsafe.SliceData(a.Data)] = i
	}
	for i, g := range c.grids {
		if g.rows.any && g.rows.outer[0].Size%rows != 0 {
			return nil
		}
		first := len(ops[i]) - g.outs
		for k, a := range ops[i] {
			step, ok := g.rows.step(k, rows)
			mem := unsafe.SliceData(a.Data)
			if k >= first {
				if !ok {
					return nil
				}
				steps[mem] = step
			} else if s, is := steps[mem]; is && (!ok || s != step || a.Offset != 0) {
				return nil
			}
			id, is := inside[mem]
			if !is {
				id = -1
			}
			c.local[i] = append(c.local[i], id)
			bytes += max(step, -step)
		}
	}
	per := max(1, min(chainBytes/max(bytes, 1), (rows+2*c.grids[0].pool.Size()-1)/(2*c.grids[0].pool.Size())))
	for i, g := range c.grids {
		c.grids[i] = g.rows.cut(rows, per)
	}
	c.units = (rows + per - 1) / per
	for _, a := range local {
		step := steps[unsafe.SliceData(a.Data)]
		c.at, c.back = append(c.at, c.size), append(c.back, per*step)
		c.size += (per*step + 127) &^ 63
	}
	return c
}

// Chained is several launches as one; see Chain.
type Chained struct {
	grids []*grid
	units int
	local [][]int // per grid and operand: which local array it is, or -1
	at    []int   // per local array: where a worker keeps it
	back  []int   // and how many bytes of it are before the next unit's
	size  int     // of a worker's memory
}

type chainRun struct {
	*Chained
	bases [][maxOperands]int64
	fault atomic.Int64
}

var chainRuns = sync.Pool{New: func() any { return new(chainRun) }}

// Run runs the launches.
func (c *Chained) Run(ctx context.Context, ops [][]*ir.Array) error {
	r := chainRuns.Get().(*chainRun)
	defer chainRuns.Put(r)
	r.Chained = c
	r.fault.Store(0)
	for len(r.bases) < len(c.grids) {
		r.bases = append(r.bases, [maxOperands]int64{})
	}
	for i, g := range c.grids {
		if err := g.addresses(ops[i], r.bases[i][:]); err != nil {
			return err
		}
	}
	err := c.grids[0].pool.Do(ctx, c.units, r)
	runtime.KeepAlive(ops)
	if err != nil {
		return err
	}
	return faultError(r.fault.Load())
}

// Unit is part of pool.Task.
func (r *chainRun) Unit(w *pool.Worker, u int) {
	var mem int64
	if r.size > 0 {
		mem = int64(uintptr(w.Scratch(r.size)))
	}
	for i, g := range r.grids {
		bases := &r.bases[i]
		if r.size > 0 {
			own := *bases
			for k, id := range r.local[i] {
				if id >= 0 {
					own[k] = mem + int64(r.at[id]-u*r.back[id])
				}
			}
			bases = &own
		}
		if f := g.unit(w, u, bases); f != 0 {
			r.fault.CompareAndSwap(0, f)
		}
	}
}
