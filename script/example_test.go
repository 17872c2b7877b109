package script_test

import (
	"fmt"

	"github.com/gtc-project/gtc/script"
)

// A script is parsed once; each of its functions and module classes can be lowered.
func ExampleFile_Lower() {
	f, err := script.Parse("scale.py", []byte(`
import torch
from torch import Tensor

def forward(x: Tensor, k: int = 2):
    return x * float(k)
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fn, sig, err := f.Lower("forward", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range sig.Params {
		fmt.Println(p.Name, p.Type, p.HasDefault)
	}
	fmt.Println(len(fn.Returns()), "result")
	// Output:
	// x tensor<?> false
	// k int true
	// 1 result
}

// A diagnostic shows the source line with a caret under the offending expression.
func ExampleParse_error() {
	f, _ := script.Parse("net.py", []byte("from torch import Tensor\n\ndef forward(x: Tensor):\n    return x + yy\n"))
	_, _, err := f.Lower("forward", nil)
	fmt.Println(err)
	// Output:
	// net.py:4:16: error: undefined value 'yy': the name is not defined
	//         return x + yy
	//                    ^~
}
