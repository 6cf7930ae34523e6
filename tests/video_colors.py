"""The colors of videos in exact arithmetic, from the planes that PyAV decodes."""

import io

import numpy as np

SHIFTS = {"420": (1, 1), "422": (1, 0), "444": (0, 0), "440": (0, 1), "411": (2, 0), "410": (2, 2)}
WEIGHTS = {1: (0.2126, 0.0722), 9: (0.2627, 0.0593)}


def stored(file):
    """All frames, decoded one after the other: planes, depth, shifts, color space, full range."""
    import av

    with av.open(io.BytesIO(file)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        for frame in container.decode(stream):
            name = frame.format.name
            depth = frame.format.components[0].bits
            kind = np.dtype("<u2" if depth > 8 else "u1")
            planes = []
            for plane in frame.planes:
                rows = np.frombuffer(plane, kind).reshape(plane.height, -1)
                planes.append(rows[:, : plane.width])
            shifts = (
                (0, 0) if "gray" in name else next(s for key, s in SHIFTS.items() if key in name)
            )
            tagged = int(frame.color_range) == 2
            full = tagged or "yuvj" in name or ("gray" in name and int(frame.color_range) == 0)
            yield planes, depth, shifts, int(frame.colorspace), full


def enlarged(plane, shifts, height, width, *, drifts=False):
    """Chroma for each pixel: bilinear, centered, edges repeated.

    With `drifts` as DALI has it: an odd extent is taken for that of the chroma, doubled, so that
    places drift, by up to half a pixel at the end.
    """
    plane = plane.astype(np.float64)
    for axis, (shift, extent) in enumerate(zip(shifts[::-1], (height, width), strict=True)):
        scale = plane.shape[axis] / extent if drifts else 1 / (1 << shift)
        place = (np.arange(extent) + 0.5) * scale - 0.5
        low = np.floor(place).astype(int)
        part = place - low
        last = plane.shape[axis] - 1
        first, second = (plane.take(np.clip(at, 0, last), axis) for at in (low, low + 1))
        part = part[:, None] if axis == 0 else part
        plane = first * (1 - part) + second * part
    return plane


def exact(planes, depth, shifts, space, full, *, drifts=False, clipped=True):
    """RGB in real numbers; `drifts` as in `enlarged`."""
    height, width = planes[0].shape
    unit = 2.0 ** (depth - 8)
    luma = planes[0].astype(np.float64)
    if full:
        y, span = luma * 255 / (256 * unit - 1), (256 * unit - 1) / 255
    else:
        y, span = (luma - 16 * unit) * 255 / (219 * unit), 224 * unit / 255
    if len(planes) == 1:
        return np.clip(np.stack([y] * 3, -1), 0, 255)
    u, v = (
        (enlarged(plane, shifts, height, width, drifts=drifts) - 128 * unit) / span
        for plane in planes[1:3]
    )
    red, blue = WEIGHTS.get(space, (0.299, 0.114))
    r, b = y + 2 * (1 - red) * v, y + 2 * (1 - blue) * u
    g = (y - red * r - blue * b) / (1 - red - blue)
    made = np.stack([r, g, b], -1)
    return np.clip(made, 0, 255) if clipped else made
