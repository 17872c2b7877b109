package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// datatypes are the protocol's names of dtypes.
var datatypes = map[string]dtype.DType{
	"BOOL": dtype.Bool, "UINT8": dtype.U8, "INT8": dtype.I8, "INT16": dtype.I16, "INT32": dtype.I32, "INT64": dtype.I64,
	"FP16": dtype.F16, "BF16": dtype.BF16, "FP32": dtype.F32, "FP64": dtype.F64,
}

func datatypeOf(d dtype.DType) string {
	for name, e := range datatypes {
		if e == d {
			return name
		}
	}
	return "UNKNOWN"
}

// tensorJSON is a tensor of a request or a response.
type tensorJSON struct {
	Name       string          `json:"name"`
	Shape      []int           `json:"shape"`
	Datatype   string          `json:"datatype"`
	Data       json.RawMessage `json:"data"`
	Parameters map[string]any  `json:"parameters,omitempty"`
}

// decode makes an array of a request's tensor. The data may be flat, in row-major order, or nested.
func (t *tensorJSON) decode() (*ir.Array, error) {
	d, ok := datatypes[t.Datatype]
	if !ok {
		return nil, fmt.Errorf("the datatype %q is not known; it is one of BOOL, UINT8, INT8, INT16, INT32, INT64, FP16, BF16, FP32, FP64", t.Datatype)
	}
	if len(t.Data) == 0 {
		return nil, errors.New(`"data" is missing (binary tensors are not supported)`)
	}
	for _, n := range t.Shape {
		if n < 0 {
			return nil, fmt.Errorf("the shape %v has a negative size", t.Shape)
		}
	}
	n, err := ir.CountElems(t.Shape)
	if err != nil {
		return nil, err
	}
	if n > len(t.Data) { // every element takes a byte at least
		return nil, fmt.Errorf("the shape %v asks for %d elements, more than the data holds", t.Shape, n)
	}
	a, err := ir.TryNewArray(d, t.Shape)
	if err != nil {
		return nil, err
	}
	return a, fill(a, t.Data, n)
}

// fill reads n elements of nested or flat JSON arrays.
func fill(a *ir.Array, data []byte, n int) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	depth, i := 0, 0
	for {
		tok, err := dec.Token()
		if err != nil {
			return fmt.Errorf("the data are malformed: %w", err)
		}
		switch v := tok.(type) {
		case json.Delim:
			switch v {
			case '[':
				depth++
			case ']':
				depth--
			default:
				return errors.New("the data hold an object; numbers are expected")
			}
		default:
			if i >= n {
				return fmt.Errorf("the data have more than the %d elements of the shape %v", n, a.Shape)
			}
			if err := setElement(a, i, v); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
			i++
		}
		if depth == 0 {
			break
		}
	}
	if i != n {
		return fmt.Errorf("the data have %d elements, but the shape %v asks for %d", i, a.Shape, n)
	}
	return nil
}

// ranges are the least and the largest value of the integer dtypes below 64 bits.
var ranges = map[dtype.DType][2]int64{
	dtype.U8: {0, math.MaxUint8}, dtype.I8: {math.MinInt8, math.MaxInt8}, dtype.I16: {math.MinInt16, math.MaxInt16}, dtype.I32: {math.MinInt32, math.MaxInt32},
}

func setElement(a *ir.Array, i int, v json.Token) error {
	switch v := v.(type) {
	case bool:
		if a.DType != dtype.Bool {
			return fmt.Errorf("%v is no %s", v, datatypeOf(a.DType))
		}
		a.SetInt(i, map[bool]int64{true: 1}[v])
		return nil
	case json.Number:
		switch {
		case a.DType.IsFloat():
			x, err := strconv.ParseFloat(v.String(), 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				return err
			}
			a.SetFloat(i, x)
			return nil
		case a.DType == dtype.Bool:
			if v != "0" && v != "1" {
				return fmt.Errorf("%s is no BOOL", v)
			}
		}
		x, err := strconv.ParseInt(v.String(), 10, 64)
		if r, small := ranges[a.DType]; err != nil || small && (x < r[0] || x > r[1]) {
			return fmt.Errorf("%s is no %s", v, datatypeOf(a.DType))
		}
		a.SetInt(i, x)
		return nil
	case string:
		if x, ok := specials[v]; ok && a.DType.IsFloat() {
			a.SetFloat(i, x)
			return nil
		}
		return fmt.Errorf("%q is no %s", v, datatypeOf(a.DType))
	}
	return fmt.Errorf("null is no %s", datatypeOf(a.DType))
}

// specials are the floats that JSON numbers cannot say.
var specials = map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}

// encode makes a response's tensor, with flat data.
func encode(name string, a *ir.Array) tensorJSON {
	a = a.Contiguous()
	n := a.Len()
	data := make([]byte, 0, 2+8*n)
	data = append(data, '[')
	for i := range n {
		if i > 0 {
			data = append(data, ',')
		}
		data = appendElement(data, a, a.Offset+i)
	}
	return tensorJSON{Name: name, Shape: append([]int{}, a.Shape...), Datatype: datatypeOf(a.DType), Data: append(data, ']')}
}

func appendElement(data []byte, a *ir.Array, at int) []byte {
	switch {
	case a.DType == dtype.Bool:
		return strconv.AppendBool(data, a.Int(at) != 0)
	case a.DType.IsInt():
		return strconv.AppendInt(data, a.Int(at), 10)
	}
	x := a.Float(at)
	switch {
	case math.IsNaN(x):
		return append(data, `"NaN"`...)
	case math.IsInf(x, 1):
		return append(data, `"Infinity"`...)
	case math.IsInf(x, -1):
		return append(data, `"-Infinity"`...)
	}
	bits := 32 // the shortest text that gives the same number back; halves are exact in f32
	if a.DType == dtype.F64 {
		bits = 64
	}
	return strconv.AppendFloat(data, x, 'g', -1, bits)
}

// typeJSON describes an input or output in a model's metadata; sizes that are open are -1.
type typeJSON struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"`
}

func describe(name string, t ir.Type) typeJSON {
	d := typeJSON{Name: name, Datatype: "UNKNOWN", Shape: []int{}}
	switch t.Kind {
	case ir.KTensor:
		if t.DType != dtype.Invalid {
			d.Datatype = datatypeOf(t.DType)
		}
		if d.Shape = slices.Clone(t.Shape()); !t.Ranked {
			d.Shape = []int{-1}
		}
	case ir.KInt:
		d.Datatype = "INT64"
	case ir.KFloat:
		d.Datatype = "FP64"
	case ir.KBool:
		d.Datatype = "BOOL"
	case ir.KOptional:
		return describe(name, t.Elems[0])
	}
	return d
}
