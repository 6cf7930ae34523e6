//! Tests of all codecs over the files in tests/data/images.

use std::path::Path;

use super::*;
use crate::value::DType;

type Codec = (fn(&[u8]) -> Result<Header, Problem>, fn(&[u8]) -> Result<Pixels, Problem>);

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/images")
}

fn codec(name: &str) -> Codec {
    match name.rsplit('.').next() {
        Some("png") => (png::header, png::decode),
        Some("bmp") => (bmp::header, bmp::decode),
        Some("pbm" | "pgm" | "ppm" | "pam") => (pnm::header, pnm::decode),
        Some("webp") => (webp::header, webp::decode),
        Some("tif") => (tiff::header, tiff::decode),
        Some("gif") => (gif::header, gif::decode),
        Some("jp2" | "j2k") => (jpeg2000::header, jpeg2000::decode),
        _ => panic!("{name}: no codec"),
    }
}

fn files() -> Vec<(String, Vec<u8>)> {
    let table = std::fs::read_to_string(folder().join("pixels.txt")).unwrap();
    let names = table.lines().map(|line| line.split(' ').next().unwrap().to_owned());
    names.map(|name| (name.clone(), std::fs::read(folder().join(&name)).unwrap())).collect()
}

/// Type and little-endian bytes.
fn bytes(data: &Data) -> (DType, Vec<u8>) {
    match data {
        Data::U8(data) => (DType::U8, data.clone()),
        Data::U16(data) => (DType::U16, data.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Data::I16(data) => (DType::I16, data.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Data::F32(data) => (DType::F32, data.iter().flat_map(|n| n.to_le_bytes()).collect()),
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

#[test]
fn every_file_has_the_pixels_that_were_put_in() {
    let table = std::fs::read_to_string(folder().join("pixels.txt")).unwrap();
    let mut wrong = Vec::new();
    for (line, (name, file)) in table.lines().zip(files()) {
        let (header, decode) = codec(&name);
        let found = header(&file).and_then(|header| Ok((header, decode(&file)?)));
        let found = match found {
            Ok((header, pixels)) => {
                let (dtype, bytes) = bytes(&pixels.data);
                let claimed = (header.height, header.width, header.channels, header.dtype);
                let shape = (pixels.height, pixels.width, pixels.color.channels(), dtype);
                assert_eq!(claimed, shape, "{name}: header and pixels differ");
                let (height, width, channels, _) = shape;
                assert_eq!(bytes.len(), height * width * channels * dtype.size(), "{name}");
                let sum =
                    if line.ends_with('-') { "-".into() } else { format!("{:08x}", crc32(&bytes)) };
                let dtype = match dtype {
                    DType::U8 => "uint8",
                    DType::U16 => "uint16",
                    DType::I16 => "int16",
                    _ => "float32",
                };
                let turn = header.orientation;
                format!("{name} {height} {width} {channels} {dtype} {turn} {sum}")
            }
            Err(why) => format!("{name} {why:?}"),
        };
        if found != line {
            wrong.push(format!("  wanted {line}\n  found  {found}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_file_that_ends_early_is_refused() {
    for (name, file) in files() {
        let (_, decode) = codec(&name);
        // In some files, pixels don't reach the end: a second frame, metadata or tags follow.
        if name.contains("animated") || name.contains("turned.webp") || name.ends_with("gif") {
            continue;
        }
        for part in [0, 1, 2, 5] {
            let cut = file.len() * part / 10;
            assert!(decode(&file[..cut]).is_err(), "{name} cut to {cut} of {}", file.len());
        }
    }
}

#[test]
fn damaged_files_do_no_harm() {
    let rounds: u64 = std::env::var("FUZZ_ROUNDS").map_or(40, |rounds| rounds.parse().unwrap());
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for (name, file) in files() {
        let (header, decode) = codec(&name);
        for _ in 0..rounds {
            let mut file = file.clone();
            for _ in 0..=random(4) {
                let at =
                    if random(2) == 0 { random(64.min(file.len())) } else { random(file.len()) };
                match random(6) {
                    0 => file[at] ^= 1 << random(8),
                    1 => file[at] = [0, 1, 0x7f, 0x80, 0xff][random(5)],
                    2 => file[at] = random(256) as u8,
                    3 => file.truncate(at.max(1)),
                    4 => file.insert(at, random(256) as u8),
                    _ => {
                        let end = (at + 4).min(file.len());
                        file[at..end].fill([0, 0xff, 0x7f][random(3)]);
                    }
                }
            }
            let started = std::time::Instant::now();
            let found = header(&file);
            // These are refused before decoding.
            let lies = |header: &Header| {
                file.len() < header.smallest || header.scratch > bounds::max_bytes()
            };
            if found.as_ref().is_ok_and(lies) {
                continue;
            }
            if let (Ok(header), Ok(pixels)) = (&found, &decode(&file)) {
                assert_eq!((header.height, header.width), (pixels.height, pixels.width), "{name}");
                assert_eq!(header.channels, pixels.color.channels(), "{name}");
            }
            let took = started.elapsed().as_secs_f32();
            assert!(took < 20.0, "{name}: {took} s for {found:?}");
        }
    }
}
