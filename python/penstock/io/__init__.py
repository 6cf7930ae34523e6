"""Reading plain data."""

from penstock._public import attach as _attach
from penstock.io._video import VideoInfo as VideoInfo
from penstock.io._video import video_info as video_info

_attach(__name__)
