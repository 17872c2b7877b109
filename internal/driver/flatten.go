package driver

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Flatten lists the arrays in a result, depth first through tuples, lists and dicts (in insertion order). Python numbers become 0-d
// arrays of int64, float64 or bool; None has no array and is left out.
func Flatten(results ...ir.Datum) ([]*ir.Array, error) {
	var out []*ir.Array
	err := walk(results, func(d ir.Datum) error {
		a, err := toArray(d)
		out = append(out, a)
		return err
	})
	return out, err
}

// walk visits the leaves that are not None.
func walk(ds []ir.Datum, leaf func(ir.Datum) error) error {
	for _, d := range ds {
		var err error
		switch d := d.(type) {
		case nil:
		case ir.Tuple:
			err = walk(d, leaf)
		case ir.List:
			err = walk(d.Elems(), leaf)
		case *ir.Dict:
			err = walk(d.Values, leaf)
		default:
			err = leaf(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func toArray(d ir.Datum) (*ir.Array, error) {
	switch d := d.(type) {
	case *ir.Array:
		return d, nil
	case int64:
		return ir.Scalar(dtype.I64, d), nil
	case float64:
		return ir.Scalar(dtype.F64, d), nil
	case bool:
		return ir.Scalar(dtype.Bool, d), nil
	}
	return nil, fmt.Errorf("a result of type %s cannot be written as an array; return tensors and numbers", ir.TypeOf(d))
}

// Leaf is an array inside an argument, with the key that it has in an input file.
type Leaf struct {
	Key   string
	Array *ir.Array
}

// Leaves lists the arrays inside an argument, in order, with their keys: name, name.0, name.key, ….
func Leaves(name string, d ir.Datum) []Leaf {
	var out []Leaf
	var visit func(key string, d ir.Datum)
	visit = func(key string, d ir.Datum) {
		switch d := d.(type) {
		case *ir.Array:
			out = append(out, Leaf{key, d})
		case ir.Tuple:
			for i, e := range d {
				visit(fmt.Sprintf("%s.%d", key, i), e)
			}
		case ir.List:
			for i, e := range d.Elems() {
				visit(fmt.Sprintf("%s.%d", key, i), e)
			}
		case *ir.Dict:
			for i, k := range d.Keys {
				visit(fmt.Sprintf("%s.%v", key, k), d.Values[i])
			}
		}
	}
	visit(name, d)
	return out
}
