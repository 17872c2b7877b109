package scalar

import (
	"encoding/binary"
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Lanes is the number of elements that a Frame computes at a time.
const Lanes = 256

// Frame runs a program over up to Lanes elements: fill the inputs (Load, LoadAt or a typed slice from Input), Run, read the
// outputs. A Frame is for one goroutine and allocates nothing after its making.
type Frame struct {
	prog  *Prog
	regs  []any // per register the []T of Lanes elements; registers that are not live together share one
	steps []func(n int)
	fault FaultCode
}

// Frame gives a frame for p, a reused one where possible. Give it back with Release.
func (p *Prog) Frame() *Frame {
	if f, ok := p.frames.Get().(*Frame); ok {
		return f
	}
	return NewFrame(p)
}

// Release lets a later call of Prog.Frame reuse f.
func (f *Frame) Release() { f.prog.frames.Put(f) }

// NewFrame allocates the registers of p and prepares its instructions.
func NewFrame(p *Prog) *Frame {
	f := &Frame{prog: p, regs: make([]any, p.NumRegs())}
	last := lastUses(p)
	free := map[dtype.DType][]any{}
	take := func(t dtype.DType) any {
		if l := free[t]; len(l) > 0 {
			free[t] = l[:len(l)-1]
			return l[len(l)-1]
		}
		return newLanes(t)
	}
	for i, in := range p.In {
		f.regs[i] = newLanes(RegType(in.DType))
	}
	for i := range p.Code {
		c, self := &p.Code[i], len(p.In)+i
		if c.Op == Const {
			f.regs[self] = newLanes(c.Type)
			fill(f.regs[self], c.Imm)
			continue
		}
		// An operand that dies here may share its lanes with the result: every step reads lane i before it writes lane i.
		for k, a := range c.Args[:c.Op.Arity()] {
			if last[a] == i && !repeated(c, k) && f.recyclable(a) {
				t := p.TypeOf(a)
				free[t] = append(free[t], f.regs[a])
			}
		}
		if c.Op != Fault {
			f.regs[self] = take(c.Type)
		}
		f.steps = append(f.steps, f.step(c, self))
	}
	return f
}

// recyclable: inputs stay readable between runs and constants are filled once.
func (f *Frame) recyclable(r Reg) bool {
	i := int(r) - len(f.prog.In)
	return i >= 0 && f.prog.Code[i].Op != Const
}

func repeated(c *Instr, k int) bool {
	for _, a := range c.Args[:k] {
		if a == c.Args[k] {
			return true
		}
	}
	return false
}

// lastUses gives, per register, the index of the last instruction that reads it; outputs are read after the end.
func lastUses(p *Prog) []int {
	last := make([]int, p.NumRegs())
	for i := range last {
		last[i] = -1
	}
	for i := range p.Code {
		c := &p.Code[i]
		for _, a := range c.Args[:c.Op.Arity()] {
			last[a] = i
		}
	}
	for _, o := range p.Out {
		last[o.Reg] = len(p.Code)
	}
	return last
}

func newLanes(t dtype.DType) any {
	switch t {
	case dtype.Bool:
		return make([]bool, Lanes)
	case dtype.U8:
		return make([]uint8, Lanes)
	case dtype.I8:
		return make([]int8, Lanes)
	case dtype.I16:
		return make([]int16, Lanes)
	case dtype.I32:
		return make([]int32, Lanes)
	case dtype.I64:
		return make([]int64, Lanes)
	case dtype.F32:
		return make([]float32, Lanes)
	case dtype.F64:
		return make([]float64, Lanes)
	}
	panic("BUG: scalar: register of type " + t.String())
}

func fill(lanes any, bits uint64) {
	switch d := lanes.(type) {
	case []bool:
		fillWith(d, bits != 0)
	case []uint8:
		fillWith(d, uint8(bits))
	case []int8:
		fillWith(d, int8(bits))
	case []int16:
		fillWith(d, int16(bits))
	case []int32:
		fillWith(d, int32(bits))
	case []int64:
		fillWith(d, int64(bits))
	case []float32:
		fillWith(d, math.Float32frombits(uint32(bits)))
	case []float64:
		fillWith(d, math.Float64frombits(bits))
	}
}

func fillWith[T any](d []T, v T) {
	for i := range d {
		d[i] = v
	}
}

// Run computes the first n lanes (n <= Lanes) and gives the first fault, or NoFault.
func (f *Frame) Run(n int) FaultCode {
	f.fault = NoFault
	for _, s := range f.steps {
		s(n)
	}
	return f.fault
}

// Input is the register slice of input i: []bool, []uint8, … of length Lanes, []float32 for f16 and bf16.
func (f *Frame) Input(i int) any { return f.regs[i] }

// Output is the register slice of output i.
func (f *Frame) Output(i int) any { return f.regs[f.prog.Out[i].Reg] }

// Load reads n elements of input i from data, little endian in the input's dtype: element k lies at index off + k*stride.
func (f *Frame) Load(i int, data []byte, off, stride, n int) {
	d := f.prog.In[i].DType
	size := d.Size()
	load(f.regs[i], d, data, n, func(k int) int { return (off + k*stride) * size })
}

// LoadAt reads input i's lane k from element index offs[k] of data, for all k < len(offs).
func (f *Frame) LoadAt(i int, data []byte, offs []int) {
	d := f.prog.In[i].DType
	size := d.Size()
	load(f.regs[i], d, data, len(offs), func(k int) int { return offs[k] * size })
}

// Store writes n lanes of output i to data, in the output's dtype: lane k goes to element index off + k*stride.
func (f *Frame) Store(i int, data []byte, off, stride, n int) {
	d := f.prog.Out[i].DType
	size := d.Size()
	store(f.Output(i), d, data, n, func(k int) int { return (off + k*stride) * size })
}

// StoreAt writes lane k of output i to element index offs[k] of data.
func (f *Frame) StoreAt(i int, data []byte, offs []int) {
	d := f.prog.Out[i].DType
	size := d.Size()
	store(f.Output(i), d, data, len(offs), func(k int) int { return offs[k] * size })
}

var le = binary.LittleEndian

func load(lanes any, dt dtype.DType, data []byte, n int, at func(k int) int) {
	switch r := lanes.(type) {
	case []bool:
		for k := range r[:n] {
			r[k] = data[at(k)] != 0
		}
	case []uint8:
		for k := range r[:n] {
			r[k] = data[at(k)]
		}
	case []int8:
		for k := range r[:n] {
			r[k] = int8(data[at(k)])
		}
	case []int16:
		for k := range r[:n] {
			r[k] = int16(le.Uint16(data[at(k):]))
		}
	case []int32:
		for k := range r[:n] {
			r[k] = int32(le.Uint32(data[at(k):]))
		}
	case []int64:
		for k := range r[:n] {
			r[k] = int64(le.Uint64(data[at(k):]))
		}
	case []float64:
		for k := range r[:n] {
			r[k] = math.Float64frombits(le.Uint64(data[at(k):]))
		}
	case []float32:
		switch dt {
		case dtype.F16:
			for k := range r[:n] {
				r[k] = dtype.F16ToF32(le.Uint16(data[at(k):]))
			}
		case dtype.BF16:
			for k := range r[:n] {
				r[k] = dtype.BF16ToF32(le.Uint16(data[at(k):]))
			}
		default:
			for k := range r[:n] {
				r[k] = math.Float32frombits(le.Uint32(data[at(k):]))
			}
		}
	}
}

func store(lanes any, dt dtype.DType, data []byte, n int, at func(k int) int) {
	switch r := lanes.(type) {
	case []bool:
		for k, v := range r[:n] {
			data[at(k)] = b2u(v)
		}
	case []uint8:
		for k, v := range r[:n] {
			data[at(k)] = v
		}
	case []int8:
		for k, v := range r[:n] {
			data[at(k)] = uint8(v)
		}
	case []int16:
		for k, v := range r[:n] {
			le.PutUint16(data[at(k):], uint16(v))
		}
	case []int32:
		for k, v := range r[:n] {
			le.PutUint32(data[at(k):], uint32(v))
		}
	case []int64:
		for k, v := range r[:n] {
			le.PutUint64(data[at(k):], uint64(v))
		}
	case []float64:
		for k, v := range r[:n] {
			le.PutUint64(data[at(k):], math.Float64bits(v))
		}
	case []float32:
		switch dt {
		case dtype.F16:
			for k, v := range r[:n] {
				le.PutUint16(data[at(k):], dtype.F32ToF16(v))
			}
		case dtype.BF16:
			for k, v := range r[:n] {
				le.PutUint16(data[at(k):], dtype.F32ToBF16(v))
			}
		default:
			for k, v := range r[:n] {
				le.PutUint32(data[at(k):], math.Float32bits(v))
			}
		}
	}
}

func b2u(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
