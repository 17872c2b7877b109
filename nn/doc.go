// Package nn holds neural-network layers for the eager API and for traces, and what walks over models: parameters, state dicts, modes.
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
//
// # Layers
//
// Every layer of torch.nn is there: New makes it by its class, NewConv2d and the like the frequent ones; Script makes a layer of a module class of a script. All are of type
// Layer. A layer's class is a piece of script in package layers, which scripts use as torch.nn.X. Its constructor says the parameters and how they start; its
// forward method is lowered once per construction and mode to a generic IR function, which package internal/eager runs on tensors call by call. So a layer trains,
// is differentiated and traced like the calls that it consists of, and there is one definition of each layer.
package nn
