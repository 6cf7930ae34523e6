//! What is in front of the image data.

use std::rc::Rc;

use super::huffman::{Class, Codes, ZIGZAG};

pub struct Component {
    /// Blocks of it in a unit of the scan, down and across.
    pub sampling: [usize; 2],
    pub quantizer: usize,
    pub dc: usize,
    pub ac: usize,
}

pub struct Frame<'a> {
    pub height: usize,
    pub width: usize,
    pub components: Vec<Component>,
    pub quantizers: [Option<[i16; 64]>; 4],
    pub dc: [Option<Rc<Codes>>; 4],
    pub ac: [Option<Rc<Codes>>; 4],
    /// Units between restart markers; 0 for none.
    pub restart: usize,
    pub data: &'a [u8],
}

impl<'a> Frame<'a> {
    pub fn parse(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let mut frame = Frame {
            height: 0,
            width: 0,
            components: Vec::new(),
            quantizers: [None; 4],
            dc: [const { None }; 4],
            ac: [const { None }; 4],
            restart: 0,
            data: &[],
        };
        let mut ids = Vec::new();
        let mut rest = bytes.strip_prefix(&[0xff, 0xd8])?;
        loop {
            let (&[0xff, marker], after) = rest.split_first_chunk()? else { return None };
            if marker == 0xff {
                rest = &rest[1..];
                continue;
            }
            let (&length, _) = after.split_first_chunk()?;
            let length = usize::from(u16::from_be_bytes(length));
            let segment = after.get(2..length)?;
            rest = &after[length..];
            match marker {
                0xc0 | 0xc1 if ids.is_empty() => ids = frame.size(segment)?,
                0xc4 => frame.codes(segment)?,
                0xdb => frame.quantizers(segment)?,
                0xdd => frame.restart = usize::from(u16::from_be_bytes(segment.try_into().ok()?)),
                0xda => {
                    frame.scan(segment, &ids)?;
                    frame.data = rest;
                    return Some(frame);
                }
                0xe0..=0xef | 0xfe => {}
                _ => return None,
            }
        }
    }

    /// Reads the size and the components, and returns the numbers that they have.
    fn size(&mut self, segment: &[u8]) -> Option<Vec<u8>> {
        let (&[8, h0, h1, w0, w1, count], parts) = segment.split_first_chunk()? else {
            return None;
        };
        self.height = usize::from(u16::from_be_bytes([h0, h1]));
        self.width = usize::from(u16::from_be_bytes([w0, w1]));
        let parts = parts.as_chunks::<3>().0;
        if self.height == 0 || self.width == 0 || parts.len() != usize::from(count) {
            return None;
        }
        let samplings: &[u8] = &parts.iter().map(|part| part[1]).collect::<Vec<u8>>();
        let samplings: &[[usize; 2]] = match samplings {
            [_] => &[[1, 1]],
            [0x11, 0x11, 0x11] => &[[1, 1]; 3],
            [0x21, 0x11, 0x11] => &[[1, 2], [1, 1], [1, 1]],
            [0x22, 0x11, 0x11] => &[[2, 2], [1, 1], [1, 1]],
            _ => return None,
        };
        for (part, &sampling) in parts.iter().zip(samplings) {
            let quantizer = usize::from(part[2]);
            self.components.push(Component { sampling, quantizer, dc: 0, ac: 0 });
        }
        Some(parts.iter().map(|part| part[0]).collect())
    }

    fn quantizers(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((&kind, after)) = segment.split_first() {
            // Of 8 or 16 bits.
            let wide = match kind >> 4 {
                0 => 1,
                1 => 2,
                _ => return None,
            };
            let values = after.get(..64 * wide)?;
            let table = self.quantizers.get_mut(usize::from(kind & 15))?.insert([0; 64]);
            for (index, value) in values.chunks_exact(wide).enumerate() {
                let value = value.iter().fold(0, |all, &byte| (all << 8) | u16::from(byte));
                table[usize::from(ZIGZAG[index])] = i16::try_from(value).ok()?;
            }
            segment = &after[64 * wide..];
        }
        Some(())
    }

    fn codes(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((&kind, after)) = segment.split_first() {
            let (counts, after) = after.split_first_chunk::<16>()?;
            let total = counts.iter().map(|&count| usize::from(count)).sum();
            let symbols = after.get(..total)?;
            let (class, tables) = match kind >> 4 {
                0 => (Class::Dc, &mut self.dc),
                1 => (Class::Ac, &mut self.ac),
                _ => return None,
            };
            *tables.get_mut(usize::from(kind & 15))? = Some(Codes::of(class, counts, symbols)?);
            segment = &after[total..];
        }
        Some(())
    }

    /// Reads which codes the components have. All of them must be in this scan.
    fn scan(&mut self, segment: &[u8], ids: &[u8]) -> Option<()> {
        let (&count, parts) = segment.split_first()?;
        let (parts, last) = parts.split_at_checked(2 * usize::from(count))?;
        if last != [0, 63, 0] || usize::from(count) != ids.len() || ids.is_empty() {
            return None;
        }
        for ((part, id), component) in
            parts.as_chunks::<2>().0.iter().zip(ids).zip(&mut self.components)
        {
            if part[0] != *id {
                return None;
            }
            component.dc = usize::from(part[1] >> 4);
            component.ac = usize::from(part[1] & 15);
        }
        Some(())
    }
}
