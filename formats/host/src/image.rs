//! Images in the bytes of their files.

/// Why a build without decoders rejects functions of images.
pub const NO_IMAGES: &str = "this build of the runtime decodes no images (cargo feature `images`)";

/// The channels of decoded pixels, from first to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelFormat {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Luma, as ITU-R BT.601 weights the channels.
    Grayscale,
}

impl PixelFormat {
    /// All formats, by name.
    const NAMES: [(&'static str, Self); 3] =
        [("RGB", Self::Rgb), ("BGR", Self::Bgr), ("Grayscale", Self::Grayscale)];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rgb => "RGB",
            Self::Bgr => "BGR",
            Self::Grayscale => "Grayscale",
        }
    }

    /// The number of channels.
    pub const fn channels(self) -> usize {
        match self {
            Self::Rgb | Self::Bgr => 3,
            Self::Grayscale => 1,
        }
    }

    /// The format with a name.
    ///
    /// # Errors
    /// An unknown name.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, format)| *format)
            .ok_or_else(|| format!("expected the pixel format RGB, BGR or Grayscale, found {name}"))
    }
}

/// A decoded image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    /// Rows and columns.
    pub size: [i64; 2],
    /// The channels of each pixel, row by row.
    pub bytes: Vec<u8>,
}

/// Decodes an image; one that cannot be decoded has no pixels, as ONNX defines it.
///
/// # Errors
/// An image that is too large; any image without the cargo feature `images`.
pub fn decode(file: &[u8], format: PixelFormat) -> Result<Pixels, String> {
    match decoder::decode(file, format) {
        Ok(pixels) => Ok(pixels),
        #[cfg(feature = "images")]
        Err(Error::Damaged) => Ok(Pixels { size: [0, 0], bytes: vec![] }),
        Err(Error::Rejected(message)) => Err(message),
    }
}

/// Why there is no image.
enum Error {
    /// Its format is unknown, or it is not a valid file.
    #[cfg(feature = "images")]
    Damaged,
    /// It is not decoded.
    Rejected(String),
}

#[cfg(feature = "images")]
mod decoder {
    use super::{Error, PixelFormat, Pixels};
    use hayro_jpeg2000::{DecodeSettings, DecoderContext, Image};
    use image::{DynamicImage, GrayAlphaImage, GrayImage, ImageDecoder, ImageReader, Limits};
    use image::{RgbImage, RgbaImage};
    use std::io::Cursor;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Maximum number of pixels of an image.
    const MAX_PIXELS: u64 = 1 << 26;

    /// Maximum number of bytes of an image as its decoder writes it, and of what the decoder needs besides.
    const MAX_BYTES: u64 = 1 << 29;

    /// Maximum number of components of a JPEG 2000 image.
    const MAX_COMPONENTS: u16 = 4;

    /// The first bytes of JPEG 2000: a file, or a codestream alone.
    const JPEG_2000: [&[u8]; 2] = [b"\x00\x00\x00\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51"];

    pub(super) fn decode(file: &[u8], format: PixelFormat) -> Result<Pixels, Error> {
        let image = match JPEG_2000.iter().any(|magic| file.starts_with(magic)) {
            true => caught(|| jpeg_2000(file))?,
            false => caught(|| other(file))?,
        };
        let size = [i64::from(image.height()), i64::from(image.width())];
        Ok(Pixels { size, bytes: channels(image, format) })
    }

    /// A panic of a decoder must not cross the interface to a compiled program: the image is damaged.
    fn caught<T>(decode: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        catch_unwind(AssertUnwindSafe(decode)).unwrap_or(Err(Error::Damaged))
    }

    fn check_size(width: u32, height: u32, bytes: u64) -> Result<(), Error> {
        if u64::from(width) * u64::from(height) <= MAX_PIXELS && bytes <= MAX_BYTES {
            return Ok(());
        }
        let message =
            format!("expected an image of at most {MAX_PIXELS} pixels, found {width}x{height}");
        Err(Error::Rejected(message))
    }

    /// An image of a format that [`image`] knows.
    fn other(file: &[u8]) -> Result<DynamicImage, Error> {
        let reader = ImageReader::new(Cursor::new(file)).with_guessed_format();
        let mut reader = reader.map_err(|_| Error::Damaged)?;
        let mut limits = Limits::default();
        limits.max_alloc = Some(MAX_BYTES);
        reader.limits(limits);
        let decoder = reader.into_decoder().map_err(|_| Error::Damaged)?;
        let (width, height) = decoder.dimensions();
        check_size(width, height, decoder.total_bytes())?;
        DynamicImage::from_decoder(decoder).map_err(|_| Error::Damaged)
    }

    fn jpeg_2000(file: &[u8]) -> Result<DynamicImage, Error> {
        // The decoder allocates memory for all components, of which a file may claim 16384.
        if components(file).any(|count| count > MAX_COMPONENTS) {
            let message =
                format!("expected at most {MAX_COMPONENTS} components in a JPEG 2000 image");
            return Err(Error::Rejected(message));
        }
        let image = Image::new(file, &DecodeSettings::default()).map_err(|_| Error::Damaged)?;
        let (width, height) = (image.width(), image.height());
        check_size(width, height, 0)?;
        let mut context = DecoderContext::default();
        let decoded = image.decode(&mut context).map_err(|_| Error::Damaged)?;
        let data = decoded.data_u8();
        let found = match (decoded.components().len(), image.has_alpha()) {
            (1, _) => GrayImage::from_raw(width, height, data).map(DynamicImage::from),
            (2, true) => GrayAlphaImage::from_raw(width, height, data).map(DynamicImage::from),
            (3, _) => RgbImage::from_raw(width, height, data).map(DynamicImage::from),
            (4, true) => RgbaImage::from_raw(width, height, data).map(DynamicImage::from),
            _ => None,
        };
        let message = || "expected a JPEG 2000 image in gray or RGB".to_owned();
        found.ok_or_else(|| Error::Rejected(message()))
    }

    /// The numbers of components that the headers of JPEG 2000 codestreams state.
    fn components(file: &[u8]) -> impl Iterator<Item = u16> + '_ {
        let count = |header: &[u8]| u16::from_be_bytes([header[40], header[41]]);
        file.windows(42).filter(|header| header.starts_with(JPEG_2000[1])).map(count)
    }

    fn channels(image: DynamicImage, format: PixelFormat) -> Vec<u8> {
        match format {
            PixelFormat::Rgb => image.into_rgb8().into_raw(),
            PixelFormat::Bgr => {
                let mut bytes = image.into_rgb8().into_raw();
                bytes.chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2));
                bytes
            }
            PixelFormat::Grayscale if image.color().has_color() => {
                image.into_rgb8().pixels().map(|pixel| luma(pixel.0)).collect()
            }
            PixelFormat::Grayscale => image.into_luma8().into_raw(),
        }
    }

    /// The luma of a pixel, with weights in fixed point that sum to 2^16; half is added to round.
    fn luma([r, g, b]: [u8; 3]) -> u8 {
        let sum = u32::from(r) * 19595 + u32::from(g) * 38470 + u32::from(b) * 7471;
        ((sum + (1 << 15)) >> 16) as u8
    }
}

/// A build without decoders.
#[cfg(not(feature = "images"))]
mod decoder {
    use super::{Error, PixelFormat, Pixels};

    pub(super) fn decode(_: &[u8], _: PixelFormat) -> Result<Pixels, Error> {
        Err(Error::Rejected(super::NO_IMAGES.to_owned()))
    }
}

#[cfg(all(test, feature = "images"))]
mod tests {
    use super::*;
    use image::{ImageFormat, RgbImage};
    use std::io::Cursor;

    /// A JPEG 2000 codestream of 3 columns and 2 rows, lossless, written by OpenJPEG.
    const JPEG_2000: &str = "ff4fff51002f00000000000300000002000000000000000000000003000000020000000000000000\
        0003070101070101070101ff52000c00000001000104040001ff5c00074040484850ff6400250001\
        43726561746564206279204f70656e4a5045472076657273696f6e20322e352e34ff90000a000000\
        0000290001ff93df802006eaff7fc3e70608515fcfb40c03831380a7e00601c7af80ffd9";

    /// Rows and columns of different sizes, with colours that differ in all channels.
    fn drawing() -> RgbImage {
        RgbImage::from_fn(3, 2, |x, y| {
            image::Rgb([x as u8 * 90, y as u8 * 200, 250 - x as u8 * 70])
        })
    }

    fn written(format: ImageFormat) -> Vec<u8> {
        let mut file = Cursor::new(vec![]);
        drawing().write_to(&mut file, format).expect("the format can be written");
        file.into_inner()
    }

    #[test]
    fn lossless_formats_keep_every_pixel() {
        let pixels = drawing().into_raw();
        let jpeg_2000 = JPEG_2000.as_bytes().chunks(2).map(|digits| {
            let digits = std::str::from_utf8(digits).expect("ASCII");
            u8::from_str_radix(digits, 16).expect("hexadecimal")
        });
        let formats = [
            ImageFormat::Bmp,
            ImageFormat::Png,
            ImageFormat::Pnm,
            ImageFormat::Tiff,
            ImageFormat::WebP,
        ];
        let files = formats.map(written).into_iter().chain([jpeg_2000.collect()]);
        for file in files {
            let found = decode(&file, PixelFormat::Rgb).expect("valid");
            assert_eq!((found.size, &found.bytes), ([2, 3], &pixels));
            let mut found = decode(&file, PixelFormat::Bgr).expect("valid").bytes;
            found.chunks_exact_mut(3).for_each(<[u8]>::reverse);
            assert_eq!(found, pixels);
            // As Pillow converts the same pixels to `L`.
            let gray = decode(&file, PixelFormat::Grayscale).expect("valid").bytes;
            assert_eq!(gray, [28, 47, 66, 146, 165, 184]);
        }
    }

    #[test]
    fn a_jpeg_is_close_to_its_pixels() {
        let gray = image::GrayImage::from_pixel(8, 8, image::Luma([77]));
        let mut file = Cursor::new(vec![]);
        gray.write_to(&mut file, ImageFormat::Jpeg).expect("JPEG can be written");
        let found = decode(&file.into_inner(), PixelFormat::Bgr).expect("valid");
        assert_eq!((found.size, found.bytes), ([8, 8], vec![77; 192]));
    }

    #[test]
    fn what_is_no_image_has_no_pixels() {
        let mut cut = written(ImageFormat::Png);
        cut.truncate(40);
        for file in [&b""[..], b"GIF89a", &cut] {
            assert_eq!(decode(file, PixelFormat::Rgb).expect("no error").size, [0, 0]);
        }
    }

    #[test]
    fn an_image_that_claims_to_be_huge_is_rejected() {
        let expected = "expected an image of at most 67108864 pixels, found 60000x60000";
        let message = decode(b"P6 60000 60000 255\n", PixelFormat::Rgb).expect_err("too large");
        assert_eq!(message, expected);
        let mut bmp = written(ImageFormat::Bmp);
        bmp[18..26].copy_from_slice(&[60000u32.to_le_bytes(); 2].concat());
        assert_eq!(decode(&bmp, PixelFormat::Rgb).expect_err("too large"), expected);
    }
}
