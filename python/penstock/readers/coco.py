"""`readers.COCO`: images with boxes, labels and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from penstock._errors import messages
from penstock._operators import call_sites
from penstock._runtime.device import DeviceLike
from penstock.errors import ArgumentError
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name, path, texts
from penstock.readers._base.reader import Reader
from penstock.readers._base.source import Source, open_source

if TYPE_CHECKING:
    from typing_extensions import Unpack

SIZE_THRESHOLD = 0.1

_OUTLINES = {"pixels": "pixelwise_masks", "polygons": "polygon_masks", "coordinates": "masks"}
"""The forms of outlines, and the arguments that ask for them."""


class COCO(Reader):
    """Reads images and the objects on them, which a file in the format of COCO lists.

    A sample is the bytes of an image (uint8), the boxes of its objects (float32 of shape (M, 4))
    and their labels (int32 of shape (M,)); then, with `polygon_masks`, polygons (int32 of shape
    (P, 3): which object, first and last vertex) and vertices (float32 of shape (V, 2)), or, with
    `pixelwise_masks`, an image of labels (int32, HWC); with `image_ids` the id (int32 of shape
    (1,)); with `keypoints` the keypoints (float32 of shape (M, K, 3): x, y and visibility); and
    with `annotation_ids` the ids of the objects (int64 of shape (M,)). Images come in the order of
    their ids.

    Annotations are trusted to name files, as in DALI: a `file_name` may be an absolute path, or
    leave `file_root` by `..`. Don't take annotations from somebody who must not choose which files
    the program reads. What may be in the files themselves is another matter: damage is an error, of
    the sample or of the reader. Masks are painted up to the limit of pixels that decoders have
    (PENSTOCK_MAX_PIXELS).

    Args:
        annotation_ids: Give the ids of annotations, too, such as for evaluating detections.
        annotations_file: The file, in JSON. What the outputs don't need is passed over.
        avoid_class_remapping: Take the ids of categories as labels. By default, labels count the
            categories from 1, in the order of the file.
        dump_meta_files: The old name of `save_preprocessed_annotations`.
        dump_meta_files_path: The old name of `save_preprocessed_annotations_dir`.
        file_root: The folder that the names of images are relative to.
        image_ids: Give the ids of images, too.
        images: The names of the images to read, in this order; by default all.
        include_iscrowd: Whether objects count that are crowds.
        keypoints: Give the keypoints of objects, too. Visibility is 0 (not labeled), 1 (labeled,
            but hidden) or 2 (visible). K is the largest number of keypoints of an object in the
            file; those that an object lacks are zeros.
        ltrb: Boxes are left, top, right, bottom; by default left, top, width, height.
        masks: As `polygon_masks`, with places of coordinates (two for a vertex) for polygons. Old.
        meta_files_path: The old name of `preprocessed_annotations`.
        pixelwise_masks: Paint polygons and runs to an image of labels. Where they overlap, the
            larger label is on top.
        polygon_masks: Give the polygons of objects. Those that have runs of pixels have none.
        preprocessed_annotations: A folder with what `save_preprocessed_annotations` stored, to
            read instead of `annotations_file`. Files of either library can be read by the other,
            except that DALI stores neither keypoints nor ids of annotations.
        ratio: Give coordinates, also those of keypoints, as parts of the image's width and height.
        save_img_ids: The old name of `image_ids`.
        save_preprocessed_annotations: Store the annotations, as they are given, in a form that is
            read faster.
        save_preprocessed_annotations_dir: The folder, which must be there, to store them in.
        size_threshold: Objects whose box is less wide or high (in pixels) don't count.
        skip_empty: Leave out images without objects.
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        annotation_ids: bool | None = None,
        annotations_file: Name | None = None,
        avoid_class_remapping: bool | None = None,
        dump_meta_files: bool | None = None,
        dump_meta_files_path: Name | None = None,
        file_root: Name | None = None,
        image_ids: bool | None = None,
        images: str | Sequence[str] | None = None,
        include_iscrowd: bool | None = None,
        keypoints: bool | None = None,
        ltrb: bool | None = None,
        masks: bool | None = None,
        meta_files_path: Name | None = None,
        pixelwise_masks: bool | None = None,
        polygon_masks: bool | None = None,
        preprocessed_annotations: Name | None = None,
        ratio: bool | None = None,
        save_img_ids: bool | None = None,
        save_preprocessed_annotations: bool | None = None,
        save_preprocessed_annotations_dir: Name | None = None,
        size_threshold: float | None = None,
        skip_empty: bool | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._what = "readers.COCO"
        self._root = self._path("file_root", file_root)
        self._file = self._path("annotations_file", annotations_file)
        self._images = texts(self._what, "images", images or [], "a name or a list of names")
        self._include_crowds = include_iscrowd is not False
        self._threshold = size_threshold
        self._remap = not avoid_class_remapping
        self._ltrb, self._ratio, self._skip_empty = bool(ltrb), bool(ratio), bool(skip_empty)
        self._ids = bool(self._renamed("save_img_ids", save_img_ids, "image_ids", image_ids))
        self._keypoints, self._annotation_ids = bool(keypoints), bool(annotation_ids)
        self._stored = self._path(
            "preprocessed_annotations",
            self._renamed(
                "meta_files_path",
                meta_files_path,
                "preprocessed_annotations",
                preprocessed_annotations or None,
            ),
        )
        self._save = bool(
            self._renamed(
                "dump_meta_files",
                dump_meta_files,
                "save_preprocessed_annotations",
                save_preprocessed_annotations,
            )
        )
        self._save_to = self._path(
            "save_preprocessed_annotations_dir",
            self._renamed(
                "dump_meta_files_path",
                dump_meta_files_path,
                "save_preprocessed_annotations_dir",
                save_preprocessed_annotations_dir or None,
            ),
        )
        if masks:
            self._warn("masks", "polygon_masks")
        if pixelwise_masks and (polygon_masks or masks):
            raise self._wrong("pixelwise_masks", "and `polygon_masks` can't be had together")
        given = {"pixels": pixelwise_masks, "polygons": polygon_masks, "coordinates": masks}
        self._outlines = next((outlines for outlines, wanted in given.items() if wanted), "none")
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _open(self) -> Source:
        if self._root is None:
            raise self._wrong("file_root", "is needed: the folder with the images")
        if self._save != (self._save_to is not None):
            raise self._wrong(
                "save_preprocessed_annotations",
                "and `save_preprocessed_annotations_dir` must be given together",
            )
        try:
            threshold = SIZE_THRESHOLD if self._threshold is None else float(self._threshold)
        except (TypeError, ValueError):
            raise messages.wrong_argument(
                self._what, "size_threshold", self._threshold, "a number"
            ) from None
        which = {"stored": self._stored} if self._stored else {"annotations": self._file}
        if self._stored:
            self._check_stored()
        elif self._file is None:
            raise self._wrong(
                "annotations_file", "is needed, unless there is `preprocessed_annotations`"
            )
        images = open_source(
            self._what,
            "coco",
            {
                "annotations": "annotations_file",
                "stored": "preprocessed_annotations",
                "save_to": "save_preprocessed_annotations_dir",
            },
            self._stored_with() if self._stored else "",
            root=self._root,
            save_to=self._save_to,
            corners=self._ltrb,
            ratio=self._ratio,
            outlines=self._outlines,
            image_ids=self._ids,
            keypoints=self._keypoints,
            annotation_ids=self._annotation_ids,
            skip_empty=self._skip_empty,
            skip_crowds=not self._include_crowds,
            threshold=threshold,
            renumber=self._remap,
            images=self._images,
            **which,
        )
        if not len(images):
            raise self._wrong(
                "images" if self._images else "annotations_file",
                "leaves no image to read"
                + (": none of these names is in the annotations" if self._images else ""),
            )
        return images

    def _check_stored(self) -> None:
        given: dict[str, Any] = {
            "annotations_file": self._file,
            "images": self._images,
            "ltrb": self._ltrb,
            "ratio": self._ratio,
            "size_threshold": self._threshold is not None,
            "skip_empty": self._skip_empty,
        }
        for key, value in given.items():
            if value:
                raise self._wrong(
                    key,
                    "can't be given together with `preprocessed_annotations`: those are stored as "
                    "they were asked for then",
                )

    def _stored_with(self) -> str:
        """A hint at outputs that preprocessed annotations may lack."""
        wanted = [_OUTLINES[self._outlines]] if self._outlines in _OUTLINES else []
        asked = {
            "image_ids": self._ids,
            "keypoints": self._keypoints,
            "annotation_ids": self._annotation_ids,
        }
        wanted += [name for name, is_wanted in asked.items() if is_wanted]
        names = " and ".join(f"`{name}`" for name in wanted)
        return f"{names} must have been given when the annotations were stored" if names else ""

    def _renamed(self, old: str, old_value: Any, new: str, new_value: Any) -> Any:
        """The value of an argument that has two names."""
        if old_value is None:
            return new_value
        if new_value is not None:
            raise self._wrong(old, f"is the old name of `{new}`; give that alone")
        self._warn(old, new)
        return old_value

    def _warn(self, old: str, new: str) -> None:
        call_sites.warn(f"{self._what}: `{old}` is deprecated; use `{new}`.", DeprecationWarning)

    def _path(self, key: str, given: Name | None) -> str | None:
        return None if given is None else path(self._what, key, given)

    def _wrong(self, key: str, problem: str) -> ArgumentError:
        return messages.bad_argument(self._what, key, problem)
