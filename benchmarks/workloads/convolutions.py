"""Convolutions, pools and images."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage, signal

from workloads.base import Workload, normals, uniforms

LAYOUT = ("NHWC", "HWIO", "NHWC")


def _to_channels_first(x: Any) -> Any:
    return x.permute(0, 3, 1, 2)


def convolution(
    name: str,
    images: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: int = 1,
    groups: int = 1,
    cast: str | None = None,
) -> Workload:
    """A convolution of images with channels last; PyTorch's is of a view of the same memory."""

    def function(dt: Any, x: Any, k: Any) -> Any:
        return dt.lax.conv_general_dilated(
            x,
            k,
            (stride, stride),
            [(kernel[0] // 2, kernel[0] // 2)] * 2,
            dimension_numbers=LAYOUT,
            feature_group_count=groups,
        )

    def torch_s(torch: Any, x: Any, k: Any) -> Any:
        return torch.nn.functional.conv2d(
            _to_channels_first(x),
            k.permute(3, 2, 0, 1),
            stride=stride,
            padding=kernel[0] // 2,
            groups=groups,
        ).permute(0, 2, 3, 1)

    return Workload(
        name,
        lambda: (normals(*images), normals(*kernel, seed=1)),
        function,
        None,
        torch_s,
        cast=cast,
        tolerance=1e-4 if cast is None else 2e-2,
    )


IMAGES = (16, 64, 64, 32)


def _gradient_of_convolution(dt: Any, x: Any, k: Any) -> Any:
    def loss(x: Any, k: Any) -> Any:
        y = dt.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=LAYOUT)
        return dt.numpy.sum(y * y)

    return dt.grad(loss, (0, 1))(x, k)


def _torch_gradient_of_convolution(torch: Any, x: Any, k: Any) -> Any:
    x, k = x.requires_grad_(), k.requires_grad_()
    y = torch.nn.functional.conv2d(_to_channels_first(x), k.permute(3, 2, 0, 1), padding=1)
    return torch.autograd.grad((y * y).sum(), (x, k))


def _max_pool(dt: Any, x: Any, size: int = 2, stride: int = 2) -> Any:
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    return dt.lax.reduce_window(x, -np.inf, dt.lax.max, window, strides, "VALID")


def _torch_max_pool(torch: Any, x: Any, size: int = 2, stride: int = 2) -> Any:
    pooled = torch.nn.functional.max_pool2d(_to_channels_first(x), size, stride)
    return pooled.permute(0, 2, 3, 1)


def _torch_pool_gradient(torch: Any, x: Any) -> Any:
    x = x.requires_grad_()
    return torch.autograd.grad(_torch_max_pool(torch, x).sum(), x)[0]


def _transposed(dt: Any, x: Any, k: Any) -> Any:
    return dt.lax.conv_transpose(x, k, (2, 2), "VALID", dimension_numbers=LAYOUT)


def _torch_transposed(torch: Any, x: Any, k: Any) -> Any:
    flipped = torch.flip(k, (0, 1)).permute(2, 3, 0, 1)
    y = torch.nn.functional.conv_transpose2d(_to_channels_first(x), flipped, stride=2)
    return y.permute(0, 2, 3, 1)


def _resize(shape: tuple[int, ...], size: int, antialias: bool) -> Workload:
    def torch_s(torch: Any, x: Any) -> Any:
        resized = torch.nn.functional.interpolate(
            _to_channels_first(x), (size, size), mode="bilinear", antialias=antialias
        )
        return resized.permute(0, 2, 3, 1)

    return Workload(
        f"resize {shape[1]}x{shape[2]} to {size}x{size}, bilinear",
        lambda: (uniforms(*shape),),
        lambda dt, x: dt.image.resize(
            x, (shape[0], size, size, shape[3]), "bilinear", antialias=antialias
        ),
        None,
        torch_s,
        tolerance=1e-3,
    )


WORKLOADS = [
    convolution("convolution 3x3, 16x64x64x32", IMAGES, (3, 3, 32, 32)),
    convolution("convolution 5x5, 16x64x64x32", IMAGES, (5, 5, 32, 32)),
    convolution("convolution 1x1, 16x64x64x32", IMAGES, (1, 1, 32, 32)),
    convolution("convolution 3x3 stride 2, 16x64x64x32", IMAGES, (3, 3, 32, 32), stride=2),
    convolution("convolution 7x7 stride 2, 4x224x224x3", (4, 224, 224, 3), (7, 7, 3, 64), stride=2),
    convolution("convolution 3x3, 8x14x14x256", (8, 14, 14, 256), (3, 3, 256, 256)),
    convolution("convolution 3x3 depthwise, 16x64x64x32", IMAGES, (3, 3, 1, 32), groups=32),
    convolution("convolution 3x3, 1x28x28x1", (1, 28, 28, 1), (3, 3, 1, 8)),
    convolution("convolution 3x3 bf16, 16x64x64x32", IMAGES, (3, 3, 32, 32), cast="bfloat16"),
    Workload(
        "convolution 3x3 transposed, 8x32x32x32",
        lambda: (normals(8, 32, 32, 32), normals(3, 3, 32, 32, seed=1)),
        _transposed,
        None,
        _torch_transposed,
    ),
    Workload(
        "gradient of convolution 3x3, 16x64x64x32",
        lambda: (normals(*IMAGES), normals(3, 3, 32, 32, seed=1)),
        _gradient_of_convolution,
        None,
        _torch_gradient_of_convolution,
        tolerance=1e-3,
    ),
    Workload(
        "convolution 3x3x3, 2x16x32x32x16",
        lambda: (normals(2, 16, 16, 32, 32), normals(16, 16, 3, 3, 3, seed=1)),
        lambda dt, x, k: dt.lax.conv_general_dilated(x, k, (1, 1, 1), "SAME"),
        None,
        lambda torch, x, k: torch.nn.functional.conv3d(x, k, padding=1),
    ),
    Workload(
        "convolution 1e6 with 5",
        lambda: (normals(10**6), normals(5, seed=1)),
        lambda dt, x, k: dt.numpy.convolve(x, k, "same"),
        lambda x, k: np.convolve(x, k, "same"),
        lambda torch, x, k: torch.nn.functional.conv1d(
            x[None, None], torch.flip(k, (0,))[None, None], padding=2
        )[0, 0],
    ),
    Workload(
        "convolution 1e5 with 1000",
        lambda: (normals(100_000), normals(1000, seed=1)),
        lambda dt, x, k: dt.numpy.convolve(x, k, "valid"),
        lambda x, k: signal.fftconvolve(x, k, "valid"),
        lambda torch, x, k: torch.nn.functional.conv1d(
            x[None, None], torch.flip(k, (0,))[None, None]
        )[0, 0],
    ),
    Workload(
        "convolution 3 of 8x1000x64, sequences",
        lambda: (normals(8, 64, 1000), normals(64, 64, 3, seed=1)),
        lambda dt, x, k: dt.lax.conv_general_dilated(x, k, (1,), "SAME"),
        None,
        lambda torch, x, k: torch.nn.functional.conv1d(x, k, padding=1),
    ),
    Workload(
        "convolve2d 1000x1000 with 5x5",
        lambda: (normals(1000, 1000), normals(5, 5, seed=1)),
        lambda dt, x, k: dt.scipy.signal.convolve2d(x, k, "same"),
        lambda x, k: ndimage.convolve(x, k, mode="constant"),
        lambda torch, x, k: torch.nn.functional.conv2d(
            x[None, None], torch.flip(k, (0, 1))[None, None], padding=2
        )[0, 0],
    ),
    Workload(
        "max pool 2x2, 16x64x64x32", lambda: (normals(*IMAGES),), _max_pool, None, _torch_max_pool
    ),
    Workload(
        "max pool 3x3 stride 2, 16x64x64x32",
        lambda: (normals(*IMAGES),),
        lambda dt, x: _max_pool(dt, x, 3, 2),
        None,
        lambda torch, x: _torch_max_pool(torch, x, 3, 2),
    ),
    Workload(
        "mean pool 2x2, 16x64x64x32",
        lambda: (normals(*IMAGES),),
        lambda dt, x: (
            dt.lax.reduce_window(x, 0.0, dt.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        ),
        lambda x: x.reshape(16, 32, 2, 32, 2, 32).mean((2, 4)),
        lambda torch, x: torch.nn.functional.avg_pool2d(_to_channels_first(x), 2).permute(
            0, 2, 3, 1
        ),
    ),
    Workload(
        "gradient of max pool 2x2, 16x64x64x32",
        lambda: (normals(*IMAGES),),
        lambda dt, x: dt.grad(lambda y: dt.numpy.sum(_max_pool(dt, y)))(x),
        None,
        _torch_pool_gradient,
    ),
    _resize((8, 64, 64, 3), 224, antialias=False),
    _resize((8, 224, 224, 3), 64, antialias=True),
    Workload(
        "map_coordinates 500x500, linear",
        lambda: (
            uniforms(500, 500),
            np.stack([uniforms(500, 500, high=498.0, seed=i) for i in (1, 2)]),
        ),
        lambda dt, x, c: dt.scipy.ndimage.map_coordinates(x, list(c), order=1),
        lambda x, c: ndimage.map_coordinates(x, c, order=1),
        lambda torch, x, c: torch.nn.functional.grid_sample(
            x[None, None], torch.stack([c[1], c[0]], -1)[None] / 249.5 - 1, align_corners=True
        )[0, 0],
        tolerance=1e-3,
    ),
    Workload(
        "gray of 8x224x224x3",
        lambda: (uniforms(8, 224, 224, 3), np.asarray([0.299, 0.587, 0.114], np.float32)),
        lambda dt, x, w: x @ w,
        lambda x, w: x @ w,
        lambda torch, x, w: x @ w,
    ),
]
