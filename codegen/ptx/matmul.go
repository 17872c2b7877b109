package ptx

import (
	"fmt"

	"github.com/gtc-project/gtc/ir/dtype"
)

// matmulTile is the edge of the square tiles of the matrix product; a block has one thread per element of a tile.
const matmulTile = 16

// matmulBlock is how many products are summed before the sum is added to the result, as in the reference evaluator (ir's kBlock).
const matmulBlock = 512

// matmulKernel computes out[B,M,N] = a[B,M,K] · b[B,N,K], out contiguous, by tiles of matmulTile rows and columns in shared memory.
// Halves are multiplied and summed in f32 and rounded at the end; integers wrap.
//
// Parameters: addresses of a, b, out; batch, m, n, k; strides of a along batch, m, k, and of b along batch, n, k.
func (m *module) matmulKernel(d dtype.DType) *function {
	return m.function("matmul "+d.String(), "matmul_"+d.String(), func(name string) *function {
		w := &multiplier{entry: m.newEntry(), d: d, t: regType(d)}
		if bitsOf(w.t) < 32 {
			w.t = "i32"
		}
		w.write(name)
		return w.finish(name)
	})
}

// multiplier writes one matrix product kernel.
type multiplier struct {
	*entry
	d            dtype.DType
	t            string // the type that is computed in
	tileA, tileB string
}

func (w *multiplier) write(name string) {
	a, b, out := w.address("a"), w.address("b"), w.address("out0")
	batch, m, n, k := w.number("batch"), w.number("m"), w.number("n"), w.number("k")
	as, bs := w.numbers("a_stride", 3), w.numbers("b_stride", 3)
	w.tileA, w.tileB = w.shared(name+"_a"), w.shared(name+"_b")

	tid, block, blocks := w.special("tid.x"), w.special("ctaid.x"), w.special("nctaid.x")
	x, y := w.val("and i64 %s, %d", tid, matmulTile-1), w.val("lshr i64 %s, 4", tid)
	rowTiles, colTiles := w.tiles(m), w.tiles(n)
	perBatch := w.val("mul i64 %s, %s", rowTiles, colTiles)
	all := w.val("mul i64 %s, %s", batch, perBatch)
	w.loop(block, all, blocks, nil, func(tile string, _ []string) []string {
		bi, rest := w.val("udiv i64 %s, %s", tile, perBatch), w.val("urem i64 %s, %s", tile, perBatch)
		rowTile, colTile := w.val("udiv i64 %s, %s", rest, colTiles), w.val("urem i64 %s, %s", rest, colTiles)
		row0, col0 := w.val("mul i64 %s, %d", rowTile, matmulTile), w.val("mul i64 %s, %d", colTile, matmulTile)
		row, col := w.val("add i64 %s, %s", row0, y), w.val("add i64 %s, %s", col0, x)
		bcol := w.val("add i64 %s, %s", col0, y) // the row of b that this thread loads
		rowOK, colOK := w.val("icmp ult i64 %s, %s", row, m), w.val("icmp ult i64 %s, %s", col, n)
		bcolOK := w.val("icmp ult i64 %s, %s", bcol, n)
		abase := w.offset(bi, as[0], row, as[1])
		bbase := w.offset(bi, bs[0], bcol, bs[1])
		zero := constant(w.t, 0)
		sum := w.loop("0", k, fmt.Sprint(matmulBlock), [][2]string{{w.t, zero}}, func(kb string, sum []string) []string {
			end := w.call(w.m, "i64", "llvm.umin.i64", "i64 "+w.val("add i64 %s, %d", kb, matmulBlock), "i64 "+k)
			part := w.loop(kb, end, fmt.Sprint(matmulTile), [][2]string{{w.t, zero}}, func(k0 string, part []string) []string {
				at := w.val("add i64 %s, %s", k0, x)
				inK := w.val("icmp ult i64 %s, %s", at, k)
				w.fill(w.tileA, y, x, a, w.along(abase, at, as[2]), w.val("and i1 %s, %s", rowOK, inK))
				w.fill(w.tileB, y, x, b, w.along(bbase, at, bs[2]), w.val("and i1 %s, %s", bcolOK, inK))
				w.call(w.m, "void", "llvm.nvvm.barrier0")
				acc := part[0]
				for j := range matmulTile {
					acc = w.add(acc, w.mul(w.read(w.tileA, y, j), w.read(w.tileB, x, j)))
				}
				w.call(w.m, "void", "llvm.nvvm.barrier0")
				return []string{acc}
			})
			return []string{w.add(sum[0], part[0])}
		})[0]
		w.when(w.val("and i1 %s, %s", rowOK, colOK), func() {
			if t := regType(w.d); t != w.t {
				sum = w.val("trunc %s %s to %s", w.t, sum, t)
			}
			r := w.val("add i64 %s, %s", w.val("mul i64 %s, %s", bi, m), row)
			w.store(w.d, sum, out, w.val("add i64 %s, %s", w.val("mul i64 %s, %s", r, n), col))
		})
		return nil
	})
}

// tiles is how many tiles cover n.
func (w *multiplier) tiles(n string) string {
	return w.val("udiv i64 %s, %d", w.val("add i64 %s, %d", n, matmulTile-1), matmulTile)
}

// offset is x·sx + y·sy.
func (w *multiplier) offset(x, sx, y, sy string) string {
	return w.along(w.val("mul i64 %s, %s", x, sx), y, sy)
}

// along is base + y·sy.
func (w *multiplier) along(base, y, sy string) string {
	return w.val("add i64 %s, %s", base, w.val("mul i64 %s, %s", y, sy))
}

func (w *multiplier) add(x, y string) string {
	if w.d.IsFloat() {
		return w.val("fadd %s %s, %s", w.t, x, y)
	}
	return w.val("add %s %s, %s", w.t, x, y)
}

func (w *multiplier) mul(x, y string) string {
	if w.d.IsFloat() {
		return w.val("fmul %s %s, %s", w.t, x, y)
	}
	return w.val("mul %s %s, %s", w.t, x, y)
}

// tileType is the type of a tile in shared memory. A row has one element more than is used, so that threads that read a column meet
// different banks.
func (w *multiplier) tileType() string {
	return fmt.Sprintf("[%d x [%d x %s]]", matmulTile, matmulTile+1, w.t)
}

func (w *multiplier) shared(name string) string {
	name = w.m.unique(name)
	w.m.globals = append(w.m.globals, fmt.Sprintf("@%s = internal addrspace(3) global %s undef, align 16", name, w.tileType()))
	return name
}

// fill loads an element of an operand into a tile at [i][j], or zero where it lies outside of the operand.
func (w *multiplier) fill(tile, i, j, base, offset, inside string) {
	ls := w.labels("load", "loaded")
	from := w.block
	w.do("br i1 %s, label %%%s, label %%%s", inside, ls[0], ls[1])
	w.label(ls[0])
	v := w.load(w.d, base, offset)
	if t := regType(w.d); t != w.t {
		op := "sext"
		if w.d == dtype.U8 {
			op = "zext"
		}
		v = w.val("%s %s %s to %s", op, t, v, w.t)
	}
	loaded := w.block
	w.do("br label %%%s", ls[1])
	w.label(ls[1])
	v = w.val("phi %s [ %s, %%%s ], [ %s, %%%s ]", w.t, v, loaded, constant(w.t, 0), from)
	w.do("store %s %s, ptr addrspace(3) %s", w.t, v, w.cell(tile, i, j))
}

func (w *multiplier) read(tile, i string, j int) string {
	return w.val("load %s, ptr addrspace(3) %s", w.t, w.cell(tile, i, fmt.Sprint(j)))
}

func (w *multiplier) cell(tile, i, j string) string {
	return w.val("getelementptr %s, ptr addrspace(3) @%s, i64 0, i64 %s, i64 %s", w.tileType(), tile, i, j)
}
