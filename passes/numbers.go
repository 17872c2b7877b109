package passes

import "math"

// sameNumber is equality of bits: NaN equals itself, 0 does not equal -0.
func sameNumber(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
