package cpu

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
	"github.com/gtc-project/gtc/runtime/arena"
	"github.com/gtc-project/gtc/runtime/jit"
	"github.com/gtc-project/gtc/runtime/pool"
)

// Blocks of the result that one unit of work computes: their packed rows stay in the second-level cache.
const (
	gemmBlockM = 96
	gemmBlockN = 512
	// streamRows is the number of rows of a up to which all of them are one block: b is then packed in passing, piece by piece, and
	// never written out as a whole.
	streamRows = 192
	streamCols = 128
	// smallProduct is the number of multiplications below which a matrix product of a batch is one unit.
	smallProduct = 2 << 20
)

// side is one operand of a contraction: rows (m or n) by k.
type side struct {
	array    *ir.Array
	rows     kernel.Nest // over this operand
	n        int         // number of rows
	k        []int64     // byte offset of every index along the contracted axis
	unitRows bool        // neighbouring rows lie next to each other in memory
	unitK    bool        // neighbours along k do
	panel    int         // rows of one packed panel
	pack     jit.Func
}

// contraction is a dot of actual operands: a batch of matrix products c[m,n] = a[m,k]·b[n,k] into a contiguous c.
type contraction struct {
	backend *Backend
	compute dtype.DType
	gemm    jit.Func
	a, b    side
	c       *ir.Array
	batch   kernel.Nest // over a and b
	depth   int         // length of the contracted axis
}

// Dot computes out[B…,M…,N…] = a[B…,M…,K…] · b[B…,N…,K…] with nbatch leading dims shared and ncontract last dims summed, as package
// ir's op dot. It takes f32, f64 and halves (which are summed in f32 and rounded once); operands may have any strides, windows
// views included. The order of summation depends on the shape alone. ctx is polled between units of work.
func (b *Backend) Dot(ctx context.Context, out, x, y *ir.Array, nbatch, ncontract int) error {
	if !x.DType.IsFloat() || x.DType != y.DType || out.DType != x.DType {
		return fmt.Errorf("cpu: dot takes two operands of one float dtype, got %s and %s for a result of %s", x.DType, y.DType, out.DType)
	}
	if err := checkDot(out, x, y, nbatch, ncontract); err != nil || out.Len() == 0 {
		return err
	}
	defer runtime.KeepAlive([]*ir.Array{out, x, y})
	compute := scalar.RegType(out.DType)
	c := out
	if out.DType != compute || !out.IsContiguous() {
		mem, err := arena.Default().NewBuffer(out.Len() * compute.Size())
		if err != nil {
			return err
		}
		defer mem.Free()
		c = &ir.Array{DType: compute, Shape: out.Shape, Strides: ir.ContiguousStrides(out.Shape), Data: mem.Bytes, Owner: mem}
	}
	job, err := b.contraction(c, x, y, nbatch, ncontract)
	if err != nil {
		return err
	}
	if err := job.run(ctx); err != nil || c == out {
		return err
	}
	return b.Elementwise(conversion(compute, out.DType)).Run(ctx, []*ir.Array{out}, []*ir.Array{c})
}

// conversion is the program that converts, shared between calls.
func conversion(from, to dtype.DType) *scalar.Prog {
	if from == to {
		return Identity(from)
	}
	p, err := ir.ElementwiseProg(ir.LookupOp("convert"), to, from)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return p
}

func checkDot(out, x, y *ir.Array, nbatch, ncontract int) error {
	bad := func() error {
		return fmt.Errorf("cpu: dot of shapes %v and %v with %d batch and %d contracted dims into %v does not fit", x.Shape, y.Shape, nbatch, ncontract, out.Shape)
	}
	mx, my := len(x.Shape)-ncontract, len(y.Shape)-ncontract
	if nbatch < 0 || ncontract < 0 || mx < nbatch || my < nbatch {
		return bad()
	}
	want := append([]int{}, x.Shape[:mx]...)
	want = append(want, y.Shape[nbatch:my]...)
	if !sameShape(x.Shape[:nbatch], y.Shape[:nbatch]) || !sameShape(x.Shape[mx:], y.Shape[my:]) || !sameShape(out.Shape, want) {
		return bad()
	}
	for _, a := range []*ir.Array{out, x, y} {
		if err := inBounds(a); err != nil {
			return err
		}
	}
	return nil
}

// contraction prepares a dot into the contiguous array c of the compute type.
func (b *Backend) contraction(c, x, y *ir.Array, nbatch, ncontract int) (*contraction, error) {
	s := b.gemmShape(c.DType)
	job := &contraction{backend: b, compute: c.DType, c: c}
	mx, my := len(x.Shape)-ncontract, len(y.Shape)-ncontract
	ks := kernel.NewNest(x.Shape[mx:], x.Strides[mx:], y.Strides[my:]).Collapse()
	job.depth = ks.Len()
	job.batch = kernel.NewNest(x.Shape[:nbatch], x.Strides[:nbatch], y.Strides[:nbatch]).Collapse()
	job.a = newSide(x, x.Shape[nbatch:mx], x.Strides[nbatch:mx], ks, 0, s.rows)
	job.b = newSide(y, y.Shape[nbatch:my], y.Strides[nbatch:my], ks, 1, s.cols)
	var err error
	for _, sd := range []*side{&job.a, &job.b} {
		text := func() string { return packText(x.DType, c.DType, sd.panel) }
		if sd.pack, err = b.shared(gemmKey{packName, x.DType, sd.panel}, text); err != nil {
			return nil, err
		}
	}
	job.gemm, err = b.shared(gemmKey{gemmName, c.DType, 0}, func() string { return gemmText(s) })
	return job, err
}

// gemmKey names a kernel of the matrix product.
type gemmKey struct {
	name  string
	dtype dtype.DType
	rows  int
}

// shared compiles a kernel at its first use.
func (b *Backend) shared(key gemmKey, text func() string) (jit.Func, error) {
	v, ok := b.gemms.Load(key)
	if !ok {
		v, _ = b.gemms.LoadOrStore(key, &lazyFunc{})
	}
	l := v.(*lazyFunc)
	l.once.Do(func() { l.fn, l.err = b.compile(text(), key.name) })
	return l.fn, l.err
}

func newSide(a *ir.Array, shape, strides []int, ks kernel.Nest, operand, panel int) side {
	s := side{array: a, rows: kernel.NewNest(shape, strides).Collapse(), panel: panel}
	s.n = s.rows.Len()
	s.k = offsets(ks, operand, a.DType.Size(), 0, ks.Len())
	s.unitRows = len(s.rows) == 0 || len(s.rows) == 1 && s.rows[0].Strides[0] == 1
	s.unitK = len(ks) == 0 || len(ks) == 1 && ks[0].Strides[operand] == 1
	return s
}

// offsets lists the byte offsets of one operand at count index tuples of a nest, from linear position start on; past the end the
// last one is repeated.
func offsets(n kernel.Nest, operand, size, start, count int) []int64 {
	out := make([]int64, count)
	if count == 0 {
		return out
	}
	idx := make([]int, len(n))
	off := 0
	for d, rest := len(n)-1, start; d >= 0; d-- {
		idx[d] = rest % n[d].Size
		rest /= n[d].Size
		off += idx[d] * n[d].Strides[operand]
	}
	total := n.Len()
	if len(n) == 1 { // the common case, without the odometer
		step := n[0].Strides[operand]
		for i := range out {
			out[i] = int64(min(start+i, total-1) * step * size)
		}
		return out
	}
	for i := range out {
		out[i] = int64(off * size)
		if start+i+1 >= total {
			continue
		}
		for d := len(n) - 1; d >= 0; d-- {
			idx[d]++
			off += n[d].Strides[operand]
			if idx[d] < n[d].Size {
				break
			}
			off -= idx[d] * n[d].Strides[operand]
			idx[d] = 0
		}
	}
	return out
}

// panels is how many packed panels count rows take.
func (s *side) panels(count int) int { return (count + s.panel - 1) / s.panel }

// packedBytes is the size of count rows, packed along depth.
func (c *contraction) packedBytes(s *side, count, depth int) int {
	return s.panels(count) * s.panel * depth * c.compute.Size()
}

// pack copies rows [row, row+count) of the operand at base, along [k0, k0+kb), into panels at dst. table has the byte offsets of these
// rows, whole panels of them.
func (c *contraction) pack(w *pool.Worker, s *side, base int64, table []int64, count, k0, kb int, dst *byte) {
	args := make([]int64, packWords)
	args[packPanels] = int64(s.panels(count))
	args[packK] = int64(kb)
	args[packFrom] = base
	args[packRowTable] = address(&table[0])
	args[packKTable] = address(&s.k[k0])
	args[packTo] = address(dst)
	if s.unitRows {
		args[packUnitRows] = int64(count / s.panel)
	}
	if s.unitK {
		args[packUnitK] = 1
	}
	w.Call(s.pack, unsafe.Pointer(&args[0]))
	runtime.KeepAlive(table)
}

func address[T any](p *T) int64 { return int64(uintptr(unsafe.Pointer(p))) }

// rowTable lists the offsets of rows [row, row+count), whole panels of them.
func (s *side) rowTable(row, count int) []int64 {
	return offsets(s.rows, 0, s.array.DType.Size(), row, s.panels(count)*s.panel)
}

// run computes all products of the batch.
func (c *contraction) run(ctx context.Context) error {
	if c.depth == 0 {
		clear(c.c.Bytes())
		return nil
	}
	if c.thin() {
		return c.runThin(ctx)
	}
	batch := c.batch.Len()
	baseA := offsets(c.batch, 0, c.a.array.DType.Size(), 0, batch)
	baseB := offsets(c.batch, 1, c.b.array.DType.Size(), 0, batch)
	addrA, addrB, addrC := pointer(c.a.array), pointer(c.b.array), pointer(c.c)
	step := int64(c.a.n * c.b.n * c.compute.Size())
	if batch > 1 && c.a.n*c.b.n*c.depth <= smallProduct {
		return c.runBatch(ctx, func(i int) (a, b, out int64) { return addrA + baseA[i], addrB + baseB[i], addrC + int64(i)*step })
	}
	first, product := &c.b, c.product
	if c.a.n <= streamRows {
		first, product = &c.a, c.stream
	}
	mem, err := arena.Default().Alloc(c.packedBytes(first, first.n, c.depth))
	if err != nil {
		return err
	}
	defer arena.Default().Free(mem)
	for i := range batch {
		if err := product(ctx, addrA+baseA[i], addrB+baseB[i], addrC+int64(i)*step, mem); err != nil {
			return err
		}
	}
	return nil
}

// scratch is memory for packed blocks, one piece per worker, made at first use.
type scratch struct {
	size int
	mem  [][]byte
}

func newScratch(workers, size int) *scratch { return &scratch{size, make([][]byte, workers)} }

func (s *scratch) of(w *pool.Worker) []byte {
	if s.mem[w.ID] == nil {
		mem, err := arena.Default().Alloc(s.size)
		if err != nil {
			panic(err) // Run gives it to the caller
		}
		s.mem[w.ID] = mem
	}
	return s.mem[w.ID]
}

func (s *scratch) free() {
	for _, m := range s.mem {
		if m != nil {
			arena.Default().Free(m)
		}
	}
}

// product computes one large matrix product: first b is packed, then blocks of the result are shared out.
func (c *contraction) product(ctx context.Context, a, b, out int64, packed []byte) error {
	p := c.backend.pool
	if err := c.packAll(ctx, &c.b, b, packed); err != nil {
		return err
	}
	blocksM, blockM := kernel.Chunks(c.a.n, gemmBlockM, c.a.panel)
	blocksN, blockN := kernel.Chunks(c.b.n, gemmBlockN, c.b.panel)
	for blocksM*blocksN < 2*p.Size() && blockM*blockN*c.depth > smallProduct/4 && blockN > 4*c.b.panel {
		blocksN, blockN = kernel.Chunks(c.b.n, blockN/2, c.b.panel)
	}
	s := newScratch(p.Size(), c.packedBytes(&c.a, blockM, min(gemmK, c.depth)))
	defer s.free()
	return p.Run(ctx, blocksM*blocksN, func(w *pool.Worker, u int) {
		i, j := u/blocksN*blockM, u%blocksN*blockN
		c.block(w, a, packed, out, i, min(blockM, c.a.n-i), j, min(blockN, c.b.n-j), s.of(w))
	})
}

// stream computes one matrix product with few rows: all of a is packed, and pieces of b as they are needed.
func (c *contraction) stream(ctx context.Context, a, b, out int64, packed []byte) error {
	p := c.backend.pool
	if err := c.packAll(ctx, &c.a, a, packed); err != nil {
		return err
	}
	pieces, piece := kernel.Chunks(c.b.n, streamCols, c.b.panel)
	for pieces < 2*p.Size() && c.a.n*piece*c.depth > smallProduct/4 && piece > 2*c.b.panel {
		pieces, piece = kernel.Chunks(c.b.n, piece/2, c.b.panel)
	}
	s := newScratch(p.Size(), c.packedBytes(&c.b, piece, min(gemmK, c.depth)))
	defer s.free()
	return p.Run(ctx, pieces, func(w *pool.Worker, u int) {
		j := u * piece
		n := min(piece, c.b.n-j)
		mem := s.of(w)
		table := c.b.rowTable(j, n)
		args := c.gemmArgs(c.a.n, n, out+int64(j*c.compute.Size()))
		args[argB] = address(&mem[0])
		for k0 := 0; k0 < c.depth; k0 += gemmK {
			kb := min(gemmK, c.depth-k0)
			c.pack(w, &c.b, b, table, n, k0, kb, &mem[0])
			args[argK] = int64(kb)
			args[argA] = address(&packed[c.panelAt(&c.a, 0, k0, kb)])
			w.Call(c.gemm, unsafe.Pointer(&args[0]))
			args[argAdd] = 1
		}
	})
}

// gemmArgs are the arguments for m rows and n columns of the result from out on, for the first block along k.
func (c *contraction) gemmArgs(m, n int, out int64) []int64 {
	args := make([]int64, gemmWords)
	args[argM], args[argN] = int64(m), int64(n)
	args[argC] = out
	args[argStride] = int64(c.b.n * c.compute.Size())
	return args
}

// packAll packs all of one side: for each block along k, panel after panel.
func (c *contraction) packAll(ctx context.Context, s *side, base int64, packed []byte) error {
	const elems = 64 << 10
	perUnit := max(1, elems/(c.depth*s.panel))
	panels := s.panels(s.n)
	return c.backend.pool.Run(ctx, (panels+perUnit-1)/perUnit, func(w *pool.Worker, u int) {
		row := u * perUnit * s.panel
		c.packRows(w, s, base, packed, row, min(perUnit*s.panel, s.n-row))
	})
}

// packRows packs rows [row, row+count) of one side, row being the first of a panel.
func (c *contraction) packRows(w *pool.Worker, s *side, base int64, packed []byte, row, count int) {
	table := s.rowTable(row, count)
	for k0 := 0; k0 < c.depth; k0 += gemmK {
		kb := min(gemmK, c.depth-k0)
		c.pack(w, s, base, table, count, k0, kb, &packed[c.panelAt(s, row, k0, kb)])
	}
}

// panelAt is where the panel that starts at a row lies for the block of kb indices at k0.
func (c *contraction) panelAt(s *side, row, k0, kb int) int {
	padded := s.panels(s.n) * s.panel
	return (padded*k0 + row*kb) * c.compute.Size()
}

// block computes rows [i, i+m) and columns [j, j+n) of the result.
func (c *contraction) block(w *pool.Worker, a int64, packedB []byte, out int64, i, m, j, n int, packedA []byte) {
	size := c.compute.Size()
	table := c.a.rowTable(i, m)
	args := c.gemmArgs(m, n, out+int64((i*c.b.n+j)*size))
	args[argA] = address(&packedA[0])
	for k0 := 0; k0 < c.depth; k0 += gemmK {
		kb := min(gemmK, c.depth-k0)
		c.pack(w, &c.a, a, table, m, k0, kb, &packedA[0])
		args[argK] = int64(kb)
		args[argB] = address(&packedB[c.panelAt(&c.b, j, k0, kb)])
		w.Call(c.gemm, unsafe.Pointer(&args[0]))
		args[argAdd] = 1
	}
}

// runBatch computes many small products, some of them in each unit.
func (c *contraction) runBatch(ctx context.Context, at func(i int) (a, b, out int64)) error {
	p := c.backend.pool
	batch := c.batch.Len()
	per := max(1, min(smallProduct/max(1, c.a.n*c.b.n*c.depth), (batch+2*p.Size()-1)/(2*p.Size())))
	sizeB := c.packedBytes(&c.b, c.b.n, c.depth)
	s := newScratch(p.Size(), sizeB+c.packedBytes(&c.a, min(gemmBlockM, c.a.n), min(gemmK, c.depth)))
	defer s.free()
	return p.Run(ctx, (batch+per-1)/per, func(w *pool.Worker, u int) {
		mem := s.of(w)
		for i := u * per; i < min((u+1)*per, batch); i++ {
			a, b, out := at(i)
			c.packRows(w, &c.b, b, mem[:sizeB], 0, c.b.n)
			for r := 0; r < c.a.n; r += gemmBlockM {
				c.block(w, a, mem[:sizeB], out, r, min(gemmBlockM, c.a.n-r), 0, c.b.n, mem[sizeB:])
			}
		}
	})
}
