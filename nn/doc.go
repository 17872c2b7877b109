// Package nn holds neural-network layers: their parameters, initialisations and forward functions, for the eager API and for traces.
//
// A module is any Go type with a Forward method. Its parameters, buffers and submodules are found in its exported struct fields, by reflection: a *tensor.Tensor field
// with the tag `nn:"weight"` is a parameter of that name, with `nn:"running_mean,buffer"` a buffer; fields that are modules, slices of modules, or
// Sequential are submodules. Names are PyTorch's: the field name in lower snake case, indices for slices, joined by dots ("conv1.weight", "layers.0.bias"), so
// that state dicts are exchanged with PyTorch as safetensors files.
//
//	type LeNet struct {
//		Conv1, Conv2 *nn.Conv2d
//		FC           *nn.Linear
//	}
//
//	func (m *LeNet) Forward(x *tensor.Tensor) *tensor.Tensor { … }
package nn
