// Package pickle reads Python pickles as data. It never runs anything: a call in the pickle becomes an Object that says what would be called, and
// the reader of a file format decides which of these it knows.
package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
)

// A value is nil, bool, int64, float64, string, []byte, *List, *Dict, Tuple, Global, *Object or Persistent.
type (
	// List is a Python list; Items grows while the pickle is read.
	List struct{ Items []any }
	// Dict is a Python dict, an OrderedDict included, in the pickle's order.
	Dict struct{ Keys, Values []any }
	// Tuple is a Python tuple.
	Tuple []any
	// Global names a function or class.
	Global struct{ Module, Name string }
	// Object is what calling Func with Args would give, with the state that was set afterwards.
	Object struct {
		Func  any
		Args  Tuple
		State any
	}
	// Persistent is a reference to something outside of the pickle.
	Persistent struct{ ID any }
)

// Decode reads the first value of a pickle, of protocol 2 to 5.
func Decode(data []byte) (any, error) {
	d := &decoder{data: data, memo: map[uint32]any{}}
	v, err := d.run()
	if err != nil {
		return nil, fmt.Errorf("the pickle is damaged or of a form that is not supported: byte %d: %w", d.at, err)
	}
	return v, nil
}

type decoder struct {
	data  []byte
	pos   int
	at    int // of the present opcode
	stack []any
	marks []int // heights of the stack
	memo  map[uint32]any
}

var (
	errCut   = errors.New("it ends early")
	errStack = errors.New("an operand is missing")
)

func (d *decoder) take(n uint64) ([]byte, error) {
	if n > uint64(len(d.data)-d.pos) {
		return nil, errCut
	}
	b := d.data[d.pos : d.pos+int(n)]
	d.pos += int(n)
	return b, nil
}

// uint reads n bytes, little-endian.
func (d *decoder) uint(n uint64) (uint64, error) {
	b, err := d.take(n)
	if err != nil {
		return 0, err
	}
	var buf [8]byte
	copy(buf[:], b)
	return binary.LittleEndian.Uint64(buf[:]), nil
}

// sized reads a length of n bytes and then that many bytes.
func (d *decoder) sized(n uint64) ([]byte, error) {
	size, err := d.uint(n)
	if err != nil {
		return nil, err
	}
	return d.take(size)
}

func (d *decoder) line() (string, error) {
	for i := d.pos; i < len(d.data); i++ {
		if d.data[i] == '\n' {
			s := string(d.data[d.pos:i])
			d.pos = i + 1
			return s, nil
		}
	}
	return "", errCut
}

func (d *decoder) push(v any) { d.stack = append(d.stack, v) }

// low is the height of the stack below which the present frame must not reach.
func (d *decoder) low() int {
	if n := len(d.marks); n > 0 {
		return d.marks[n-1]
	}
	return 0
}

func (d *decoder) pop(n int) ([]any, error) {
	if len(d.stack)-n < d.low() {
		return nil, errStack
	}
	vs := append([]any{}, d.stack[len(d.stack)-n:]...)
	d.stack = d.stack[:len(d.stack)-n]
	return vs, nil
}

// popMark gives the values above the last mark, and removes both.
func (d *decoder) popMark() ([]any, error) {
	n := len(d.marks)
	if n == 0 {
		return nil, errors.New("a mark is missing")
	}
	vs := append([]any{}, d.stack[d.marks[n-1]:]...)
	d.stack, d.marks = d.stack[:d.marks[n-1]], d.marks[:n-1]
	return vs, nil
}

func (d *decoder) top() (any, error) {
	if len(d.stack) <= d.low() {
		return nil, errStack
	}
	return d.stack[len(d.stack)-1], nil
}

func (d *decoder) run() (any, error) {
	for {
		d.at = d.pos
		op, err := d.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == '.' {
			return d.top()
		}
		if err := d.step(op[0]); err != nil {
			return nil, err
		}
	}
}

// step does one opcode, by the names of pickletools.
func (d *decoder) step(op byte) error {
	if v, ok := constants[op]; ok {
		d.push(v())
		return nil
	}
	switch op {
	case 0x80: // PROTO
		v, err := d.uint(1)
		if err == nil && (v < 2 || v > 5) {
			err = fmt.Errorf("protocol %d", v)
		}
		return err
	case 0x95: // FRAME
		_, err := d.take(8)
		return err
	case '(': // MARK
		d.marks = append(d.marks, len(d.stack))
		return nil
	case 'q', 'h', 'r', 'j', 0x94:
		return d.memorise(op)
	case 'c', 0x93, 'R', 0x81, 'b', 'Q':
		return d.call(op)
	case 't', 0x85, 0x86, 0x87, 's', 'u', 'a', 'e':
		return d.container(op)
	case '0': // POP
		_, err := d.pop(1)
		return err
	}
	v, err := d.literal(op)
	if err == nil {
		d.push(v)
	}
	return err
}

var constants = map[byte]func() any{
	'N': func() any { return nil }, 0x88: func() any { return true }, 0x89: func() any { return false },
	'}': func() any { return &Dict{} }, ']': func() any { return &List{} }, ')': func() any { return Tuple{} },
}

// literal reads numbers and strings.
func (d *decoder) literal(op byte) (any, error) {
	text := func(b []byte, err error) (any, error) { return string(b), err }
	number := func(n uint64, err error) (any, error) { return int64(n), err }
	switch op {
	case 'K': // BININT1
		return number(d.uint(1))
	case 'M': // BININT2
		return number(d.uint(2))
	case 'J': // BININT
		n, err := d.uint(4)
		return int64(int32(n)), err
	case 0x8a: // LONG1
		b, err := d.sized(1)
		if err != nil {
			return nil, err
		}
		return long(b)
	case 'G': // BINFLOAT, big-endian
		b, err := d.take(8)
		if err != nil {
			return nil, err
		}
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case 'X': // BINUNICODE
		return text(d.sized(4))
	case 0x8c: // SHORT_BINUNICODE
		return text(d.sized(1))
	case 0x8d: // BINUNICODE8
		return text(d.sized(8))
	case 'C': // SHORT_BINBYTES
		return d.sized(1)
	case 'B': // BINBYTES
		return d.sized(4)
	case 'U': // SHORT_BINSTRING
		return text(d.sized(1))
	}
	return nil, fmt.Errorf("opcode 0x%02x is not supported", op)
}

// long reads a two's complement integer, little-endian.
func long(b []byte) (any, error) {
	x := new(big.Int)
	for i := len(b) - 1; i >= 0; i-- {
		x.Or(x.Lsh(x, 8), big.NewInt(int64(b[i])))
	}
	if n := len(b); n > 0 && b[n-1] >= 0x80 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	if !x.IsInt64() {
		return nil, errors.New("an integer has more than 64 bits")
	}
	return x.Int64(), nil
}

func (d *decoder) memorise(op byte) error {
	var k uint64
	var err error
	switch op {
	case 'q', 'h':
		k, err = d.uint(1)
	case 'r', 'j':
		k, err = d.uint(4)
	case 0x94: // MEMOIZE
		k = uint64(len(d.memo))
	}
	if err != nil {
		return err
	}
	if op == 'h' || op == 'j' { // BINGET
		v, ok := d.memo[uint32(k)]
		if !ok {
			return fmt.Errorf("there is no value number %d", k)
		}
		d.push(v)
		return nil
	}
	v, err := d.top()
	d.memo[uint32(k)] = v
	return err
}

// call reads names and what is done with them.
func (d *decoder) call(op byte) error {
	switch op {
	case 'c': // GLOBAL
		module, err := d.line()
		if err != nil {
			return err
		}
		name, err := d.line()
		d.push(Global{module, name})
		return err
	case 'Q': // BINPERSID
		v, err := d.pop(1)
		if err == nil {
			d.push(Persistent{v[0]})
		}
		return err
	}
	v, err := d.pop(2)
	if err != nil {
		return err
	}
	switch op {
	case 0x93: // STACK_GLOBAL
		module, ok1 := v[0].(string)
		name, ok2 := v[1].(string)
		if !ok1 || !ok2 {
			return errors.New("a name is no string")
		}
		d.push(Global{module, name})
	case 'R', 0x81: // REDUCE, NEWOBJ
		args, ok := v[1].(Tuple)
		if !ok {
			return errors.New("the arguments of a call are no tuple")
		}
		if v[0] == (Global{"collections", "OrderedDict"}) && len(args) == 0 {
			d.push(&Dict{})
			return nil
		}
		d.push(&Object{Func: v[0], Args: args})
	case 'b': // BUILD
		if o, ok := v[0].(*Object); ok {
			o.State = v[1]
		}
		d.push(v[0]) // the attributes of a dict do not matter
	}
	return nil
}

func (d *decoder) container(op byte) error {
	var vs []any
	var err error
	switch op {
	case 't', 'u', 'e':
		vs, err = d.popMark()
	case 0x85, 'a':
		vs, err = d.pop(1)
	case 0x86, 's':
		vs, err = d.pop(2)
	case 0x87:
		vs, err = d.pop(3)
	}
	if err != nil {
		return err
	}
	switch op {
	case 't', 0x85, 0x86, 0x87:
		d.push(Tuple(vs))
		return nil
	}
	into, err := d.top()
	if err != nil {
		return err
	}
	switch into := into.(type) {
	case *Dict:
		if (op != 's' && op != 'u') || len(vs)%2 != 0 {
			return errors.New("a dict is filled with what are no pairs")
		}
		for i := 0; i < len(vs); i += 2 {
			into.Keys, into.Values = append(into.Keys, vs[i]), append(into.Values, vs[i+1])
		}
		return nil
	case *List:
		if op == 'a' || op == 'e' {
			into.Items = append(into.Items, vs...)
			return nil
		}
	}
	return errors.New("items are added to what is no list or dict")
}
