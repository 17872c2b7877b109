package data

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Mean and standard deviation of the MNIST training pixels after scaling to 0…1.
const (
	MNISTMean = 0.1311
	MNISTStd  = 0.3085
)

// MNIST reads handwritten digits from a .npz file that holds images uint8 [N,28,28] and labels uint8 [N]. The dataset's fields are
// "images" f32 [N,1,28,28], scaled to 0…1 and normalised by MNISTMean and MNISTStd, and "labels" i64 [N], 0 to 9.
func MNIST(path string) (*Dataset, error) {
	d, err := ReadNpz(path, "images", "labels")
	if err != nil {
		return nil, err
	}
	images, labels := d.Field("images"), d.Field("labels")
	if s := images.Shape; images.DType != dtype.U8 || len(s) != 3 || s[1] != 28 || s[2] != 28 {
		return nil, fmt.Errorf("%s: images are %s, not tensor<u8[N,28,28]>", path, images.Type())
	}
	if labels.DType != dtype.U8 || len(labels.Shape) != 1 {
		return nil, fmt.Errorf("%s: labels are %s, not tensor<u8[N]>", path, labels.Type())
	}
	pixels := ir.NewArray(dtype.F32, d.Len(), 1, 28, 28)
	for i, p := range images.Bytes() {
		v := float32((float64(p)/255 - MNISTMean) / MNISTStd)
		binary.LittleEndian.PutUint32(pixels.Data[4*i:], math.Float32bits(v))
	}
	classes := ir.NewArray(dtype.I64, d.Len())
	for i, c := range labels.Bytes() {
		if c > 9 {
			return nil, fmt.Errorf("%s: label %d of sample %d is not a digit", path, c, i)
		}
		classes.SetInt(i, int64(c))
	}
	return New(Field{"images", pixels}, Field{"labels", classes})
}
