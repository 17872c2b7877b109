"""Recurrent networks."""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


class _CellBase(Module):
    def __init__(self, gates, input_size, hidden_size, bias, dtype):
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0.0
        self.weight_ih = _uniform(bound, (gates * hidden_size, input_size), dtype)
        self.weight_hh = _uniform(bound, (gates * hidden_size, hidden_size), dtype)
        self.bias_ih = _uniform(bound, (gates * hidden_size,), dtype) if bias else None
        self.bias_hh = _uniform(bound, (gates * hidden_size,), dtype) if bias else None

    def check(self, input: Tensor):
        if input.dim() != 1 and input.dim() != 2:
            raise RuntimeError('expected input to be 1-D or 2-D but received {}-D tensor'.format(input.dim()))
        if input.size(-1) != self.input_size:
            raise RuntimeError('input has inconsistent input_size: got {}, expected {}'.format(input.size(-1), self.input_size))

    def start(self, input: Tensor) -> Tensor:
        """The state before the first step: zeros."""
        return torch.zeros(input.shape[:-1] + [self.hidden_size], dtype=input.dtype)


class LSTMCell(_CellBase):
    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(4, input_size, hidden_size, bias, dtype)

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
        self.check(input)
        if hx is None:
            zeros = self.start(input)
            hx = (zeros, zeros)
        h, c = hx
        gates = F.linear(input, self.weight_ih, self.bias_ih) + F.linear(h, self.weight_hh, self.bias_hh)
        i, f, g, o = gates.chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class GRUCell(_CellBase):
    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(3, input_size, hidden_size, bias, dtype)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        self.check(input)
        if hx is None:
            hx = self.start(input)
        xr, xz, xn = F.linear(input, self.weight_ih, self.bias_ih).chunk(3, -1)
        hr, hz, hn = F.linear(hx, self.weight_hh, self.bias_hh).chunk(3, -1)
        r = torch.sigmoid(xr + hr)
        z = torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        return (hx - n) * z + n


class RNNCell(_CellBase):
    def __init__(self, input_size, hidden_size, bias=True, nonlinearity='tanh', device=None, dtype=None):
        super().__init__(1, input_size, hidden_size, bias, dtype)
        if nonlinearity not in ('tanh', 'relu'):
            raise ValueError('Unknown nonlinearity: ' + nonlinearity)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        self.check(input)
        if hx is None:
            hx = self.start(input)
        y = F.linear(input, self.weight_ih, self.bias_ih) + F.linear(hx, self.weight_hh, self.bias_hh)
        return torch.tanh(y) if self.nonlinearity == 'tanh' else torch.relu(y)


class _Recurrent(Module):
    """Layers of recurrences over [length, batch, features], in one direction or two. self.layers says for each layer whether it is the last and,
    for each direction, its place among the states, whether it runs backwards, and the names of its parameters."""

    def __init__(self, gates, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, dtype):
        if dropout < 0 or dropout > 1:
            raise ValueError('dropout should be a number in range [0, 1] representing the probability of an element being zeroed')
        if proj_size < 0 or proj_size >= hidden_size:
            raise ValueError('proj_size should be a positive integer or zero to disable projections, and smaller than hidden_size')
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self.out_size = proj_size if proj_size > 0 else hidden_size
        directions = 2 if bidirectional else 1
        self.states = num_layers * directions
        bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0.0
        self.layers = []
        for layer in range(num_layers):
            runs = []
            for direction in range(directions):
                suffix = '_l' + str(layer) + ('_reverse' if direction == 1 else '')
                inputs = input_size if layer == 0 else self.out_size * directions
                setattr(self, 'weight_ih' + suffix, _uniform(bound, (gates * hidden_size, inputs), dtype))
                setattr(self, 'weight_hh' + suffix, _uniform(bound, (gates * hidden_size, self.out_size), dtype))
                setattr(self, 'bias_ih' + suffix, _uniform(bound, (gates * hidden_size,), dtype) if bias else None)
                setattr(self, 'bias_hh' + suffix, _uniform(bound, (gates * hidden_size,), dtype) if bias else None)
                setattr(self, 'weight_hr' + suffix, _uniform(bound, (proj_size, hidden_size), dtype) if proj_size > 0 else None)
                runs.append((layer * directions + direction, direction == 1, 'weight_ih' + suffix, 'weight_hh' + suffix, 'bias_ih' + suffix, 'bias_hh' + suffix, 'weight_hr' + suffix))
            self.layers.append((layer + 1 == num_layers, runs))

    def sequence(self, input: Tensor) -> Tensor:
        """The input as [length, batch, features]."""
        if input.dim() != 2 and input.dim() != 3:
            raise RuntimeError('expected input to be 2-D or 3-D but received {}-D tensor'.format(input.dim()))
        if input.size(-1) != self.input_size:
            raise RuntimeError('input.size(-1) must be equal to input_size. Expected {}, got {}'.format(self.input_size, input.size(-1)))
        if input.dim() == 2:
            return input.unsqueeze(1)
        return input.transpose(0, 1) if self.batch_first else input

    def unsequence(self, y: Tensor, input: Tensor) -> Tensor:
        """The output in the input's form."""
        if input.dim() == 2:
            return y.squeeze(1)
        return y.transpose(0, 1) if self.batch_first else y

    def zeros(self, x: Tensor, size: int) -> Tensor:
        return torch.zeros(self.states, x.size(1), size, dtype=x.dtype)

    def state(self, h: Tensor, input: Tensor, x: Tensor, size: int) -> Tensor:
        """A given state as [layers * directions, batch, size]."""
        if input.dim() != h.dim():
            raise RuntimeError('For a batched input hx should be 3-D and for an unbatched one 2-D, got {}-D'.format(h.dim()))
        if input.dim() == 2:
            h = h.unsqueeze(1)
        if h.size(0) != self.states or h.size(1) != x.size(1) or h.size(2) != size:
            raise RuntimeError('Expected hidden size {}, got {}'.format([self.states, x.size(1), size], list(h.size())))
        return h

    def between(self, x: Tensor) -> Tensor:
        """What happens between two layers."""
        if self.training and self.dropout > 0.0:
            return F.dropout(x, self.dropout, True)
        return x

    def flatten_parameters(self) -> None:
        pass


class LSTM(_Recurrent):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__(4, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, dtype)

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        x = self.sequence(input)
        if hx is None:
            h0 = self.zeros(x, self.out_size)
            c0 = self.zeros(x, self.hidden_size)
        else:
            h0 = self.state(hx[0], input, x, self.out_size)
            c0 = self.state(hx[1], input, x, self.hidden_size)
        hs: List[Tensor] = []
        cs: List[Tensor] = []
        for last, runs in self.layers:
            outs: List[Tensor] = []
            for index, reverse, w_ih, w_hh, b_ih, b_hh, w_hr in runs:
                xs = F.linear(x, getattr(self, w_ih), getattr(self, b_ih))
                h = h0[index]
                c = c0[index]
                ys: List[Tensor] = []
                steps = x.size(0)
                for s in range(steps):
                    t = steps - 1 - s if reverse else s
                    i, f, g, o = (xs[t] + F.linear(h, getattr(self, w_hh), getattr(self, b_hh))).chunk(4, 1)
                    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                    h = torch.sigmoid(o) * torch.tanh(c)
                    if self.proj_size > 0:
                        h = F.linear(h, getattr(self, w_hr))
                    ys.append(h)
                if reverse:
                    ys.reverse()
                outs.append(torch.stack(ys))
                hs.append(h)
                cs.append(c)
            x = torch.cat(outs, 2) if self.bidirectional else outs[0]
            if not last:
                x = self.between(x)
        hn = torch.stack(hs)
        cn = torch.stack(cs)
        if input.dim() == 2:
            hn = hn.squeeze(1)
            cn = cn.squeeze(1)
        return self.unsequence(x, input), (hn, cn)


class _OneState(_Recurrent):
    """Recurrences whose only state is their output; step is theirs."""

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        x = self.sequence(input)
        if hx is None:
            h0 = self.zeros(x, self.hidden_size)
        else:
            h0 = self.state(hx, input, x, self.hidden_size)
        hs: List[Tensor] = []
        for last, runs in self.layers:
            outs: List[Tensor] = []
            for index, reverse, w_ih, w_hh, b_ih, b_hh, w_hr in runs:
                xs = F.linear(x, getattr(self, w_ih), getattr(self, b_ih))
                h = h0[index]
                ys: List[Tensor] = []
                steps = x.size(0)
                for s in range(steps):
                    t = steps - 1 - s if reverse else s
                    h = self.step(xs[t], h, F.linear(h, getattr(self, w_hh), getattr(self, b_hh)))
                    ys.append(h)
                if reverse:
                    ys.reverse()
                outs.append(torch.stack(ys))
                hs.append(h)
            x = torch.cat(outs, 2) if self.bidirectional else outs[0]
            if not last:
                x = self.between(x)
        hn = torch.stack(hs)
        if input.dim() == 2:
            hn = hn.squeeze(1)
        return self.unsequence(x, input), hn


class GRU(_OneState):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None):
        super().__init__(3, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, dtype)

    def step(self, x: Tensor, h: Tensor, y: Tensor) -> Tensor:
        xr, xz, xn = x.chunk(3, 1)
        hr, hz, hn = y.chunk(3, 1)
        r = torch.sigmoid(xr + hr)
        z = torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        return (h - n) * z + n


class RNN(_OneState):
    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None):
        super().__init__(1, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, dtype)
        if nonlinearity not in ('tanh', 'relu'):
            raise ValueError('Unknown nonlinearity: ' + nonlinearity)
        self.nonlinearity = nonlinearity

    def step(self, x: Tensor, h: Tensor, y: Tensor) -> Tensor:
        return torch.tanh(x + y) if self.nonlinearity == 'tanh' else torch.relu(x + y)
