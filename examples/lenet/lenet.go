// Package lenet is LeNet-5 with ReLU and max pooling, as a Go model that trains eagerly and can be traced:
//
//	gtc trace ./examples/lenet.New --input x=f32[1,1,28,28] -o lenet.gtc
package lenet

import (
	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/tensor"
)

// LeNet maps images [N,1,28,28] to class scores [N,10].
type LeNet struct {
	Conv1, Conv2  *nn.Conv2d
	FC1, FC2, FC3 *nn.Linear
	pool          *nn.MaxPool2d
}

// New makes a LeNet with random weights from the default generator.
func New() *LeNet {
	return &LeNet{
		Conv1: nn.NewConv2d(1, 6, 5, nn.Kw{"padding": 2}),
		Conv2: nn.NewConv2d(6, 16, 5),
		FC1:   nn.NewLinear(16*5*5, 120),
		FC2:   nn.NewLinear(120, 84),
		FC3:   nn.NewLinear(84, 10),
		pool:  nn.NewMaxPool2d(2),
	}
}

// Forward gives the scores.
func (m *LeNet) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = m.pool.Forward(m.Conv1.Forward(x).Relu())
	x = m.pool.Forward(m.Conv2.Forward(x).Relu())
	x = x.Flatten(1, -1)
	x = m.FC1.Forward(x).Relu()
	x = m.FC2.Forward(x).Relu()
	return m.FC3.Forward(x)
}
