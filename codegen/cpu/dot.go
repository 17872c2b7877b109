package cpu

import (
	"context"
	"fmt"
	"runtime"
	"slices"
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
	dtype    dtype.DType
	rows     kernel.Nest // over this operand
	n        int         // number of rows
	k        []int64     // byte offset of every index along the contracted axis
	bases    []int64     // byte offset of every product of the batch
	table    []int64     // byte offset of every row, whole panels of them; nil where there are too many to keep
	unitRows bool        // neighbouring rows lie next to each other in memory
	unitK    bool        // neighbours along k do
	panel    int         // rows of one packed panel
	pack     jit.Func
}

// Dot is a dot of operands with certain layouts: a batch of matrix products c[m,n] = a[m,k]·b[n,k] into a contiguous c.
type Dot struct {
	layouts
	backend *Backend
	compute dtype.DType
	gemm    jit.Func
	a, b    side
	batch   int
	depth   int      // length of the contracted axis
	direct  bool     // the result is contiguous and of the compute type: no temporary
	convert Launch   // else: from the temporary to the result
	shape   []int    // of the result
	thick   jit.Func // the kernel for thin products
	small   Launch   // makes the thin side contiguous and of the compute type; nil where it is
}

// Dot prepares out[B…,M…,N…] = a[B…,M…,K…] · b[B…,N…,K…] with nbatch leading dims shared and ncontract last dims summed, as package
// ir's op dot, for operands that are laid out like these; as a Launch its operands are a, b, out. It takes f32, f64 and halves (which
// are summed in f32 and rounded once); operands may have any strides, windows views included. The order of summation depends on the
// shape alone.
func (b *Backend) Dot(out, x, y *ir.Array, nbatch, ncontract int) (*Dot, error) {
	if !x.DType.IsFloat() || x.DType != y.DType || out.DType != x.DType {
		return nil, fmt.Errorf("cpu: dot takes two operands of one float dtype, got %s and %s for a result of %s", x.DType, y.DType, out.DType)
	}
	if err := checkDot(out, x, y, nbatch, ncontract); err != nil {
		return nil, err
	}
	c := &Dot{layouts: layoutsOf([]*ir.Array{x, y, out}), backend: b, compute: scalar.RegType(out.DType), shape: slices.Clone(out.Shape)}
	if out.Len() == 0 {
		return c, nil
	}
	c.direct = out.DType == c.compute && out.IsContiguous()
	if !c.direct {
		temp := &ir.Array{DType: c.compute, Shape: c.shape, Strides: ir.ContiguousStrides(c.shape)}
		var err error
		if c.convert, err = b.Elementwise(conversion(c.compute, out.DType)).Launch(temp, out); err != nil {
			return nil, err
		}
	}
	mx, my := len(x.Shape)-ncontract, len(y.Shape)-ncontract
	ks := kernel.NewNest(x.Shape[mx:], x.Strides[mx:], y.Strides[my:]).Collapse()
	c.depth = ks.Len()
	batch := kernel.NewNest(x.Shape[:nbatch], x.Strides[:nbatch], y.Strides[:nbatch]).Collapse()
	c.batch = batch.Len()
	s := b.gemmShape(c.compute)
	c.a = newSide(x, x.Shape[nbatch:mx], x.Strides[nbatch:mx], ks, batch, 0, s.rows)
	c.b = newSide(y, y.Shape[nbatch:my], y.Strides[nbatch:my], ks, batch, 1, s.cols)
	var err error
	for _, sd := range []*side{&c.a, &c.b} {
		text := func() string { return packText(x.DType, c.compute, sd.panel) }
		if sd.pack, err = b.shared(gemmKey{packName, x.DType, sd.panel}, packName, text); err != nil {
			return nil, err
		}
	}
	if c.depth > 0 && c.thin() {
		return c, c.prepareThin(x, y)
	}
	c.gemm, err = b.shared(gemmKey{gemmName, c.compute, 0}, gemmName, func() string { return gemmText(s) })
	return c, err
}

// Run is part of Launch: the operands are a, b, out.
func (c *Dot) Run(ctx context.Context, ops ...*ir.Array) error {
	return c.RunPacked(ctx, nil, nil, ops...)
}

// RunPacked is Run with operands packed before, by Pack; a nil one is packed on the way.
func (c *Dot) RunPacked(ctx context.Context, packedA, packedB *Packed, ops ...*ir.Array) error {
	var addr [3]int64
	if err := c.addresses(ops, addr[:]); err != nil || ops[2].Len() == 0 {
		return err
	}
	defer runtime.KeepAlive(ops)
	out := ops[2]
	if !c.direct {
		mem, temp, err := temporary(c.compute, c.shape)
		if err != nil {
			return err
		}
		defer mem.Free()
		out, addr[2] = temp, pointer(temp)
	}
	if c.depth == 0 {
		clear(out.Bytes())
	} else if err := c.multiply(ctx, addr, packedA, packedB, ops); err != nil {
		return err
	}
	if c.direct {
		return nil
	}
	return c.convert.Run(ctx, out, ops[2])
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
	return nil
}

// gemmKey names a kernel of the matrix product.
type gemmKey struct {
	name  string
	dtype dtype.DType
	rows  int
}

// shared compiles a kernel, of the given name in its text, at its first use.
func (b *Backend) shared(key any, name string, text func() string) (jit.Func, error) {
	return b.others.get(key, func() (jit.Func, error) { return b.compile(text(), name) })
}

// maxTable bounds the rows of which a side keeps a table.
const maxTable = 1 << 17

func newSide(a *ir.Array, shape, strides []int, ks, batch kernel.Nest, operand, panel int) side {
	s := side{dtype: a.DType, rows: kernel.NewNest(shape, strides).Collapse(), panel: panel}
	size := a.DType.Size()
	s.n = s.rows.Len()
	s.k = offsets(ks, operand, size, 0, ks.Len())
	s.bases = offsets(batch, operand, size, 0, batch.Len())
	s.unitRows = len(s.rows) == 0 || len(s.rows) == 1 && s.rows[0].Strides[0] == 1
	s.unitK = len(ks) == 0 || len(ks) == 1 && ks[0].Strides[operand] == 1
	if s.n <= maxTable {
		s.table = offsets(s.rows, 0, size, 0, s.panels(s.n)*panel)
	}
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
func (c *Dot) packedBytes(s *side, count, depth int) int {
	return s.panels(count) * s.panel * depth * c.compute.Size()
}

// packPanels copies rows [row, row+count) of the operand at base, along [k0, k0+kb), into panels at dst. table has the byte offsets of these
// rows, whole panels of them; args is memory for the arguments.
func (s *side) packPanels(w *pool.Worker, args []int64, base int64, table []int64, count, k0, kb int, dst *byte) {
	args = args[:packWords]
	args[packPanels] = int64(s.panels(count))
	args[packK] = int64(kb)
	args[packFrom] = base
	args[packRowTable] = address(&table[0])
	args[packKTable] = address(&s.k[k0])
	args[packTo] = address(dst)
	args[packUnitRows], args[packUnitK] = 0, 0
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

// rowTable lists the offsets of rows [row, row+count), whole panels of them; row is the first of a panel.
func (s *side) rowTable(row, count int) []int64 {
	if s.table != nil {
		return s.table[row:]
	}
	return offsets(s.rows, 0, s.dtype.Size(), row, s.panels(count)*s.panel)
}

// multiply computes all products of the batch; addr has the addresses of a, b and the contiguous result.
func (c *Dot) multiply(ctx context.Context, addr [3]int64, packedA, packedB *Packed, ops []*ir.Array) error {
	if c.thick.Valid() {
		return c.runThin(ctx, addr, ops)
	}
	if c.batch > 1 && c.a.n*c.b.n*c.depth <= smallProduct && packedA == nil && packedB == nil {
		return c.runBatch(ctx, addr)
	}
	var mem []byte
	first, packed, product := &c.b, packedB, c.product
	if c.a.n <= streamRows {
		first, packed, product = &c.a, packedA, c.stream
	}
	if packed == nil {
		var err error
		if mem, err = arena.Default().Alloc(c.packedBytes(first, first.n, c.depth)); err != nil {
			return err
		}
		defer arena.Default().Free(mem)
	}
	step := int64(c.a.n * c.b.n * c.compute.Size())
	for i := range c.batch {
		if err := product(ctx, addr[0]+c.a.bases[i], addr[1]+c.b.bases[i], addr[2]+int64(i)*step, mem, packedA.at(i), packedB.at(i)); err != nil {
			return err
		}
	}
	return nil
}

// Packed is one operand of a Dot as the kernels read it. It does not change.
type Packed struct {
	mem  *arena.Buffer
	each int // bytes of one product of the batch
}

// at is the memory of product i; nil where p is.
func (p *Packed) at(i int) []byte {
	if p == nil {
		return nil
	}
	return p.mem.Bytes[i*p.each : (i+1)*p.each]
}

// Pack prepares operand i, 0 for a and 1 for b, for many runs. It is nil where packing saves nothing.
func (c *Dot) Pack(ctx context.Context, i int, x *ir.Array) (*Packed, error) {
	s := &c.a
	if i == 1 {
		s = &c.b
	}
	if c.depth == 0 || c.batch == 0 || s.n == 0 || c.thick.Valid() || c.batch > 1 && c.a.n*c.b.n*c.depth <= smallProduct {
		return nil, nil
	}
	each := c.packedBytes(s, s.n, c.depth)
	mem, err := arena.Default().NewBuffer(each * c.batch)
	if err != nil {
		return nil, err
	}
	p := &Packed{mem: mem, each: each}
	addr := pointer(x)
	for i := range c.batch {
		if err := c.packAll(ctx, s, addr+s.bases[i], p.at(i)); err != nil {
			return nil, err
		}
	}
	runtime.KeepAlive(x)
	return p, nil
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

// product computes one large matrix product: first b is packed into mem, unless packedB has it, then blocks of the result are shared out.
func (c *Dot) product(ctx context.Context, a, b, out int64, mem, packedA, packedB []byte) error {
	p := c.backend.pool
	if packedB == nil {
		packedB = mem
		if err := c.packAll(ctx, &c.b, b, mem); err != nil {
			return err
		}
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
		c.block(w, a, packedA, packedB, out, i, min(blockM, c.a.n-i), j, min(blockN, c.b.n-j), s)
	})
}

// stream computes one matrix product with few rows: all of a is packed, and pieces of b as they are needed.
func (c *Dot) stream(ctx context.Context, a, b, out int64, mem, packedA, packedB []byte) error {
	p := c.backend.pool
	if packedA == nil {
		packedA = mem
		if err := c.packAll(ctx, &c.a, a, mem); err != nil {
			return err
		}
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
		args, packArgs := c.gemmArgs(w, c.a.n, n, out+int64(j*c.compute.Size()))
		for k0 := 0; k0 < c.depth; k0 += gemmK {
			kb := min(gemmK, c.depth-k0)
			if packedB != nil {
				args[argB] = address(&packedB[c.panelAt(&c.b, j, k0, kb)])
			} else {
				to := s.of(w)
				c.b.packPanels(w, packArgs, b, c.b.rowTable(j, n), n, k0, kb, &to[0])
				args[argB] = address(&to[0])
			}
			args[argK] = int64(kb)
			args[argA] = address(&packedA[c.panelAt(&c.a, 0, k0, kb)])
			w.Call(c.gemm, unsafe.Pointer(&args[0]))
			args[argAdd] = 1
		}
	})
}

// gemmArgs are the arguments for m rows and n columns of the result from out on, for the first block along k; and memory for those of
// packing.
func (c *Dot) gemmArgs(w *pool.Worker, m, n int, out int64) (args, packArgs []int64) {
	args = w.Args(gemmWords + packWords)
	clear(args)
	args[argM], args[argN] = int64(m), int64(n)
	args[argC] = out
	args[argStride] = int64(c.b.n * c.compute.Size())
	return args, args[gemmWords:]
}

// packAll packs all of one side: for each block along k, panel after panel.
func (c *Dot) packAll(ctx context.Context, s *side, base int64, packed []byte) error {
	const elems = 64 << 10
	perUnit := max(1, elems/(c.depth*s.panel))
	panels := s.panels(s.n)
	return c.backend.pool.Run(ctx, (panels+perUnit-1)/perUnit, func(w *pool.Worker, u int) {
		row := u * perUnit * s.panel
		c.packRows(w, w.Args(packWords), s, base, packed, row, min(perUnit*s.panel, s.n-row))
	})
}

// packRows packs rows [row, row+count) of one side, row being the first of a panel.
func (c *Dot) packRows(w *pool.Worker, args []int64, s *side, base int64, packed []byte, row, count int) {
	table := s.rowTable(row, count)
	for k0 := 0; k0 < c.depth; k0 += gemmK {
		kb := min(gemmK, c.depth-k0)
		s.packPanels(w, args, base, table, count, k0, kb, &packed[c.panelAt(s, row, k0, kb)])
	}
}

// panelAt is where the panel that starts at a row lies for the block of kb indices at k0.
func (c *Dot) panelAt(s *side, row, k0, kb int) int {
	padded := s.panels(s.n) * s.panel
	return (padded*k0 + row*kb) * c.compute.Size()
}

// block computes rows [i, i+m) and columns [j, j+n) of the result.
func (c *Dot) block(w *pool.Worker, a int64, packedA, packedB []byte, out int64, i, m, j, n int, s *scratch) {
	args, packArgs := c.gemmArgs(w, m, n, out+int64((i*c.b.n+j)*c.compute.Size()))
	for k0 := 0; k0 < c.depth; k0 += gemmK {
		kb := min(gemmK, c.depth-k0)
		if packedA != nil {
			args[argA] = address(&packedA[c.panelAt(&c.a, i, k0, kb)])
		} else {
			to := s.of(w)
			c.a.packPanels(w, packArgs, a, c.a.rowTable(i, m), m, k0, kb, &to[0])
			args[argA] = address(&to[0])
		}
		args[argK] = int64(kb)
		args[argB] = address(&packedB[c.panelAt(&c.b, j, k0, kb)])
		w.Call(c.gemm, unsafe.Pointer(&args[0]))
		args[argAdd] = 1
	}
}

// runBatch computes many small products, some of them in each unit.
func (c *Dot) runBatch(ctx context.Context, addr [3]int64) error {
	p := c.backend.pool
	per := max(1, min(smallProduct/max(1, c.a.n*c.b.n*c.depth), (c.batch+2*p.Size()-1)/(2*p.Size())))
	sizeB := c.packedBytes(&c.b, c.b.n, c.depth)
	sb, sa := newScratch(p.Size(), sizeB), newScratch(p.Size(), c.packedBytes(&c.a, min(gemmBlockM, c.a.n), min(gemmK, c.depth)))
	defer sa.free()
	defer sb.free()
	step := int64(c.a.n * c.b.n * c.compute.Size())
	return p.Run(ctx, (c.batch+per-1)/per, func(w *pool.Worker, u int) {
		mem := sb.of(w)
		for i := u * per; i < min((u+1)*per, c.batch); i++ {
			c.packRows(w, w.Args(packWords), &c.b, addr[1]+c.b.bases[i], mem, 0, c.b.n)
			for r := 0; r < c.a.n; r += gemmBlockM {
				c.block(w, addr[0]+c.a.bases[i], nil, mem, addr[2]+int64(i)*step, r, min(gemmBlockM, c.a.n-r), 0, c.b.n, sa)
			}
		}
	})
}
