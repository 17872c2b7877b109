package pickle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDecode: pickles as Python writes them, by protocol.
func TestDecode(t *testing.T) {
	for in, want := range map[string]any{
		"\x80\x02N.":                              nil,
		"\x80\x02K\x07.":                          int64(7),
		"\x80\x02J\xff\xff\xff\xff.":              int64(-1),
		"\x80\x02\x8a\x05\x00\x00\x00\x00\x01.":   int64(1 << 32),
		"\x80\x02\x8a\x01\x80.":                   int64(-128),
		"\x80\x02G?\xe0\x00\x00\x00\x00\x00\x00.": 0.5,
		"\x80\x02\x88\x89\x86q\x00.":              Tuple{true, false},
		"\x80\x02]q\x00(K\x01K\x02e.":             &List{Items: []any{int64(1), int64(2)}},
		"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94h\x01s.": &Dict{Keys: []any{"a"}, Values: []any{"a"}},
		"\x80\x02ccollections\nOrderedDict\n)R.":                                &Dict{},
		"\x80\x02cm\nC\n)\x81}b.":                                               &Object{Func: Global{"m", "C"}, Args: Tuple{}, State: &Dict{}},
		"\x80\x02X\x01\x00\x00\x00kQ.":                                          Persistent{"k"},
	} {
		got, err := Decode([]byte(in))
		require.NoError(t, err, "%q", in)
		require.Equal(t, want, got, "%q", in)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x80\x02}q\x00(X\x01\x00\x00\x00aK\x01u."))
	f.Add([]byte("\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94h\x01s."))
	f.Add([]byte("\x80\x02cm\nC\n)\x81}b."))
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = Decode(data) })
}
