// Package raw turns the bytes that files hold into arrays and back: dense, in C order, little-endian.
package raw

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// NumBytes gives the size in bytes of a dense array, or an error where a size is negative or the product is beyond what is supported.
func NumBytes(d dtype.DType, shape []int) (int, error) {
	n, err := ir.CountElems(shape)
	return n * d.Size(), err
}

// Array makes an array of the given bytes, which it takes over; their number must fit. A bool is any byte that is not zero.
func Array(d dtype.DType, shape []int, data []byte) *ir.Array {
	if n, err := NumBytes(d, shape); err != nil || n != len(data) {
		panic(fmt.Sprintf("BUG: %d bytes for shape %v of %v", len(data), shape, d))
	}
	if d == dtype.Bool {
		for i, b := range data {
			if b > 1 {
				data[i] = 1
			}
		}
	}
	return &ir.Array{DType: d, Shape: shape, Strides: ir.ContiguousStrides(shape), Data: data}
}

// Bytes gives an array's elements densely; where the array is dense already they are not copied.
func Bytes(a *ir.Array) []byte { return a.Contiguous().Bytes() }
