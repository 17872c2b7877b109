package layers

import (
	"fmt"
	"strconv"
	"strings"
)

// Init says how a parameter starts, as constructors describe it in text:
//
//	value:V        every element is V
//	uniform:A      uniform in [-A, A)
//	uniform:A,B    uniform in [A, B)
//	normal:S       normal with standard deviation S
//	normal:M,S     normal with mean M
//
// and /zero:I after it clears row I (the padding of an embedding).
type Init struct {
	Kind    string // "value", "uniform" or "normal"
	A, B    float64
	ZeroRow int // -1: none
}

// ParseInit reads a description; "zeros" and "ones" are values, too. For "value" both A and B are the value.
func ParseInit(text string) (Init, error) {
	in := Init{ZeroRow: -1}
	what, row, cleared := strings.Cut(text, "/zero:")
	if cleared {
		i, err := strconv.Atoi(row)
		if err != nil || i < 0 {
			return in, fmt.Errorf("initialisation %q: no row %q", text, row)
		}
		in.ZeroRow = i
	}
	switch what {
	case "zeros":
		what = "value:0"
	case "ones":
		what = "value:1"
	}
	kind, list, _ := strings.Cut(what, ":")
	var v []float64
	for _, number := range strings.Split(list, ",") {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return in, fmt.Errorf("initialisation %q is not understood", text)
		}
		v = append(v, x)
	}
	in.Kind, in.A, in.B = kind, v[0], v[len(v)-1]
	switch {
	case len(v) > 2 || kind != "value" && kind != "uniform" && kind != "normal":
		return in, fmt.Errorf("initialisation %q is not understood", text)
	case len(v) == 1 && kind == "uniform":
		in.A = -in.B
	case len(v) == 1 && kind == "normal":
		in.A = 0
	}
	return in, nil
}
