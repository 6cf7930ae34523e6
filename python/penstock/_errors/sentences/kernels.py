"""Sentences for the problems that kernels report, by family (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

_WANTED = {
    "integer": "an integer",
    "number": "a number",
    "dtype": "an element type",
    "string": "a string",
    "integers": "integers",
    "numbers": "numbers",
    "layout": "letters of axes",
    "rng": "an RNG",
}


def _missing(wanted: str) -> str:
    return f"is missing: it needs {_WANTED[wanted]}"


def _kind(wanted: str, given: str) -> str:
    return f"needs {_WANTED[wanted]}, got {given}"


def _positional_window(problem: str) -> str:
    return "the anchor and the shape give " + problem.removeprefix("gives ")


def _different(rule: str, first: str, other: str) -> str:
    rules = {
        "shape": "all inputs must have one shape",
        "type": "all inputs must have one type and number of dimensions",
        "axis": "inputs may differ only along the joined axis",
    }
    return f"{rules[rule]}: {first} and {other}"


SENTENCES: dict[str, str | Callable[..., str]] = {
    "Argument.Missing": _missing,
    "Argument.Kind": _kind,
    "Argument.NotScalar": (
        "needs one number per sample, got the shape {shape}; a number for each sample is a batch, "
        "as random operators make with `batch_size`"
    ),
    "Argument.SameForAll": "can't differ from sample to sample",
    "Argument.NotRandom": "can't be an RNG",
    "Argument.BySample": (
        "must give one draw for the whole batch here, which an RNG by sample can't; pass another "
        "RNG, or draw for each sample where the operator can (`per_sample=True`)"
    ),
    "Argument.NotData": "can't be data",
    "Argument.Memory": "has too many numbers for the memory that is left",
    "Argument.LongLayout": 'has at most {most} ASCII letters, got "{given}"',
    "Argument.OneOf": "must be one of {choices}, got {given}",
    "Argument.Together": "can't be given together with `{other}`",
    "Argument.NeedsOther": "must be given together with `{other}`",
    "Argument.Between": "must be between {low} and {high}, got {given}",
    "Argument.AtLeast": "must be at least {least}, got {given}",
    "Argument.Negative": "must not be negative, got {given}",
    "Argument.AllNegative": "must not be negative, got {given}",
    "Argument.NotPositive": "must be positive, got {given}",
    "Argument.NotFinite": "must be finite, got {given}",
    "Argument.Count": "needs one number, or one for each of {wanted}, got {given}",
    "Argument.Numbers": "needs {wanted} numbers, got {given}",
    "Argument.ChannelCount": "needs one value, or one for each of {channels} channels, got {given}",
    "Argument.NoChannels": 'has {given} values, but the layout "{layout}" has no channels',
    "Argument.NotNumbers": "must be a type of numbers, got {dtype}",
    "Argument.TooLarge": "asks for more elements than an array can have",
    "Argument.TooLong": (
        "asks for an extent of {extent}, more than the {longest} that an axis can have"
    ),
    "Argument.AxisOutside": "has {axis}, which is not an axis of data with {ndim} dimensions",
    "Argument.Entries": "has {given} entries, but that of the first sample has {first}",
    "Input.NotNumbers": "must be of numbers, not {dtype}",
    "Input.Type": "must be of {wanted}, got {dtype}",
    "Input.Channels": "must have {wanted} channels, got {given}",
    "Frames.Count": "has values for {given} frames, but there are {frames} frames",
    "Frames.InputCount": (
        "input {index} has values for {given} frames, but there are {frames} frames"
    ),
    "Frames.Empty": "there are no frames that the arguments for frames could apply to",
    "Frames.Shapes": (
        "all frames of a sequence must get the same shape, but by their arguments frame 0 would "
        "get {first} and frame {frame} {shape}"
    ),
    "Probe.Failed": "says to fail",
    "Color.TooManyPixels": "has {pixels} pixels, too many for 32-bit histograms",
    "Color.SpaceChannels": "{space} has {channels} channels, got {given}",
    "Color.NotAnImage": "an image has height, width and channels",
    "Color.LargeJpeg": ("a JPEG has at most {largest} rows and columns, got {height} x {width}"),
    "Coordinates.NotAList": "must be a list, got the shape {shape}",
    "Coordinates.Empty": "must not be empty",
    "Coordinates.NotAMatrix": (
        "must be a number or a matrix with {columns} columns, got the shape {shape}"
    ),
    "Coordinates.Wide": "points have at most {most} coordinates, got {given}",
    "Coordinates.Scalar": "the last dimension must hold the coordinates of points, got a scalar",
    "Coordinates.ShortLayout": 'has "{letters}" for points of {width} coordinates',
    "Coordinates.LayoutLetter": "may have x, y and z, got '{given}'",
    "Transforms.Dimensions": ("gives a transform of {given} dimensions; it may have 1 to {most}"),
    "Transforms.NotATransform": (
        "a transform of n dimensions is a matrix of n rows and n + 1 columns, n up to {most}; "
        "input {index} has the shape {shape}"
    ),
    "Transforms.DifferentShapes": "transforms must be of one shape, got {first} and {other}",
    "Transforms.OtherDimensions": (
        "the input is a transform of {input} dimensions, but the arguments describe one of "
        "{arguments}"
    ),
    "Transforms.NoShear": "is missing, and so is `angles`",
    "Transforms.ShearNumbers": (
        "must have n - 1 numbers for each of n dimensions (2 in all for 2, 6 for 3), got the shape "
        "{shape}"
    ),
    "Crop.Extents": "needs the height and the width, or a depth before them, got {given}",
    "Crop.NotAShape": (
        "the shape of an image needs a height and a width, and may have channels, got an array of "
        "the shape {shape}"
    ),
    "Crop.LargeExtent": "no image has an extent of {extent}",
    "Crop.OutputLayout": 'must have the letters of "{layout}", got "{given}"',
    "Crop.Range": "needs a number and another that is not below, got {given}",
    "Decoders.NotBytes": "an encoded image is a row of bytes, got the shape {shape} of {dtype}",
    "Decoders.Extents": "needs a height and a width, got {given}",
    "Decoders.MinSize": "needs a height and a width of at least 1, or one for both, got {given}",
    "Decoders.LargeWindow": "a window of {length} pixels goes beyond the image's {extent}",
    "Decoders.EmptyWindow": "the window of {height} x {width} pixels is empty",
    "Fill.Broadcast": "a fill value of shape {given} can't be broadcast to {wanted}",
    "Filters.NoSpatialAxis": "it has no spatial axis to filter along",
    "Filters.NotOdd": "must be odd, from {least} to {largest}, got {given}",
    "Filters.WindowSize": "must be odd, or 0 to derive it from `sigma`, got {given}",
    "Filters.NoWindow": "must be positive, unless `window_size` is given",
    "Filters.LargeWindow": "makes a window of more than {largest} pixels",
    "Filters.Axes": "the filter has {given} axes, but the data has {wanted} spatial axes",
    "Filters.Empty": "the filter is empty: {shape}",
    "Filters.Larger": "the filter is larger than the data: {size} of {extent} on axis {axis}",
    "Filters.Anchor": "must be inside the filter, or -1, got {given} for a size of {size}",
    "Filters.TooLarge": "a filter of {size} on rows of {extent} is too large",
    "Generic.ZeroStep": "must not be zero",
    "Generic.EmptyBatch": "an empty batch has no samples to stack",
    "Math.DividedByZero": "an integer was divided by zero",
    "Math.Shapes": "the shapes {shapes} can't be broadcast together",
    "Noise.NoChannels": (
        'its layout "{layout}" has no channels; `per_channel=True` works without them'
    ),
    "Normalize.Shape": (
        "has the shape {given}; for data of the shape {shape} it needs {expected}, or one number"
    ),
    "Normalize.NoAxis": ("is missing: the shape of `{other}` leaves no axis to compute it along"),
    "Normalize.EmptyBatch": "an empty batch has no statistics",
    "Normalize.Ragged": (
        "with `batch=True` all samples need the same extents along the axes that are not in "
        "`axes`; sample {sample} has the statistics' shape {shape}, sample 0 {first}"
    ),
    "Patches.AnchorNumbers": "has {given} numbers, but `shape` has {shape}",
    "Patches.AxisNumbers": "needs numbers for each of {axes} axes, got {given}",
    "Patches.Nan": "must not have NaN, got {given}",
    "Patches.NoRegion": "of {shape} at the `anchor` {anchor} is not a region",
    "Patches.ChannelNumber": "is {given}, but the image has {channels} channels",
    "Patches.NotAnImage": (
        "images need adjacent axes for height and width, got the shape {shape} and the layout "
        '"{layout}"'
    ),
    "Random.ShapeAndInput": "can't be given beside an input that the shape is taken from",
    "Random.NoChoices": "there is nothing to choose from",
    "Random.Range": "must go from one number up to another, got [{start}, {end})",
    "Random.NegativeCount": "can't choose out of {count} numbers",
    "Random.CountType": "how many to choose from must be an integer, not {dtype}",
    "Random.Total": "must add up to 1, got {total}",
    "Random.NotPositiveFinite": "must be positive and finite, got {given}",
    "Random.BatchSize": "must be a number of samples",
    "Reductions.MeanShape": (
        "the mean has the shape {shape}; it needs one number, or one for each result, in the shape "
        "{expected}"
    ),
    "Regions.NoLayout": "needs a layout, which the data lacks; `axes` works without one",
    "Regions.NoSuchAxis": "has '{letter}', which the layout \"{layout}\" lacks",
    "Regions.RepeatedAxis": "names axis {axis} more than once",
    "Regions.Outside": (
        "the window from {start} to {end} goes beyond axis {axis} of the shape {shape}"
    ),
    "Regions.OutsideOfPolicy": (
        "the window from {start} to {end} goes beyond axis {axis} of the shape {shape}; "
        "`out_of_bounds_policy` says what to do then"
    ),
    "Regions.Types": (
        "the anchor's elements are {anchor} and the shape's {shape}: both must be integers "
        "(absolute) or both floats"
    ),
    "Regions.Positional": (
        "the anchor and the shape need a value for each of {axes} axes, got {given}"
    ),
    "Regions.NamedAndPositional": "can't be given together with a positional anchor or shape",
    "Regions.NoWindow": (
        "nothing says what to cut out: give an anchor and a shape, or `start`, `end` or `shape`"
    ),
    "Regions.FarWindow": "gives a window from {start} to {end}",
    "Regions.EndsBeforeStart": "gives a window that ends at {end}, before its start {start}",
    "Regions.PositionalWindow": _positional_window,
    "Regions.NothingToRepeat": "a sample without elements has none to pad with",
    "Regions.PaddedScalar": "a sample without dimensions can't be padded",
    "Resize.FarRegion": "is too far from the data: {given}",
    "Resize.Interpolation": "is not an interpolation type: {given}",
    "Resize.Shape": "asks for too many elements: {shape}",
    "Resize.Sizes": (
        "is one of the ways to say the size, beside `resize_x`/`resize_y`/`resize_z`, "
        "`resize_shorter` and `resize_longer`: give exactly one of them"
    ),
    "Resize.NoAxes": "must be empty where there are no axes to resize",
    "Resize.SizesOrScales": "or `scales` must be given, one of them",
    "Resize.NotAnImage": "has no rows and columns",
    "Sequence.Position": "names {index}, which is not one of {count} {of}",
    "Sequence.NoFrames": "a sequence needs a dimension for its frames",
    "Sequence.EmptyOrder": "must name a frame",
    "Sequence.Entries": "has {given} entries for a batch of {samples} samples",
    "Shapes.SourceAxis": "needs axes of an input of {ndim} dimensions, or -1, got {axis}",
    "Shapes.Factors": "has {given} entries for {ndim} dimensions; `src_dims` can add some",
    "Shapes.Extent": "makes an extent of {extent}",
    "Shapes.ScalarSize": "must be of the same size, for data without dimensions",
    "Shapes.RowSize": "has {size} bytes, into which the {bytes} of a row can't be divided",
    "Shapes.Misfit": "makes the shape {wanted}, which does not fit {shape}",
    "Shapes.MisfitBytes": (
        "makes the shape {wanted}, which does not fit {shape} of {bytes} bytes as {dtype}"
    ),
    "Shapes.TwoOpen": "can have one negative entry, to be worked out",
    "Shapes.OpenAndEmpty": "leaves one extent open, but the others have no elements",
    "Shapes.Squeezed": "{axes} of the shape {shape} are not all 1",
    "Shapes.Inserted": "can't insert an axis at {axis}",
    "Shapes.Permutation": "{perm} does not name each of {ndim} axes once",
    "Shapes.Different": _different,
    "Warp.NoPixels": "an empty image has no edge pixels to replicate; give `fill_value`",
    "Warp.Size": "must not be negative or huge, got {given}",
    "Warp.MatrixNumbers": "must be {wanted}, got {given} numbers",
    "Warp.NotFinite": "must have finite numbers, got {given}",
    "Warp.NoInverse": "the matrix {matrix} has no inverse",
    "Warp.MatrixShape": "the matrix must be {wanted}, got the shape {shape}",
    "Warp.NoMatrix": "must be given, as an argument or an input",
    "Warp.NoAxis": "must be given for volumes",
    "Warp.Axis": "needs x, y and z, got {given}",
    "Warp.NoDirection": "must have a direction, got {given}",
}
