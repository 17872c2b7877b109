package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/codegen/ptx/check"
)

// machine runs PTX for the tests: thread by thread, with barriers and shuffles, and an error on any access outside of a buffer. It
// knows what the checker lets through. Arithmetic is Go's, which is IEEE's.
type machine struct {
	mod    *check.Module
	consts map[string]uint64 // variable -> address
	mem    [][]byte          // buffer i is at address (i+1)<<bufferShift
}

const bufferShift = 40

func newMachine(text string) (*machine, error) {
	mod, err := check.Parse(text)
	if err != nil {
		return nil, err
	}
	if err := mod.Verify(); err != nil {
		return nil, err
	}
	m := &machine{mod: mod, consts: map[string]uint64{}}
	for _, v := range mod.Vars {
		if v.Space == "shared" {
			continue
		}
		data := make([]byte, v.Size())
		size := v.Size() / v.Count
		for i, s := range v.Init {
			put(data[i*size:], size, number(s))
		}
		m.consts[v.Name] = m.buffer(data)
	}
	return m, nil
}

// number reads an initial value: an integer, or a float's bits.
func number(s string) uint64 {
	if strings.HasPrefix(s, "0f") || strings.HasPrefix(s, "0d") {
		u, _ := strconv.ParseUint(s[2:], 16, 64)
		return u
	}
	if i, err := strconv.ParseInt(s, 0, 64); err == nil {
		return uint64(i)
	}
	u, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		panic("initial value " + s)
	}
	return u
}

// buffer makes memory known and gives its address.
func (m *machine) buffer(data []byte) uint64 {
	m.mem = append(m.mem, data)
	return uint64(len(m.mem)) << bufferShift
}

func put(b []byte, size int, v uint64) {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	copy(b[:size], w[:])
}

func get(b []byte, size int) uint64 {
	var w [8]byte
	copy(w[:], b[:size])
	return binary.LittleEndian.Uint64(w[:])
}

// block is a block of threads that runs.
type block struct {
	*machine
	e       *check.Entry
	regs    map[string]int
	code    []step
	params  map[string]uint64
	shared  []byte
	places  map[string]uint64 // of shared variables
	threads []*thread
	grid    int
	number  int
}

type thread struct {
	b       *block
	id      int
	pc      int
	r       []uint64
	waiting string // "", "barrier", "shuffle", "done"
}

// step runs one instruction; the program counter has moved on already.
type step func(t *thread)

// launch runs a grid.
func (m *machine) launch(entry string, grid, size int, args []uint64) (err error) {
	i := slices.IndexFunc(m.mod.Entries, func(e *check.Entry) bool { return e.Name == entry })
	e := m.mod.Entries[i]
	if len(args) != len(e.Params) {
		return fmt.Errorf("%s takes %d arguments, got %d", entry, len(e.Params), len(args))
	}
	b := &block{machine: m, e: e, regs: map[string]int{}, params: map[string]uint64{}, places: map[string]uint64{}, grid: grid}
	for i, p := range e.Params {
		b.params[p.Name] = args[i]
	}
	for r := range e.Regs {
		b.regs[r] = len(b.regs)
	}
	size0 := 0
	for _, v := range slices.Concat(e.Vars, m.mod.Vars) {
		if v.Space == "shared" {
			size0 = (size0 + v.Align - 1) / v.Align * v.Align
			b.places[v.Name] = uint64(size0)
			size0 += v.Size()
		}
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", entry, r)
		}
	}()
	for k := range e.Code {
		b.code = append(b.code, b.decode(&e.Code[k]))
	}
	for b.number = range grid {
		b.shared = make([]byte, size0)
		for i := range b.shared {
			b.shared[i] = 0xff // NaN, where a barrier is missing
		}
		b.threads = nil
		for id := range size {
			b.threads = append(b.threads, &thread{b: b, id: id, r: make([]uint64, len(b.regs))})
		}
		b.run()
	}
	return nil
}

// run takes turns: every thread runs to its next barrier or shuffle.
func (b *block) run() {
	for {
		for _, t := range b.threads {
			for t.waiting == "" {
				t.pc++
				b.code[t.pc-1](t)
			}
		}
		if b.shuffle() {
			continue
		}
		live := 0
		for _, t := range b.threads {
			switch t.waiting {
			case "shuffle":
				panic("a shuffle waits for threads that do not come")
			case "barrier":
				live++
				t.waiting = ""
			}
		}
		if live == 0 {
			return
		}
		for _, t := range b.threads {
			if t.waiting == "done" {
				panic("a barrier waits for threads that are gone")
			}
		}
	}
}

// shuffle exchanges values among those threads that all wait at the same shuffle.
func (b *block) shuffle() (moved bool) {
	for first, t := range b.threads {
		if t.waiting != "shuffle" {
			continue
		}
		in := &b.e.Code[t.pc-1]
		mask := uint32(b.source(in.Args[4], "u32")(t))
		warp := b.threads[first/32*32:]
		var group []*thread
		for k := range 32 {
			if mask>>k&1 != 0 && warp[k].waiting == "shuffle" && warp[k].pc == t.pc {
				group = append(group, warp[k])
			}
		}
		if len(group) != bits.OnesCount32(mask) {
			continue
		}
		vals := make([]uint64, len(group))
		for i, g := range group {
			delta, c := int(b.source(in.Args[2], "u32")(g)), int(b.source(in.Args[3], "u32")(g))
			lane := g.id % 32
			bound := lane&(c>>8) | c&31&^(c>>8)
			from := lane + delta
			if from > bound {
				from = lane
			}
			if mask>>from&1 == 0 {
				panic("a shuffle reads a thread outside of its mask")
			}
			vals[i] = b.source(in.Args[1], "b32")(warp[from])
		}
		for i, g := range group {
			g.r[b.regs[in.Args[0].Name]] = vals[i]
			g.waiting = ""
		}
		moved = true
	}
	return moved
}

// at finds memory.
func (b *block) at(space string, addr uint64, size int) []byte {
	mem, off := b.shared, addr
	if space != "shared" {
		i := addr >> bufferShift
		if i == 0 || i > uint64(len(b.mem)) {
			panic(fmt.Sprintf("address %x is in no buffer", addr))
		}
		mem, off = b.mem[i-1], addr&(1<<bufferShift-1)
	}
	if off+uint64(size) > uint64(len(mem)) || off%uint64(size) != 0 {
		panic(fmt.Sprintf("%d bytes at %d of %d bytes of %s memory", size, off, len(mem), space))
	}
	return mem[off : off+uint64(size)]
}

func width(typ string) int {
	if typ == "pred" {
		return 1
	}
	n, err := strconv.Atoi(typ[1:])
	if err != nil {
		panic("type " + typ)
	}
	return n
}

// extend gives the value of type typ in the low bits of v, as 64 bits.
func extend(typ string, v uint64) uint64 {
	s := 64 - width(typ)
	if typ[0] == 's' {
		return uint64(int64(v<<s) >> s)
	}
	return v << s >> s
}

// source reads an operand as a type.
func (b *block) source(o check.Operand, typ string) func(t *thread) uint64 {
	switch o.Kind {
	case check.Register:
		i, shift := b.regs[o.Name], 64-width(typ)
		if typ[0] == 's' {
			return func(t *thread) uint64 { return uint64(int64(t.r[i]<<shift) >> shift) }
		}
		return func(t *thread) uint64 { return t.r[i] << shift >> shift }
	case check.Special:
		return func(t *thread) uint64 {
			return map[string]uint64{"%tid.x": uint64(t.id), "%ntid.x": uint64(len(b.threads)), "%ctaid.x": uint64(b.number), "%nctaid.x": uint64(b.grid)}[o.Name]
		}
	case check.Symbol:
		addr, ok := b.places[o.Name]
		if !ok {
			addr = b.consts[o.Name]
		}
		return func(*thread) uint64 { return addr }
	}
	v := extend(typ, uint64(o.Int))
	return func(*thread) uint64 { return v }
}

// address gives the address of a memory operand.
func (b *block) address(o check.Operand) func(t *thread) uint64 {
	if i, ok := b.regs[o.Name]; ok {
		return func(t *thread) uint64 { return t.r[i] + uint64(o.Int) }
	}
	base := b.source(check.Operand{Kind: check.Symbol, Name: o.Name}, "u64")(nil)
	return func(*thread) uint64 { return base + uint64(o.Int) }
}

func (b *block) decode(in *check.Instr) step {
	run := b.plain(in)
	if in.Guard == "" {
		return run
	}
	g := b.regs[in.Guard]
	return func(t *thread) {
		if (t.r[g] != 0) != in.Not {
			run(t)
		}
	}
}

func (b *block) plain(in *check.Instr) step {
	parts := strings.Split(in.Op, ".")
	typ := parts[len(parts)-1]
	switch parts[0] {
	case "ret":
		return func(t *thread) { t.waiting = "done" }
	case "bra":
		to := b.e.Labels[in.Args[0].Name]
		return func(t *thread) { t.pc = to }
	case "bar":
		return func(t *thread) { t.waiting = "barrier" }
	case "shfl":
		return func(t *thread) { t.waiting = "shuffle" }
	case "st":
		addr, v, size := b.address(in.Args[0]), b.source(in.Args[1], typ), width(typ)/8
		return func(t *thread) { put(b.at(parts[1], addr(t), size), size, v(t)) }
	case "atom":
		d, addr, v := b.regs[in.Args[0].Name], b.address(in.Args[1]), b.source(in.Args[2], typ)
		return func(t *thread) {
			p := b.at("global", addr(t), 4)
			old := get(p, 4)
			put(p, 4, max(old, v(t)))
			t.r[d] = old
		}
	case "red":
		addr, v := b.address(in.Args[0]), b.source(in.Args[1], typ)
		return func(t *thread) {
			p := b.at("global", addr(t), 4)
			put(p, 4, max(get(p, 4), v(t)))
		}
	}
	if in.Args[0].Kind == check.Vector { // mov.b64 {lo, hi}, x
		x := b.source(in.Args[1], typ)
		return func(t *thread) {
			for k, r := range in.Args[0].Elems {
				n := width(typ) / len(in.Args[0].Elems)
				t.r[b.regs[r]] = x(t) >> (k * n) & (1<<n - 1)
			}
		}
	}
	d := b.regs[in.Args[0].Name]
	if parts[0] == "ld" {
		size := width(typ) / 8
		if parts[1] == "param" {
			v := b.params[in.Args[1].Name]
			return func(t *thread) { t.r[d] = v }
		}
		addr := b.address(in.Args[1])
		return func(t *thread) { t.r[d] = extend(typ, get(b.at(parts[1], addr(t), size), size)) }
	}
	f := value(in.Op, parts, typ)
	types := operandTypes(parts, typ, len(in.Args)-1)
	args := make([]func(*thread) uint64, len(in.Args)-1)
	for k := range args {
		if o := in.Args[k+1]; o.Kind == check.Vector {
			args[k] = func(t *thread) uint64 { return t.r[b.regs[o.Elems[0]]] | t.r[b.regs[o.Elems[1]]]<<(width(typ)/2) }
			continue
		}
		args[k] = b.source(in.Args[k+1], types[k])
	}
	mask := uint64(1)<<(width(b.e.Regs[in.Args[0].Name])) - 1
	return func(t *thread) {
		var a [4]uint64
		for k, f := range args {
			a[k] = f(t)
		}
		t.r[d] = f(a) & mask
	}
}

func operandTypes(parts []string, typ string, n int) []string {
	out := slices.Repeat([]string{typ}, n)
	switch parts[0] {
	case "shl", "shr":
		out[1] = "u32"
	case "selp":
		out[2] = "pred"
	case "bfe":
		out[1], out[2] = "u32", "u32"
	}
	return out
}

func f32of(v uint64) float32 { return math.Float32frombits(uint32(v)) }
func bits32(f float32) uint64 {
	return uint64(math.Float32bits(f))
}

// value gives the function of the operands that an instruction computes; operands are extended to 64 bits.
func value(op string, parts []string, typ string) func(a [4]uint64) uint64 {
	signed := typ[0] == 's'
	switch parts[0] {
	case "mov":
		return func(a [4]uint64) uint64 { return a[0] }
	case "cvt":
		return convertValue(parts[1:])
	case "setp":
		return compareValue(parts[1], typ)
	case "selp":
		return func(a [4]uint64) uint64 {
			if a[2] != 0 {
				return a[0]
			}
			return a[1]
		}
	case "clz":
		return func(a [4]uint64) uint64 { return uint64(bits.LeadingZeros64(a[0]) - 64 + width(typ)) }
	case "bfe":
		return func(a [4]uint64) uint64 {
			v := a[0] >> a[1] & (1<<a[2] - 1)
			if signed && a[2] > 0 {
				return uint64(int64(v<<(64-a[2])) >> (64 - a[2]))
			}
			return v
		}
	case "and":
		return func(a [4]uint64) uint64 { return a[0] & a[1] }
	case "or":
		return func(a [4]uint64) uint64 { return a[0] | a[1] }
	case "xor":
		return func(a [4]uint64) uint64 { return a[0] ^ a[1] }
	case "not":
		return func(a [4]uint64) uint64 { return ^a[0] }
	case "shl":
		return func(a [4]uint64) uint64 { return a[0] << a[1] }
	case "shr":
		return func(a [4]uint64) uint64 {
			if signed {
				return uint64(int64(a[0]) >> a[1])
			}
			return a[0] >> a[1]
		}
	case "mad":
		return func(a [4]uint64) uint64 { return a[0]*a[1] + a[2] }
	}
	switch typ {
	case "f32":
		f := floatValue(parts)
		return func(a [4]uint64) uint64 { return bits32(float32(f(float64(f32of(a[0])), float64(f32of(a[1]))))) }
	case "f64":
		f := floatValue(parts)
		return func(a [4]uint64) uint64 {
			return math.Float64bits(f(math.Float64frombits(a[0]), math.Float64frombits(a[1])))
		}
	}
	return integerValue(op, parts[0], signed)
}

func integerValue(op, name string, signed bool) func(a [4]uint64) uint64 {
	switch name {
	case "add":
		return func(a [4]uint64) uint64 { return a[0] + a[1] }
	case "sub":
		return func(a [4]uint64) uint64 { return a[0] - a[1] }
	case "mul": // lo and wide: operands are extended already
		return func(a [4]uint64) uint64 { return a[0] * a[1] }
	case "neg":
		return func(a [4]uint64) uint64 { return -a[0] }
	case "abs":
		return func(a [4]uint64) uint64 { return uint64(max(int64(a[0]), -int64(a[0]))) }
	case "div", "rem", "min", "max":
		return func(a [4]uint64) uint64 {
			x, y := int64(a[0]), int64(a[1])
			switch {
			case name == "div" && signed:
				return uint64(x / y)
			case name == "div":
				return a[0] / a[1]
			case name == "rem" && signed:
				return uint64(x % y)
			case name == "rem":
				return a[0] % a[1]
			case name == "min" && signed:
				return uint64(min(x, y))
			case name == "min":
				return min(a[0], a[1])
			case signed:
				return uint64(max(x, y))
			}
			return max(a[0], a[1])
		}
	}
	panic("instruction " + op)
}

// floatValue computes in f64; for f32 the result is rounded once more, which is harmless for these operations.
func floatValue(parts []string) func(x, y float64) float64 {
	switch parts[0] {
	case "add":
		return func(x, y float64) float64 { return x + y }
	case "sub":
		return func(x, y float64) float64 { return x - y }
	case "mul":
		return func(x, y float64) float64 { return x * y }
	case "div":
		return func(x, y float64) float64 { return x / y }
	case "rcp":
		return func(x, _ float64) float64 { return 1 / x }
	case "sqrt":
		return func(x, _ float64) float64 { return math.Sqrt(x) }
	case "neg":
		return func(x, _ float64) float64 { return -x }
	case "abs":
		return func(x, _ float64) float64 { return math.Abs(x) }
	}
	panic("instruction " + strings.Join(parts, "."))
}

func compareValue(cmp, typ string) func(a [4]uint64) uint64 {
	order := func(less, equal bool) func() bool {
		return map[string]func() bool{"eq": func() bool { return equal }, "ne": func() bool { return !equal }, "lt": func() bool { return less },
			"le": func() bool { return less || equal }, "gt": func() bool { return !less && !equal }, "ge": func() bool { return !less }}[cmp[:2]]
	}
	bit := func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	}
	if typ[0] == 'f' {
		return func(a [4]uint64) uint64 {
			x, y := math.Float64frombits(a[0]), math.Float64frombits(a[1])
			if typ == "f32" {
				x, y = float64(f32of(a[0])), float64(f32of(a[1]))
			}
			nan := x != x || y != y
			switch {
			case cmp == "num" || cmp == "nan":
				return bit(nan == (cmp == "nan"))
			case nan:
				return bit(strings.HasSuffix(cmp, "u"))
			}
			return bit(order(x < y, x == y)())
		}
	}
	return func(a [4]uint64) uint64 {
		less := a[0] < a[1]
		if typ[0] == 's' {
			less = int64(a[0]) < int64(a[1])
		}
		return bit(order(less, a[0] == a[1])())
	}
}

// convertValue is cvt[.mode].to.from.
func convertValue(parts []string) func(a [4]uint64) uint64 {
	mode := ""
	if len(parts) == 3 {
		mode, parts = parts[0], parts[1:]
	}
	to, from := parts[0], parts[1]
	float := func(v uint64) float64 {
		if from == "f32" {
			return float64(f32of(v))
		}
		return math.Float64frombits(v)
	}
	switch {
	case to[0] == 'f' && from[0] == 'f':
		round := map[string]func(float64) float64{"": same, "rn": same, "rni": math.RoundToEven, "rzi": math.Trunc, "rmi": math.Floor, "rpi": math.Ceil}[mode]
		return func(a [4]uint64) uint64 {
			if v := round(float(a[0])); to == "f64" {
				return math.Float64bits(v)
			} else {
				return bits32(float32(v))
			}
		}
	case to[0] == 'f':
		return func(a [4]uint64) uint64 {
			switch {
			case to == "f32" && from[0] == 's':
				return bits32(float32(int64(a[0])))
			case to == "f32":
				return bits32(float32(a[0]))
			case from[0] == 's':
				return math.Float64bits(float64(int64(a[0])))
			}
			return math.Float64bits(float64(a[0]))
		}
	case from[0] == 'f': // rzi, saturating
		return func(a [4]uint64) uint64 {
			v, limit := math.Trunc(float(a[0])), math.Ldexp(1, width(to)-1)
			switch {
			case v != v:
				return 0
			case v >= limit:
				return 1<<(width(to)-1) - 1
			case v < -limit:
				return 1 << (width(to) - 1)
			}
			return uint64(int64(v))
		}
	}
	return func(a [4]uint64) uint64 { return extend(to, a[0]) }
}

func same(x float64) float64 { return x }
