package kernel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCollapse(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape []int
		ops   [][]int
		want  Nest
	}{
		{"contiguous operands become one axis", []int{2, 3, 4}, [][]int{{12, 4, 1}, {12, 4, 1}}, Nest{{24, []int{1, 1}}}},
		{"a broadcast row stays apart", []int{2, 3, 4}, [][]int{{12, 4, 1}, {0, 0, 1}}, Nest{{6, []int{4, 0}}, {4, []int{1, 1}}}},
		{"a broadcast column", []int{6, 4}, [][]int{{4, 1}, {1, 0}}, Nest{{6, []int{4, 1}}, {4, []int{1, 0}}}},
		{"size 1 vanishes whatever its stride", []int{1, 5, 1}, [][]int{{99, 1, 7}}, Nest{{5, []int{1}}}},
		{"scalars have no axis", nil, [][]int{nil, nil}, Nest{}},
		{"fully repeated", []int{3, 4}, [][]int{{0, 0}}, Nest{{12, []int{0}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := NewNest(c.shape, c.ops...)
			got := n.Collapse()
			require.Equal(t, c.want, got)
			require.Equal(t, n.Len(), got.Len())
		})
	}
}

func TestSortFor(t *testing.T) {
	n := NewNest([]int{3, 4}, []int{1, 3}, []int{4, 1}) // operand 0 is transposed
	n.SortFor(0)
	require.Equal(t, Nest{{4, []int{3, 1}}, {3, []int{1, 4}}}, n)
}

func TestAccess(t *testing.T) {
	require.Equal(t, "rus", AccessOf(0).String()+AccessOf(1).String()+AccessOf(-1).String())
}

func TestChunks(t *testing.T) {
	for _, c := range [][5]int{{10, 4, 1, 3, 4}, {100, 64, 8, 2, 56}, {5, 100, 8, 1, 8}, {0, 4, 1, 0, 0}} {
		n, size := Chunks(c[0], c[1], c[2])
		require.Equal(t, [2]int{c[3], c[4]}, [2]int{n, size}, "%v", c)
		require.GreaterOrEqual(t, n*size, c[0])
	}
}
