//! Where the fields that we use are in FFmpeg's structures: byte offsets on 64-bit systems, by the
//! major version of libavcodec.
//!
//! Within a major version, FFmpeg only appends fields, so offsets stay the same. `Library::open`
//! checks some of them against the defaults of structures that it has FFmpeg allocate.

/// Offsets that differ between major versions.
#[derive(Clone, Copy, Debug)]
pub struct Abi {
    pub stream_codecpar: usize,
    pub stream_time_base: usize,
    pub stream_start_time: usize,
    pub stream_duration: usize,
    pub stream_discard: usize,
    pub stream_avg_frame_rate: usize,
    /// Side data of the file's header; older versions have a function instead.
    pub codecpar_side_data: Option<usize>,
    pub codecpar_format: usize,
    pub codecpar_width: usize,
    pub codecpar_height: usize,
    pub codecpar_color_space: usize,
    pub frame_flags: usize,
    pub frame_color_range: usize,
    pub frame_colorspace: usize,
    pub frame_best_effort_timestamp: usize,
    pub frame_sample_rate: usize,
    /// An `AVChannelLayout`: its order, and then the number of channels.
    pub frame_ch_layout: usize,
}

// The same in all versions.
pub const FORMAT_IFORMAT: usize = 8;
pub const FORMAT_PB: usize = 32;
pub const FORMAT_NB_STREAMS: usize = 44;
pub const FORMAT_STREAMS: usize = 48;
/// `AVInputFormat.name`, the first field.
pub const IFORMAT_NAME: usize = 0;
/// `AVIOContext.buffer`, after the class.
pub const IO_BUFFER: usize = 8;
pub const CODECPAR_CODEC_TYPE: usize = 0;
pub const CODECPAR_CODEC_ID: usize = 4;
pub const CODECPAR_EXTRADATA: usize = 16;
pub const CODECPAR_EXTRADATA_SIZE: usize = 24;
pub const PACKET_PTS: usize = 8;
pub const PACKET_DTS: usize = 16;
pub const PACKET_DATA: usize = 24;
pub const PACKET_SIZE: usize = 32;
pub const PACKET_STREAM_INDEX: usize = 36;
pub const PACKET_FLAGS: usize = 40;
pub const PACKET_DURATION: usize = 64;
pub const PACKET_POS: usize = 72;
pub const FRAME_DATA: usize = 0;
pub const FRAME_LINESIZE: usize = 64;
pub const FRAME_EXTENDED_DATA: usize = 96;
pub const FRAME_WIDTH: usize = 104;
pub const FRAME_HEIGHT: usize = 108;
pub const FRAME_NB_SAMPLES: usize = 112;
pub const FRAME_FORMAT: usize = 116;
pub const FRAME_PTS: usize = 136;

const FFMPEG_6: Abi = Abi {
    stream_codecpar: 16,
    stream_time_base: 32,
    stream_start_time: 40,
    stream_duration: 48,
    stream_discard: 68,
    stream_avg_frame_rate: 88,
    codecpar_side_data: None,
    codecpar_format: 28,
    codecpar_width: 56,
    codecpar_height: 60,
    codecpar_color_space: 88,
    frame_flags: 316,
    frame_color_range: 320,
    frame_colorspace: 332,
    frame_best_effort_timestamp: 344,
    frame_sample_rate: 208,
    frame_ch_layout: 448,
};

const FFMPEG_5: Abi = Abi {
    stream_codecpar: 208,
    stream_time_base: 16,
    stream_start_time: 24,
    stream_duration: 32,
    stream_discard: 52,
    stream_avg_frame_rate: 72,
    ..FFMPEG_6
};

const FFMPEG_7: Abi = Abi {
    codecpar_side_data: Some(32),
    codecpar_format: 44,
    codecpar_width: 72,
    codecpar_height: 76,
    codecpar_color_space: 112,
    frame_flags: 292,
    frame_color_range: 296,
    frame_colorspace: 308,
    frame_best_effort_timestamp: 320,
    frame_sample_rate: 192,
    frame_ch_layout: 408,
    ..FFMPEG_6
};

const FFMPEG_8: Abi = Abi {
    frame_flags: 276,
    frame_color_range: 280,
    frame_colorspace: 292,
    frame_best_effort_timestamp: 304,
    frame_sample_rate: 180,
    frame_ch_layout: 384,
    ..FFMPEG_7
};

/// The version of libavutil from which frames have channel layouts (FFmpeg 5.1).
pub const CHANNEL_LAYOUTS: u32 = 57 << 16 | 28 << 8;

/// Major versions of libavcodec, libavformat and libavutil that belong together, newest first.
pub const VERSIONS: &[([u32; 3], Abi)] = &[
    ([63, 63, 61], FFMPEG_8),
    ([62, 62, 60], FFMPEG_8),
    ([61, 61, 59], FFMPEG_7),
    ([60, 60, 58], FFMPEG_6),
    ([59, 59, 57], FFMPEG_5),
];
