package npz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/internal/raw"
	"github.com/gtc-project/gtc/internal/safezip"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

const (
	magic = "\x93NUMPY"
	// maxHeader bounds the header text; NumPy's own writer stays far below it.
	maxHeader = 1 << 16
	// maxRank bounds the number of dimensions, as NumPy does.
	maxRank = 64
)

// header is what a .npy file says of its array before the elements.
type header struct {
	dtype     dtype.DType
	bigEndian bool
	fortran   bool
	shape     []int
	length    int64 // bytes from the magic to the first element
	bytes     int   // bytes of all elements
}

// descrs maps NumPy's type codes to dtypes; the byte order is read apart.
var descrs = map[string]dtype.DType{
	"b1": dtype.Bool, "u1": dtype.U8, "i1": dtype.I8, "i2": dtype.I16, "i4": dtype.I32, "i8": dtype.I64,
	"f2": dtype.F16, "f4": dtype.F32, "f8": dtype.F64,
}

// readHeader reads the magic, the version and the header text from r, of which size bytes exist, and checks that exactly the declared
// elements follow. Nothing is allocated by a declared size that size does not bear out.
func readHeader(r io.Reader, size int64) (*header, error) {
	var pre [12]byte
	if size < 10 {
		return nil, fmt.Errorf("%d bytes are too short for a .npy header", size)
	}
	if _, err := io.ReadFull(r, pre[:10]); err != nil {
		return nil, safezip.Damaged(err)
	}
	if string(pre[:6]) != magic {
		return nil, errors.New("it does not start with NumPy's magic bytes; write it with numpy.save or numpy.savez")
	}
	textLen, start := int64(binary.LittleEndian.Uint16(pre[8:])), int64(10)
	switch pre[6] {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(r, pre[10:]); err != nil {
			return nil, safezip.Damaged(err)
		}
		textLen, start = int64(binary.LittleEndian.Uint32(pre[8:])), 12
	default:
		return nil, fmt.Errorf("format version %d.%d is not known; versions 1 to 3 are read", pre[6], pre[7])
	}
	if textLen > maxHeader || textLen > size-start {
		return nil, fmt.Errorf("the header declares a length of %d bytes, more than there are or than is sensible", textLen)
	}
	text := make([]byte, textLen)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, safezip.Damaged(err)
	}
	h, err := parseHeader(string(text))
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	h.length = start + textLen
	if h.bytes, err = raw.NumBytes(h.dtype, h.shape); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if have := size - h.length; int64(h.bytes) != have {
		return nil, fmt.Errorf("shape %v of %v takes %d bytes, but %d follow the header; the file may be cut off", h.shape, h.dtype, h.bytes, have)
	}
	return h, nil
}

// parseHeader reads the Python dict literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
func parseHeader(text string) (*header, error) {
	p := &literal{s: text}
	h := &header{}
	seen := map[string]bool{}
	if !p.take("{") {
		return nil, fmt.Errorf("it is no dict literal: %s", p.near())
	}
	for !p.take("}") {
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, fmt.Errorf("key %q appears twice", key)
		}
		seen[key] = true
		if !p.take(":") {
			return nil, fmt.Errorf("a ':' is missing: %s", p.near())
		}
		if err := p.value(key, h); err != nil {
			return nil, err
		}
		if !p.take(",") && !p.peek("}") {
			return nil, fmt.Errorf("a ',' or '}' is missing: %s", p.near())
		}
	}
	if p.space(); p.pos != len(p.s) {
		return nil, fmt.Errorf("something follows the dict: %s", p.near())
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return nil, fmt.Errorf("key %q is missing", key)
		}
	}
	return h, nil
}

// literal scans the few forms of Python literal that a header may hold.
type literal struct {
	s   string
	pos int
}

func (p *literal) space() {
	for p.pos < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *literal) peek(tok string) bool {
	p.space()
	return strings.HasPrefix(p.s[p.pos:], tok)
}

func (p *literal) take(tok string) bool {
	if !p.peek(tok) {
		return false
	}
	p.pos += len(tok)
	return true
}

// near quotes a little of the text at the current position, for messages.
func (p *literal) near() string {
	rest := p.s[p.pos:]
	if len(rest) > 24 {
		rest = rest[:24] + "…"
	}
	if rest == "" {
		return "at the end"
	}
	return "at " + strconv.QuoteToASCII(rest)
}

func (p *literal) str() (string, error) {
	for _, q := range []string{"'", `"`} {
		if !p.take(q) {
			continue
		}
		end := strings.Index(p.s[p.pos:], q)
		if end < 0 {
			return "", errors.New("a string does not end")
		}
		s := p.s[p.pos : p.pos+end]
		p.pos += end + 1
		if strings.ContainsAny(s, "\\\x00") {
			return "", errors.New("a string holds a backslash or NUL")
		}
		return s, nil
	}
	return "", fmt.Errorf("a string is missing: %s", p.near())
}

func (p *literal) value(key string, h *header) (err error) {
	switch key {
	case "descr":
		if p.peek("[") {
			return errors.New("a structured dtype is not supported; save one array per field")
		}
		var s string
		if s, err = p.str(); err == nil {
			h.dtype, h.bigEndian, err = parseDescr(s)
		}
	case "fortran_order":
		switch {
		case p.take("True"):
			h.fortran = true
		case !p.take("False"):
			err = fmt.Errorf("fortran_order is neither True nor False: %s", p.near())
		}
	case "shape":
		h.shape, err = p.shape()
	default:
		err = fmt.Errorf("key %s is not known", strconv.QuoteToASCII(short(key)))
	}
	return err
}

func (p *literal) shape() ([]int, error) {
	if !p.take("(") {
		return nil, fmt.Errorf("the shape is no tuple of integers: %s", p.near())
	}
	shape := []int{}
	for !p.take(")") {
		p.space()
		start := p.pos
		for p.pos < len(p.s) && (p.s[p.pos] >= '0' && p.s[p.pos] <= '9' || p.pos == start && p.s[p.pos] == '-') {
			p.pos++
		}
		digits := p.s[start:p.pos]
		n, err := strconv.Atoi(digits)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return nil, fmt.Errorf("dimension %s of the shape does not fit 64 bits", short(digits))
		case err != nil:
			p.pos = start
			return nil, fmt.Errorf("the shape is no tuple of integers: %s", p.near())
		case n < 0:
			return nil, fmt.Errorf("dimension %d of the shape is negative", n)
		case len(shape) == maxRank:
			return nil, fmt.Errorf("the shape has more than %d dimensions", maxRank)
		}
		shape = append(shape, n)
		p.take("L") // Python 2 wrote long integers so
		if !p.take(",") && (!p.peek(")") || len(shape) == 1) {
			return nil, fmt.Errorf("the shape is no tuple of integers: %s", p.near())
		}
	}
	return shape, nil
}

// parseDescr reads a type code such as "<f4"; the error says what to save instead.
func parseDescr(s string) (d dtype.DType, bigEndian bool, err error) {
	code := s
	if s != "" && strings.IndexByte("<>=|", s[0]) >= 0 {
		bigEndian, code = s[0] == '>', s[1:]
	}
	if d, ok := descrs[code]; ok {
		return d, bigEndian && d.Size() > 1, nil
	}
	kind := byte(0)
	if code != "" {
		kind = code[0]
	}
	switch kind {
	case 'O':
		return 0, false, errors.New("dtype object is a pickle, which could run code, and is never read; convert with .astype to a number type")
	case 'u':
		return 0, false, fmt.Errorf("dtype %s is an unsigned integer type that PyTorch lacks; convert with .astype('int64')", strconv.QuoteToASCII(short(s)))
	case 'c':
		return 0, false, errors.New("complex numbers are not supported; save the real and imaginary parts apart")
	}
	return 0, false, fmt.Errorf("dtype %s is not supported; convert with .astype to float16/32/64, int8/16/32/64, uint8 or bool", strconv.QuoteToASCII(short(s)))
}

func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// readElements reads the elements that follow a header, turns them into C order, little-endian, and checks that r ends there.
func readElements(r io.Reader, h *header) (*ir.Array, error) {
	data := make([]byte, h.bytes)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, safezip.Damaged(err)
	}
	if err := safezip.AtEnd(r); err != nil {
		return nil, err
	}
	if h.bigEndian {
		swapBytes(data, h.dtype.Size())
	}
	if h.fortran && len(h.shape) > 1 {
		data = fromFortran(data, h.shape, h.dtype.Size())
	}
	return raw.Array(h.dtype, h.shape, data), nil
}

func swapBytes(data []byte, size int) {
	for i := 0; i < len(data); i += size {
		e := data[i : i+size]
		for a, b := 0, size-1; a < b; a, b = a+1, b-1 {
			e[a], e[b] = e[b], e[a]
		}
	}
}

// fromFortran copies elements that lie first-index-fastest into C order.
func fromFortran(data []byte, shape []int, size int) []byte {
	if len(data) == 0 {
		return data
	}
	out := make([]byte, len(data))
	strides := make([]int, len(shape)) // of the Fortran layout, in bytes
	n := size
	for d, s := range shape {
		strides[d] = n
		n *= s
	}
	index := make([]int, len(shape))
	src := 0
	for dst := 0; dst < len(out); dst += size {
		copy(out[dst:dst+size], data[src:src+size])
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			src += strides[d]
			if index[d] < shape[d] {
				break
			}
			src -= strides[d] * shape[d]
			index[d] = 0
		}
	}
	return out
}

// encodeHeader gives the bytes before the elements, padded so that they start at a multiple of 64.
func encodeHeader(a *ir.Array) ([]byte, error) {
	descr := ""
	for code, d := range descrs {
		if d == a.DType {
			descr = code
		}
	}
	switch {
	case a.DType == dtype.BF16:
		return nil, errors.New("NumPy has no bfloat16: return x.float() instead")
	case descr == "":
		return nil, fmt.Errorf("dtype %v has no NumPy type", a.DType)
	case a.DType.Size() == 1:
		descr = "|" + descr
	default:
		descr = "<" + descr
	}
	var b bytes.Buffer
	b.WriteString(magic + "\x01\x00\x00\x00")
	fmt.Fprintf(&b, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr)
	for i, s := range a.Shape {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d,", s)
	}
	b.WriteString("), }")
	for (b.Len()+1)%64 != 0 {
		b.WriteByte(' ')
	}
	b.WriteByte('\n')
	h := b.Bytes()
	binary.LittleEndian.PutUint16(h[8:], uint16(len(h)-10))
	return h, nil
}
