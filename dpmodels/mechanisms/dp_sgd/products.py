"""Matrix products that are the same bits wherever in its block a record lies, forward and backward.

    x W' with x rounded row by row and W as a whole, each to whole numbers times a power of two,
    multiplied in float64 and rounded once to float32

Position: a row is rounded relative to its own largest magnitude, so what becomes of it depends on nobody else. Say that
    rows have a bits, weights w bits, and sums K terms, where a + w + log2 K <= 53. Then every partial sum is a whole
    number below 2**53 times the same power of two. Float64 holds all of these, so no addition rounds, and the result is
    the exact sum in whatever order, with whatever kernel and on whatever device a library takes it.
Error: rows keep 22 bits where K is at most 512, and half of what there is where it is larger; weights keep the rest.
    That is as if the weights and activations of float32 had been stored with two or three bits less.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from dpmodels.errors import Unsuitable

_FLOAT64_BITS = 53
_MOST_BITS = 22
"""A float32 c = 1.5 2**23 r has the spacing r of its binade about it: x + c - c is x to whole r, for |x| <= 2**22 r."""
_OTHERS = (
    "mm bmm einsum addmm addbmm baddbmm chain_matmul tensordot inner dot vdot mv addmv bilinear cdist"
    " conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention"
)
_PLACES = (torch, Tensor, functional)
_MATRIX_PRODUCTS = {torch.matmul, Tensor.matmul, Tensor.__matmul__}
_PRODUCTS = {getattr(namespace, name) for namespace in _PLACES for name in _OTHERS.split() if hasattr(namespace, name)}
_PRODUCTS |= {functional.linear, *_MATRIX_PRODUCTS}


Uses = list[list[Tensor]]
_WITHIN = ContextVar("_WITHIN", default=False)


class ExactProducts(TorchFunctionMode):
    """Within it, linear layers and products with a matrix of weights are exact; other products are refused.

    With ``alone`` False linear layers are exact, and all other products are a library's own.

    Attributes:
        uses: by the identity of a weight to keep them for, a list for each use of its layer, or for each slope taken
            through one: what went in, then what came back, in float64. What nothing came back for has no second part.
    """

    def __init__(self, weights: Iterable[Tensor], *, alone: bool = True) -> None:
        super().__init__()
        self.alone = alone
        self.uses: dict[int, Uses] = {id(weight): [] for weight in weights}
        self._came_back: list[tuple[Tensor, int, Tensor]] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Take a function of torch."""
        if func not in _PRODUCTS:
            return func(*args, **(kwargs or {}))
        if func is functional.linear:
            return self._linear(*args, **(kwargs or {}))
        if not self.alone:
            return func(*args, **(kwargs or {}))
        if func in _MATRIX_PRODUCTS and args[1].dim() == 2:
            return self._linear(args[0], args[1].mT)
        raise Unsuitable(f"the objective calls {func.__name__}; it may multiply rows by matrices of weights alone")

    def _linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return _apply(input, weight, bias, self.uses.get(id(weight)), self._came_back)

    def __enter__(self) -> "ExactProducts":
        """Begin, and let ``slope`` know of it."""
        self._token = _WITHIN.set(True)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        """End."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        _WITHIN.reset(self._token)


def slope(score: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Return the gradient of the score of each row at that row, for a loss to use; it can be differentiated again.

    An objective that takes slopes by this function is differentiated in every way that its layers allow.
    """
    if not _WITHIN.get():
        return cast(Tensor, torch.func.grad(lambda variable_rows: score(variable_rows).sum())(rows))
    with torch.enable_grad():
        at = rows.detach().requires_grad_()
        return torch.autograd.grad(score(at).sum(), at, create_graph=True)[0]


class _Product(torch.autograd.Function):
    """``x W' + b`` of public weights, which get no gradient here. Shapes: [..., in], [out, in], [out] -> [..., out]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, uses: Uses | None, came_back: Any) -> Tensor:
        ctx.bits, ctx.uses, ctx.use, ctx.came_back = _bits(weight), uses, [], came_back
        ctx.trained, ctx.weight = weight, _rounded_weight(weight, ctx.bits)
        rows = x.new_ones((*x.shape[:-1], x.shape[-1] + (bias is not None)), dtype=torch.float64)
        if uses is not None:
            ctx.use.append(rows)
            uses.append(ctx.use)
        ctx.bias = bias is not None
        rows[..., : x.shape[-1]] = _rounded(x, ctx.bits)
        out = _multiplied(rows[..., : x.shape[-1]], ctx.weight.mT)
        return out if bias is None else out.add_(bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, None, None]:
        if torch.is_grad_enabled():  # a slope is taken, and what comes back is not yet a record's gradient
            return _slope(gradients[0], ctx.trained, ctx.weight, ctx.bits, ctx.uses, ctx.bias), None, None, None, None
        if _WITHIN.get():
            raise Unsuitable("the objective takes a gradient by other means than ``slope``; use that function")
        rows = _rounded_once(gradients[0], ctx.bits, ctx.came_back)
        if ctx.uses is not None:
            ctx.use.append(rows)
            ctx.came_back.clear()  # whoever keeps rows will round them in place
        return _multiplied(rows, ctx.weight) if ctx.needs_input_grad[0] else None, None, None, None, None


class _Slope(torch.autograd.Function):
    """The way back through a product, ``epsilon W``, which can be differentiated. Shapes: [..., out] -> [..., in]."""

    @staticmethod
    def forward(ctx: Any, back: Tensor, trained: Tensor, weight: Tensor, bits: int, uses: Any, bias: bool) -> Tensor:
        rows = _rounded(back, bits).to(torch.float64, memory_format=torch.contiguous_format)
        ctx.bits, ctx.use, ctx.weight, ctx.bias = bits, [rows], weight, bias
        if uses is not None:
            uses.append(ctx.use)
        return _multiplied(rows, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, None, None, None]:
        (v,) = gradients
        rows = v.new_zeros((*v.shape[:-1], v.shape[-1] + ctx.bias), dtype=torch.float64)
        rows[..., : v.shape[-1]] = _rounded(v, ctx.bits)
        back = _multiplied(rows[..., : v.shape[-1]], ctx.weight.mT) if ctx.needs_input_grad[0] else None
        ctx.use.insert(0, rows)
        return back, None, None, None, None, None


_slope = cast(Callable[..., Tensor], _Slope.apply)
_apply = cast(Callable[..., Tensor], _Product.apply)


def _multiplied(rows: Tensor, weight: Tensor) -> Tensor:
    """Multiply rounded rows by [in, out] and round to float32."""
    flat = rows.view(-1, rows.shape[-1])
    narrow = weight.shape[1] <= weight.shape[0]  # the same numbers; libraries are faster with the longer side outside
    products = (weight.mT @ flat.mT).mT if narrow else flat @ weight
    return products.to(torch.float32, memory_format=torch.contiguous_format).view(*rows.shape[:-1], weight.shape[1])


def _rounded_once(gradient: Tensor, bits: int, last: list[tuple[Tensor, int, Tensor]]) -> Tensor:
    """Round what came back to float64, or return it where it was the last to be: a sum of products hands on one."""
    if not (last and last[0][0] is gradient and last[0][1] == bits):
        last[:] = [(gradient, bits, _rounded(gradient, bits).to(torch.float64, memory_format=torch.contiguous_format))]
    return last[0][2]


def _terms(weight: Tensor) -> int:
    """Return the bits that count the terms of a sum over inputs, forward, or over outputs, backward."""
    return math.ceil(math.log2(max(weight.shape)))


def _bits(weight: Tensor) -> int:
    """Return the bits of a row; the dot product of two such rows is exact as well."""
    return min(_MOST_BITS, (_FLOAT64_BITS - _terms(weight)) // 2)


def _rounded_weight(weight: Tensor, bits: int) -> Tensor:
    """Round a matrix as if it were one row, to what sums of products with rows of ``bits`` bits leave it."""
    left = min(_MOST_BITS, _FLOAT64_BITS - _terms(weight) - bits)
    return _rounded(weight.detach().reshape(1, -1), left).view_as(weight).double()


def _rounded(rows: Tensor, bits: int) -> Tensor:
    """Round each row to whole numbers of at most ``bits`` bits, relative to its own largest magnitude.

    A row with anything that is not finite, or above 2**126, becomes no numbers at all. Shapes: [..., n].
    """
    shift = _binade(rows.abs().amax(dim=-1, keepdim=True)).mul_(6.0 * 2 ** (_MOST_BITS - bits))
    return (rows + shift).sub_(shift)


def _binade(size: Tensor) -> Tensor:
    """Return the largest power of two that is at most ``size``, by clearing its mantissa."""
    return (size.view(torch.int32) & 0x7F800000).view(torch.float32)
