package a

import (
	"math/rand"
	"os"
	"time"

	"github.com/gtc-project/gtc/tensor"
)

func Unused(x, y *tensor.Tensor) {
	x.Add(y) // want `the result of Add is not used: it changes no tensor; Add_ does`
	x.Exp()  // want `the result of Exp is not used: it changes no tensor$`
	x.Add_(y)
	_ = x.Add(y)
}

func Same(x, y *tensor.Tensor) bool {
	return x == y || // want `compares the handles of tensors`
		x == nil
}

func Traced(x *tensor.Tensor, named map[string]*tensor.Tensor) *tensor.Tensor {
	v, _ := x.Item()                      // want `Item reads values into Go`
	d, _ := tensor.Data[float32](x)       // want `Data reads values into Go`
	if rand.Float64() < float64(len(d)) { // want `random numbers of Go`
		x = x.Add(time.Now().Unix()) // want `time.Now in a function that may be traced`
	}
	x = x.Add(os.Getenv("SCALE")) // want `os.Getenv in a function that may be traced`
	for _, y := range named {     // want `in the order of a map`
		x = x.Add(y)
	}
	go func() { x.Add_(v) }()    // want `a goroutine in a function that may be traced`
	if pos, _ := x.Bool(); pos { // a guard: the trace follows it
		return x.Exp()
	}
	return x
}

// Loss gives no tensor, so it is no function that is traced.
func Loss(x *tensor.Tensor) float64 {
	v, _ := x.Item()
	return v
}
