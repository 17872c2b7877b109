package scalar

import (
	"bufio"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
)

// boundsF64 are the largest errors allowed against testdata/reference.txt, in units of the last place; others have 2. The
// functions with zeros at irrational places (lgamma, digamma) are measured against max(|value|, 1).
var boundsF64 = map[string]float64{"digamma": 3, "erfc": 2.5, "i0": 3, "i1": 3.5, "lgamma": 2.1, "logaddexp": 2.2, "trigamma": 6.5}

func TestAccuracyF64(t *testing.T) {
	file, err := os.Open("testdata/reference.txt")
	require.NoError(t, err)
	defer file.Close()
	worst, at := map[string]float64{}, map[string]string{}
	var order []string
	s := bufio.NewScanner(file)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if f[0] == "#" {
			continue
		}
		op := f[0]
		var args []float64
		for _, a := range f[1 : len(f)-1] {
			v, err := strconv.ParseFloat(a, 64)
			require.NoError(t, err)
			args = append(args, v)
		}
		want, _, err := big.ParseFloat(f[len(f)-1], 10, 120, big.ToNearestEven)
		require.NoError(t, err)
		got := eval(t, op, dtype.F64, args...)
		if _, seen := worst[op]; !seen {
			order = append(order, op)
		}
		if e := ulp64(op, got, want); e >= worst[op] {
			worst[op], at[op] = e, s.Text()+" got "+strconv.FormatFloat(got, 'e', 17, 64)
		}
	}
	for _, op := range order {
		bound := boundsF64[op]
		if bound == 0 {
			bound = 2
		}
		t.Logf("%-10s %.3f ulp: %s", op, worst[op], at[op])
		if !(worst[op] <= bound) {
			t.Errorf("%s: %.3f ulp, bound %v", op, worst[op], bound)
		}
	}
}

func ulp64(op string, got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	if math.IsInf(w, 0) && got == w {
		return 0
	}
	if math.IsInf(got, 0) || math.IsNaN(got) {
		return math.Inf(1)
	}
	exp := max(want.MantExp(nil)-1, -1022)
	if op == "lgamma" || op == "digamma" {
		exp = max(exp, 0)
	}
	d := new(big.Float).SetPrec(120).Sub(big.NewFloat(got), want)
	e, _ := new(big.Float).SetMantExp(d, 52-exp).Float64()
	return math.Abs(e)
}
