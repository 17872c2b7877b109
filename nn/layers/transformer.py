"""Attention and transformers."""
import copy
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


class MultiheadAttention(Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, batch_first=False, device=None, dtype=None):
        if embed_dim % num_heads != 0:
            raise ValueError('embed_dim must be divisible by num_heads')
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = float(dropout)
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        keys = embed_dim if kdim is None else kdim
        values = embed_dim if vdim is None else vdim
        self.separate = keys != embed_dim or values != embed_dim
        self.kdim = keys
        self.vdim = values
        bound = math.sqrt(6.0 / (4 * embed_dim))
        self.q_proj_weight = None
        self.k_proj_weight = None
        self.v_proj_weight = None
        self.in_proj_weight = None
        if self.separate:
            self.q_proj_weight = _uniform(math.sqrt(6.0 / (embed_dim + embed_dim)), (embed_dim, embed_dim), dtype)
            self.k_proj_weight = _uniform(math.sqrt(6.0 / (embed_dim + keys)), (embed_dim, keys), dtype)
            self.v_proj_weight = _uniform(math.sqrt(6.0 / (embed_dim + values)), (embed_dim, values), dtype)
        else:
            self.in_proj_weight = _uniform(bound, (3 * embed_dim, embed_dim), dtype)
        self.in_proj_bias = _full(0.0, (3 * embed_dim,), dtype) if bias else None
        self.bias_k = _normal(math.sqrt(2.0 / (2 * embed_dim)), (1, 1, embed_dim), dtype) if add_bias_kv else None
        self.bias_v = _normal(math.sqrt(2.0 / (2 * embed_dim)), (1, 1, embed_dim), dtype) if add_bias_kv else None
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, dtype=dtype)
        if bias:
            self.out_proj.bias = _full(0.0, (embed_dim,), dtype)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
                attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True) -> Tuple[Tensor, Optional[Tensor]]:
        if self.batch_first:
            q = query.transpose(0, 1) if query.dim() == 3 else query
            k = key.transpose(0, 1) if key.dim() == 3 else key
            v = value.transpose(0, 1) if value.dim() == 3 else value
        else:
            q = query
            k = key
            v = value
        y, w = F.multi_head_attention_forward(
            q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn,
            self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask, self.separate,
            self.q_proj_weight, self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights)
        if self.batch_first:
            y = y.transpose(0, 1) if query.dim() == 3 else y
        return y, w


def _activation(activation):
    """The activation as a module; 'relu', 'gelu', F.relu, F.gelu, a module or a function."""
    if isinstance(activation, str):
        if activation == 'relu':
            return F.relu
        if activation == 'gelu':
            return F.gelu
        raise RuntimeError('activation should be relu/gelu, not ' + activation)
    return activation


def _clones(module, n):
    return torch.nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


class TransformerEncoderLayer(Module):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-5, batch_first=False, norm_first=False, device=None, dtype=None):
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def attend(self, x: Tensor, mask: Optional[Tensor], padding: Optional[Tensor]) -> Tensor:
        y, w = self.self_attn(x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask)
        return self.dropout1(y)

    def feed(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def forward(self, src: Tensor, src_mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None) -> Tensor:
        x = src
        if self.norm_first:
            x = x + self.attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self.feed(x))


class TransformerDecoderLayer(Module):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-5, batch_first=False, norm_first=False, device=None, dtype=None):
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, dtype=dtype)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def attend(self, x: Tensor, mask: Optional[Tensor], padding: Optional[Tensor]) -> Tensor:
        y, w = self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)
        return self.dropout1(y)

    def recall(self, x: Tensor, memory: Tensor, mask: Optional[Tensor], padding: Optional[Tensor]) -> Tensor:
        y, w = self.multihead_attn(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False)
        return self.dropout2(y)

    def feed(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor] = None, memory_mask: Optional[Tensor] = None,
                tgt_key_padding_mask: Optional[Tensor] = None, memory_key_padding_mask: Optional[Tensor] = None) -> Tensor:
        x = tgt
        if self.norm_first:
            x = x + self.attend(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self.recall(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self.feed(self.norm3(x))
        x = self.norm1(x + self.attend(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self.recall(x, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(x + self.feed(x))


class TransformerEncoder(Module):
    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src: Tensor, mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None) -> Tensor:
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        if self.norm is not None:
            output = self.norm(output)
        return output


class TransformerDecoder(Module):
    def __init__(self, decoder_layer, num_layers, norm=None):
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor] = None, memory_mask: Optional[Tensor] = None,
                tgt_key_padding_mask: Optional[Tensor] = None, memory_key_padding_mask: Optional[Tensor] = None) -> Tensor:
        output = tgt
        for layer in self.layers:
            output = layer(output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                           memory_key_padding_mask=memory_key_padding_mask)
        if self.norm is not None:
            output = self.norm(output)
        return output


class Transformer(Module):
    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation='relu',
                 custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False, device=None, dtype=None):
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype=dtype)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model, eps=layer_norm_eps, dtype=dtype))
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            layer = TransformerDecoderLayer(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype=dtype)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, LayerNorm(d_model, eps=layer_norm_eps, dtype=dtype))
        for p in self.parameters():
            if p.dim() > 1:
                torch.nn.init.xavier_uniform_(p)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Optional[int] = None) -> Tensor:
        return torch.triu(torch.full((sz, sz), float('-inf')), diagonal=1)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Optional[Tensor] = None, tgt_mask: Optional[Tensor] = None, memory_mask: Optional[Tensor] = None,
                src_key_padding_mask: Optional[Tensor] = None, tgt_key_padding_mask: Optional[Tensor] = None, memory_key_padding_mask: Optional[Tensor] = None) -> Tensor:
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError('the feature number of src and tgt must be equal to d_model')
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask)
