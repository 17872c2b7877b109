// Package raw holds the plain array that the file formats exchange: a dtype, a shape, and the elements in C order, little-endian.
package raw

import (
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Array is a dense array as files hold it. Data has exactly NumElements(Shape)*DType.Size() bytes, in C order, little-endian.
type Array struct {
	DType dtype.DType
	Shape []int
	Data  []byte
}

// NumBytes gives the size in bytes of a dense array, or an error where a dimension is negative or the product does not fit an int.
// A zero dimension makes the size zero, but the other dimensions must still be representable.
func NumBytes(d dtype.DType, shape []int) (int, error) {
	n, zero := d.Size(), false
	for _, s := range shape {
		switch {
		case s < 0:
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		case s == 0:
			zero = true
		case n > math.MaxInt/s:
			return 0, fmt.Errorf("shape %v of %v has more bytes than fit 64 bits", shape, d)
		default:
			n *= s
		}
	}
	if zero {
		return 0, nil
	}
	return n, nil
}
