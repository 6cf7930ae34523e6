"""What is wrong with files, and with the data sets in them."""

from __future__ import annotations

import os
from collections.abc import Callable


def _by_the_system(code: int | None, text: str) -> str:
    return text if code is None else os.strerror(code)


def _checksum(at: int) -> str:
    hint = "" if at else "; it may not be a tar archive"
    return f"the header at byte {at} has a wrong checksum{hint}"


def _kind(key: str, wanted: str, found: str | None) -> str:
    return f"feature {key!r} should hold {wanted}, but holds {found or 'nothing'}"


_HEADER_PARTS = {
    "text": "a text in quotes",
    "truth": "True or False",
    "extent": "an extent of the shape",
    ",}": "',' or '}'",
    ",)": "',' or ')'",
}


def _unexpected_in_header(found: str, wanted: str) -> str:
    return f"its header has {found!r} where {_HEADER_PARTS.get(wanted, repr(wanted))} should be"


_JSON_PARTS = {
    "end": "the end of the text",
    "list": "a list",
    ",]": "',' or the end of the list",
    "object": "an object",
    "name": "a name in quotes",
    ":": "':'",
    ",}": "',' or the end of the object",
    "text": "a text in quotes",
    "number": "a number",
    "value": "a value",
}


def _unexpected_in_json(wanted: str, found: int) -> str:
    shown = f"'{chr(found)}'" if 0x20 < found < 0x7F else f"byte 0x{found:02x}"
    return f"{_JSON_PARTS[wanted]} should be here, not {shown}"


def _half_character(half: int) -> str:
    return f"\\u{half:04x} is half of a character"


def _character(byte: int) -> str:
    return f"has the character {chr(byte)!r} in `counts`"


_TENSOR_TYPES = {1: "FLOAT", 2: "INT32", 3: "BYTE", 4: "STRING"}


def _tensor_type(dtype: int) -> str:
    return _TENSOR_TYPES.get(dtype, f"type {dtype}")


def _image_type(dtype: int) -> str:
    found = _tensor_type(dtype)
    return f"the image is of {found}; it must be the bytes of a file (STRING) or pixels (BYTE)"


def _must_be(wanted: str) -> Callable[[str, int], str]:
    def words(what: str, dtype: int) -> str:
        return f"the {what} is of {_tensor_type(dtype)}; it must be {wanted}"

    return words


def _said(text: str) -> str:
    return f" (the server says: {text})" if text else ""


def _no_object(text: str) -> str:
    return f"there is no such file{_said(text)}"


def _denied(status: int, text: str) -> str:
    answer = f"status {status}" if status else "permission denied"
    said = f", {text}" if text else ""
    return (
        f"the server refuses access ({answer}{said}); check the credential and its permissions, "
        "or for public data give `storage_options={'skip_signature': True}`"
    )


_CREDENTIALS = {
    "s3": "`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`",
    "s3a": "`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`",
    "gs": "`GOOGLE_APPLICATION_CREDENTIALS`",
}


def _no_credentials(scheme: str, text: str) -> str:
    names = _CREDENTIALS.get(scheme, "`AZURE_STORAGE_ACCOUNT_NAME` and `AZURE_STORAGE_ACCOUNT_KEY`")
    return (
        f"no credential was found; set {names}, give `storage_options`, or for public data "
        "`storage_options={'skip_signature': True}`"
    )


def _unavailable(attempts: int, seconds: float, status: int | None, text: str) -> str:
    answer = f"status {status}" if status else "no proper answer"
    said = f": {text}" if text else ""
    return f"{attempts} attempts in {seconds:.1f} s have failed, the last with {answer}{said}"


def _changed(text: str) -> str:
    return (
        f"it has changed since it was opened{_said(text)}; open the reader again, with a new index"
    )


def _unsupported(text: str) -> str:
    return f"{text}; name the files with `files`, `file_list` or `index`"


def _configuration(text: str) -> str:
    return f"{text}; check the URL and `storage_options`"


def _other_answer(attempts: int, status: int | None, text: str) -> str:
    answer = "" if status is None else f"the server answers with status {status}: "
    tries = "" if attempts < 2 else f" ({attempts} attempts)"
    return f"{answer}{text or 'it gives no reason'}{tries}"


def _scheme(scheme: str, known: str) -> str:
    hint = f"; did you mean {known}://?" if known else ""
    return f"nothing reads {scheme}:// URLs{hint}"


SENTENCES: dict[str, str | Callable[..., str]] = {
    # What the system says of a file
    "SystemFault.NotFound": "there is no such file",
    "SystemFault.Permission": "the permission to read it is missing",
    "SystemFault.TooManyFiles": (
        "the process has too many files open; `ulimit -n` raises the limit"
    ),
    "SystemFault.TooManyFilesOfAll": "the system has too many files open",
    "SystemFault.NulInName": "its name has a NUL character",
    "SystemFault.Other": _by_the_system,
    # Any file
    "ReadFault.NotAName": (
        "a file name must be a row of bytes (uint8), got {ndim} dimensions of {dtype}"
    ),
    "ReadFault.Named": "{path}: {problem}",
    "ReadFault.Shrunk": (
        "it shrank while it was being read: it had {size} bytes, and now ends before byte {end}"
    ),
    "ReadFault.UnknownSize": "its size is unknown, and it has more than {limit} bytes",
    "ReadFault.Folder": "it is a folder",
    "ReadFault.Pipe": "it is a pipe; write what comes through it to a file first",
    "ReadFault.Socket": "it is a socket",
    "ReadFault.Device": "it is a device",
    "ReadFault.NotRegular": "it is not a regular file",
    "ReadFault.Memory": "there is no memory for {bytes} bytes",
    "ReadFault.Internal": "{text}",
    # Files that are named by URLs
    "RemoteFault.NotFound": _no_object,
    "RemoteFault.NoBucket": (
        "there is no bucket {bucket!r}; check its name, and that the region or endpoint is the "
        "one it is in (the server says: {text})"
    ),
    "RemoteFault.Denied": _denied,
    "RemoteFault.Expired": ("the credential has expired; get a new one (the server says: {text})"),
    "RemoteFault.NoCredentials": _no_credentials,
    "RemoteFault.Unreachable": (
        "the server can't be reached, {attempts} attempts in {seconds:.1f} s: {text}; check the "
        "host or `endpoint`, and the network"
    ),
    "RemoteFault.Unavailable": _unavailable,
    "RemoteFault.Changed": _changed,
    "RemoteFault.Unsupported": _unsupported,
    "RemoteFault.Configuration": _configuration,
    "RemoteFault.Other": _other_answer,
    "RemoteFault.NotText": "it is not text in UTF-8",
    "RemoteFault.Scheme": _scheme,
    "RemoteFault.Module": (
        '{scheme}:// URLs need the package `penstock-remote`; `pip install "penstock[remote]"` '
        "installs it"
    ),
    "RemoteFault.Package": (
        "{scheme}:// URLs need the Python package `{package}`; `pip install {package}` installs it"
    ),
    "RemoteFault.Outdated": (
        "the packages `penstock` and `penstock-remote` are of different versions; "
        '`pip install --upgrade "penstock[remote]"` installs those that fit'
    ),
    "RemoteFault.Index": "it can't be written: {text}",
    "RemoteFault.IndexLine": (
        "line {line} is not one of an index; remove the file, and it is written anew"
    ),
    "RemoteFault.IndexRoot": (
        "it is an index of {found}, not of {root}; remove the file, and it is written anew"
    ),
    # Lists of files
    "ListFault.Line": (
        "line {line} {problem}; a line is a file name, a space and a label, got {text!r}"
    ),
    "ListFault.NoLabel": "has no label after the file name",
    "ListFault.NotANumber": "does not end with a label, a whole number",
    "ListFault.LargeLabel": "has a label that does not fit into 32 bits",
    "ListFault.Folder": _by_the_system,
    # Videos
    "ClipFault.Changed": (
        "it has {frames} frames, but had at least {wanted} when the reader was made"
    ),
    "ClipFault.TooMany": "there are more clips than can be counted",
    "ClipListFault.Line": (
        "line {line} {problem}; a line is a file name, a label, and, if not all of the video is "
        "read, its start and end, with spaces in between; got {text!r}"
    ),
    "ClipListFault.NoLabel": "has no label after the file name",
    "ClipListFault.NotANumber": "has a label that is not a whole number",
    "ClipListFault.LargeLabel": "has a label that does not fit into 32 bits",
    "ClipListFault.NegativeLabel": "has a negative label",
    "ClipListFault.Bound": "has a start or end that is not a number: {text!r}",
    "ClipListFault.BeyondEnd": (
        "ends with frame {end}, but the video has {frames} frames, and "
        "`file_list_include_end=False` forbids that"
    ),
    "ClipListFault.Empty": "has no frames between its start and its end",
    # Files of records
    "RecordFault.Index": "its index can't be used: {path}: {problem}",
    "RecordFault.IndexLine": "line {line} should be two whole numbers, got {text!r}",
    "RecordFault.BeyondEnd": (
        "the index has {length} bytes from byte {offset} on, but the file ends after {size}"
    ),
    "RecordFault.Compressed": "it is compressed with {name}; decompress it first",
    "RecordFault.CutOff": "record {number}, at byte {at}, is cut off: the file ends at {size}",
    "RecordFault.InRecord": "record {number}, at byte {at}: {problem}",
    "RecordFault.Unended": "the last record has no end",
    # TFRecord
    "TfRecordFault.FirstChecksum": (
        "the checksum of its length is wrong; it may not be a TFRecord file"
    ),
    "TfRecordFault.LengthChecksum": "the checksum of the record's length is wrong",
    "TfRecordFault.DataChecksum": "the checksum of the record's data is wrong",
    "TfRecordFault.TooShort": "the record has {bytes} bytes, too few for a record",
    "TfRecordFault.Length": (
        "the record has {length} bytes of data, of which the index allows {room}"
    ),
    "TfRecordFault.NotExample": "the record is not an Example: {problem}",
    "TfRecordFault.Missing": "feature {key!r} is not in the record, and has no default",
    "TfRecordFault.Empty": "feature {key!r} has no values, and no default",
    "TfRecordFault.Kind": _kind,
    "TfRecordFault.TooLarge": "feature {key!r} has a shape that is too large: {shape}",
    "TfRecordFault.Rows": (
        "feature {key!r} has {count} values, which can't be split into rows of shape {shape}"
    ),
    "TfRecordFault.Count": (
        "feature {key!r} has {count} values, but its shape {shape} needs {wanted}"
    ),
    # Columns of tables
    "ColumnFault.Missing": "there is no column {column!r}; there are {known}",
    "ColumnFault.Fields": (
        "column {column!r} is a structure; name one of its fields, such as 'column.field': {fields}"
    ),
    "ColumnFault.Type": "column {column!r} holds {found}, which can't be read",
    "ColumnFault.Texts": (
        "column {column!r} holds lists of texts or bytes, which can't be read; only lists of "
        "numbers can"
    ),
    "ColumnFault.Deep": "column {column!r} holds lists within lists, {depth} deep: too deep",
    "ColumnFault.Differs": "column {column!r} is another one, or of another type, than in {file}",
    "ColumnFault.Null": "column {column!r} is null in this row",
    "ColumnFault.NullElement": "column {column!r} has a null in the list of this row",
    "ColumnFault.Ragged": (
        "column {column!r} has lists of different lengths within the list of this row, which make "
        "no array"
    ),
    # Rows that another library reads
    "RowsFault.Failed": "the row can't be read: {text}",
    "RowsFault.Count": "{wanted} rows were asked for, and {found} came",
    # Compressed parts of files
    "UnpackFault.Claim": (
        "{packed} bytes of {name} can't be {claimed} bytes when they are decompressed, as it says"
    ),
    "UnpackFault.Damaged": "the data, compressed with {name}, is damaged: {text}",
    "UnpackFault.Size": (
        "the data, compressed with {name}, should have {claimed} bytes when it is decompressed, "
        "but has {found}"
    ),
    # Parquet
    "ParquetFault.TooShort": "it has {bytes} bytes, too few for a Parquet file",
    "ParquetFault.Magic": "it is not a Parquet file: its last bytes are different",
    "ParquetFault.Encrypted": "it is encrypted, which is not supported",
    "ParquetFault.Footer": (
        "its footer claims to have {length} bytes, more than a file of {size} bytes can have"
    ),
    "ParquetFault.Thrift": "its footer is damaged",
    "ParquetFault.Schema": "its schema is damaged",
    "ParquetFault.Columns": "a row group does not have all columns of the schema",
    "ParquetFault.Elsewhere": "its columns are in another file, which is not supported",
    "ParquetFault.Codec": (
        "column {column!r} is compressed with {name}; Snappy, gzip, zstd and LZ4 (raw) can be read"
    ),
    "ParquetFault.Chunk": "column {column!r} is not where the footer says, or has too few values",
    "ParquetFault.Pages": "the pages of column {column!r} are damaged",
    "ParquetFault.Values": "the values of a page are damaged",
    "ParquetFault.NoDictionary": "the dictionary of a page is missing",
    "ParquetFault.Encoding": "its values have the unknown encoding {encoding}",
    "ParquetFault.TooLarge": "a page would have {bytes} bytes, which is too large",
    "ParquetFault.TooManyRows": "it claims to have more rows than can be counted",
    # Arrow
    "ArrowFault.NotArrow": "it is not an Arrow file or stream",
    "ArrowFault.Message": "the message at byte {at} is damaged",
    "ArrowFault.CutOff": "the message at byte {at} is cut off: the file ends at {size}",
    "ArrowFault.NoSchema": "it has no schema in front of its data",
    "ArrowFault.BigEndian": "its numbers are stored with the highest byte first, which is not read",
    "ArrowFault.Schema": "its schema is damaged",
    "ArrowFault.Batch": "the record batch at byte {at} is damaged",
    "ArrowFault.Packing": "its data is compressed in an unknown way; LZ4 and zstd can be read",
    "ArrowFault.Buffer": "column {column!r} has less data than its record batch claims",
    "ArrowFault.Offsets": "the offsets of column {column!r} are damaged",
    "ArrowFault.TooManyRows": "it claims to have more rows than can be counted",
    # MDS
    "MdsFault.Size": "it has {size} bytes, and {wanted} according to the index",
    "MdsFault.Count": "it has {found} samples, and {wanted} according to the index",
    "MdsFault.Place": (
        "the sample should be from byte {start} to {end}, which can't be in a shard of {size} bytes"
    ),
    "MdsFault.Columns": "the columns of the sample don't add up to its {bytes} bytes",
    "MdsFault.Width": "column {column!r} has {bytes} bytes, and should have {wanted}",
    "MdsFault.Array": "column {column!r} does not hold an array as its encoding says",
    "MdsFault.Different": (
        "column {column!r} has {ndim} dimensions of {dtype}, and in the first sample {first_ndim} "
        "of {first_dtype}; all samples must agree in that"
    ),
    "MdsFault.Image": "column {column!r} does not hold the pixels of an image as its size says",
    "MdsFault.Mode": "column {column!r} holds an image of PIL's mode {mode!r}, which can't be read",
    "MdsFault.TooManySamples": "the index claims more samples than can be counted",
    # FITS
    "FitsFault.NotFits": "it is not a FITS file: it does not begin with SIMPLE",
    "FitsFault.Header": "the header at byte {at} has no END",
    "FitsFault.Keyword": "its header has no valid {keyword}",
    "FitsFault.Dimensions": "its image has {ndim} dimensions",
    "FitsFault.TooLarge": "its image is more than memory can hold",
    "FitsFault.NoUnit": "it has {found} HDUs, so there is none with number {number}",
    "FitsFault.Empty": (
        "HDU {number} has no data; `hdu_indices` counts from 1, the primary one, which is often "
        "empty"
    ),
    "FitsFault.Table": "HDU {number} is a table; only images can be read",
    "FitsFault.Type": "BITPIX is {bits}, which is no element type",
    "FitsFault.CutOff": "the image takes {bytes} bytes, but the file ends after {size}",
    "FitsFault.Tiles": "the tiles of its compressed image are damaged",
    "FitsFault.Method": (
        "its image is compressed with {name!r}; RICE_1, GZIP_1 and GZIP_2 can be read"
    ),
    # Protocol buffers
    "ProtobufFault.FieldType": "it has a field of an unknown type",
    "ProtobufFault.FieldZero": "it has a field of number 0",
    "ProtobufFault.TooLong": "a field is longer than the message that it is in",
    "ProtobufFault.Number": "a number does not end",
    "ProtobufFault.NotIntegers": "a list of integers holds something else",
    "ProtobufFault.NotFloats": "a list of floats holds something else",
    "ProtobufFault.FloatCutOff": "a list of floats ends in the middle of a number",
    # RecordIO
    "RecordIoFault.Magic": "the magic number of RecordIO is missing",
    "RecordIoFault.Flags": "it has unknown flags",
    "RecordIoFault.Order": "the parts of the record are not in order",
    "RecordIoFault.CutOff": "the record is cut off",
    "RecordIoFault.Short": (
        "the record is cut off: it has {length} bytes, of which {left} are there"
    ),
    "RecordIoFault.NoHeader": "the record has {length} bytes, too few for its header",
    "RecordIoFault.Labels": (
        "the record claims {count} labels, more than its {bytes} bytes can hold"
    ),
    # Tar archives and their samples
    "TarFault.TooShort": "it is not a tar archive: it has {bytes} bytes",
    "TarFault.Checksum": _checksum,
    "TarFault.Size": "the header at byte {at} has no valid size",
    "TarFault.LargeHeader": "the header at byte {at} is too large",
    "TarFault.Extended": "the header at byte {at} is not a list of keys and values",
    "TarFault.Header": "the header at byte {at} is cut off",
    "TarFault.CutOff": (
        "{name!r} is cut off: it has {size} bytes from byte {start} on, and the file ends at {end}"
    ),
    "TarFault.PartOfFile": "{name!r} is a part of a file, which is not supported",
    "TarFault.Sparse": "{name!r} is a sparse file, which is not supported",
    "ArchiveFault.TooMany": "there are more than 2**32 components",
    "ArchiveFault.Elements": (
        "the component has {length} bytes, which is not a whole number of {dtype} elements with "
        "{itemsize} bytes each"
    ),
    "ArchiveFault.Component": "sample {sample!r} has no component {missing!r}",
    "ArchiveFault.Line": "line {line} {problem}",
    "ArchiveFault.Version": "should be v1.1 or v1.2, and the number of samples",
    "ArchiveFault.NoSamples": "should have a positive number of samples",
    "ArchiveFault.Ends": "it should have {count} samples, but ends after {found}",
    "ArchiveFault.Words": "should have for each component: extension, place, size",
    "ArchiveFault.NamedWords": "should have for each component: extension, place, size, name",
    "ArchiveFault.Digits": "should have the place and the size in digits",
    "ArchiveFault.Offset": "has the place {offset}, which is not a multiple of 512",
    "ArchiveFault.BeyondEnd": (
        "has {size} bytes from byte {offset} on, but the archive only has {archive}"
    ),
    "ArchiveFault.Missing": "has no component {missing!r}",
    # LMDB databases, and the records of Caffe
    "LmdbFault.TooShort": "it is not an LMDB database: it is too short",
    "LmdbFault.Magic": "it is not an LMDB database: its first bytes are different",
    "LmdbFault.Version": (
        "it has version {version} of LMDB's format, of which only version 1 is supported"
    ),
    "LmdbFault.PageSize": "it claims to have pages of {bytes} bytes",
    "LmdbFault.NoRoot": "both of its first two pages are damaged",
    "LmdbFault.Duplicates": "it holds several values for a key, which is not supported",
    "LmdbFault.Nested": "its record {key!r} is another database, which is not supported",
    "LmdbFault.Count": "it claims {claimed} records, but has {found}",
    "LmdbFault.Repeated": "page {page} is in its tree twice",
    "LmdbFault.Page": "page {page} of its tree is damaged",
    "LmdbFault.CutOff": "it is cut off: page {page} of its tree is missing, it has {size} bytes",
    "CaffeFault.CutOff": ("the database is cut off before the end of this record of {bytes} bytes"),
    "CaffeFault.NotDatum": "the record is not a Datum of Caffe: {problem}",
    "CaffeFault.NotTensors": "the record is not a TensorProtos of Caffe2: {problem}",
    "CaffeFault.Tensor": "tensor {number} of the record is damaged: {problem}",
    "CaffeFault.TooMany": "the record has more than {limit} tensors",
    "CaffeFault.Tensors": (
        "the record has {found} tensors, but `image_available`, `label_type`, `additional_inputs` "
        "and `bbox` together ask for {wanted}"
    ),
    "CaffeFault.Pixels": (
        "the image claims to be {height} high and {width} wide with {channels} channels, but has "
        "{bytes} bytes"
    ),
    "CaffeFault.Shape": "the image claims the shape {shape}, but has {bytes} bytes",
    "CaffeFault.EmptyImage": "the image is empty",
    "CaffeFault.ImageType": _image_type,
    "CaffeFault.Labels": "the record has {found} labels instead of one",
    "CaffeFault.Weights": "the record has {labels} labels, but {weights} weights",
    "CaffeFault.Class": "the label {class} is not in 0..{classes}, which `num_labels` allows",
    "CaffeFault.Box": "the box has {found} numbers instead of four",
    "CaffeFault.NotNumbers": _must_be("INT32 or FLOAT"),
    "CaffeFault.NotInt32": _must_be("INT32"),
    "CaffeFault.NotFloat": _must_be("FLOAT"),
    # Manifests
    "ManifestFault.Unreadable": "the manifest can't be read: {problem}",
    "ManifestFault.NotObject": "is not a JSON object",
    "ManifestFault.NoKey": "lacks a name where there should be one",
    "ManifestFault.NoValue": "has a name without a value",
    "ManifestFault.NotText": "has a `{key}` that is not a text",
    "ManifestFault.NotNumber": "has a `{key}` that is not a number",
    "ManifestFault.Value": "has an invalid value",
    "ManifestFault.CutOff": "is cut off",
    "ManifestFault.Trailing": "has something after its JSON object",
    "ManifestFault.NoFile": "has no `audio_filepath`",
    "ManifestFault.Offset": (
        "it has {length:g} seconds ({frames} frames), and the `offset` is {offset:g} seconds"
    ),
    "ManifestFault.EndsBefore": "it ends before the `offset` of {offset:g} seconds",
    "ManifestFault.Sound": "it {problem}",
    # Arrays
    "NpyFault.Empty": "it is empty",
    "NpyFault.Magic": "it is not in NumPy's format: its first bytes are different",
    "NpyFault.Version": "its format has the unknown version {version}",
    "NpyFault.HeaderCutOff": "it ends within its header",
    "NpyFault.HeaderLength": "its header claims to have {length} bytes",
    "NpyFault.CutOff": "its array of shape {shape} takes {bytes} bytes, of which it has {left}",
    "NpyFault.Surplus": (
        "its array of shape {shape} takes {bytes} bytes, but {left} follow the header"
    ),
    "NpyFault.NotText": "its header is not a text",
    "NpyFault.Records": "its elements are records; only arrays of numbers can be read",
    "NpyFault.Entry": "its header has the unknown entry {key!r}",
    "NpyFault.Missing": "its header has no {key!r}",
    "NpyFault.Type": (
        "its elements have NumPy's type {descr!r}; only bool, integers and floats of up to 64 bits "
        "can be read"
    ),
    "NpyFault.Dimensions": "its array has {ndim} dimensions",
    "NpyFault.TooLarge": "its shape {shape} is more than memory can hold",
    "NpyFault.Unexpected": _unexpected_in_header,
    "NpyFault.Unterminated": "its header has a text without a closing quote",
    "NpyFault.Different": (
        "it has {ndim} dimensions of {dtype}, and the first of the batch, {first}, has "
        "{first_ndim} of {first_dtype}; all arrays of a batch must agree in that"
    ),
    "WindowFault.Count": "needs a value for each of {count} axes, got {found}",
    "WindowFault.Far": "is {value:g}",
    "WindowFault.Axis": "has {axis}, but the array has {ndim} dimensions",
    "WindowFault.Repeated": "names axis {axis} more than once",
    "WindowFault.Negative": "must not be negative, got {length:g}",
    "WindowFault.Reversed": "gives a part that ends at {last}, before its start {first}",
    "WindowFault.Outside": (
        "the part from {first} to {last} goes beyond axis {axis} of the shape {shape}; "
        "`out_of_bounds_policy` says what to do then"
    ),
    # Annotations
    "JsonFault.At": "line {line}, byte {byte}: {problem}",
    "JsonFault.Ends": "the text ends in the middle",
    "JsonFault.Unexpected": _unexpected_in_json,
    "JsonFault.Unterminated": "the text has no closing quote",
    "JsonFault.HalfCharacter": _half_character,
    "JsonFault.Escape": "this is not an escape sequence",
    "JsonFault.LongNumber": "this number is too long",
    "JsonFault.NotANumber": "this is not a number",
    "JsonFault.NotWhole": "a whole number should be here, not {value:g}",
    "CocoFault.NoId": "the {what} has no `id`",
    "CocoFault.ImageMember": "image {id} has no `{name}`",
    "CocoFault.AnnotationMember": "the annotation has no `{name}`",
    "CocoFault.LargeCategory": "`category_id` {id} does not fit into 32 bits",
    "CocoFault.TooManyAnnotations": "there are too many annotations",
    "CocoFault.TooManyVertices": "there are too many vertices",
    "CocoFault.OddPolygon": "the polygon has an x without a y",
    "CocoFault.Keypoints": (
        "`keypoints` must have three numbers per keypoint (x, y, visibility), but has {found}"
    ),
    "CocoFault.NoKeypoints": "no annotation has `keypoints`",
    "CocoFault.Extent": "`{name}` {extent} can't be the size of an image",
    "CocoFault.Box": "`bbox` must have 4 numbers, not {found}",
    "CocoFault.Mask": "the mask {problem}",
    "CocoFault.MaskExtent": "the mask has a size of {extent}",
    "CocoFault.MaskSize": "the mask has no `size` of two numbers, height and width",
    "CocoFault.MaskCounts": "the mask has no `counts`",
    "CocoFault.ImageSize": "its size is given as {height} x {width}",
    "CocoFault.LargeImage": (
        "its size is given as {height} x {width}, which is more than the limit of {limit} pixels"
    ),
    "CocoFault.Object": "an object {problem}",
    "CocoFault.LargeId": "its id {id} does not fit into the 32 bits of `image_ids`",
    "MaskFault.Character": _character,
    "MaskFault.LargeCount": "has `counts` that don't fit into 32 bits",
    "MaskFault.CutOff": "has `counts` that end in the middle of a number",
    "MaskFault.Memory": "has more `counts` than there is memory for",
    "MaskFault.Count": "has a count of {count} pixels",
    "MaskFault.Size": (
        "has a mask of {height} x {width} pixels, and the image {image_height} x {image_width}"
    ),
    "MaskFault.Layers": "is one of so many that they cover the image too often",
    "MaskFault.Runs": "has runs of more pixels than the {height} x {width} of the image",
    "MaskFault.Far": "has a polygon with a corner far outside of the image, ({x:g}, {y:g})",
    "MaskFault.Crossings": "has a polygon that crosses the image too often",
    "StoreFault.LineBreak": "a file name with a line break can't be stored",
    "StoreFault.LargeId": "the image id {id} does not fit into 32 bits",
    "StoreFault.Beyond": "points beyond the {what}",
    "StoreFault.Twice": "has {what} more than once",
    "StoreFault.NoObject": "has {what} that belong to no object",
    "StoreFault.CutOff": "ends too early",
    "StoreFault.Masks": "should have {count} masks",
    "StoreFault.Claimed": "does not have as many records as it claims",
    "StoreFault.Count": "has {found} records, not {count}",
    "StoreFault.Keypoints": "has {found} keypoints, which is no multiple of the {all} objects",
    "StoreFault.WritePermission": "the permission to write is missing",
}
