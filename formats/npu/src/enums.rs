//! Named values of instruction fields.
//!
//! A listing prints them as `<DataFmt.INT8: 1>`: class, name, number. Only the names in the
//! published programs are known; a program with another name is rejected.

/// A class of named values.
pub trait Named: Copy + Sized + 'static {
    /// Name of the class, as printed.
    const CLASS: &'static str;
    /// Every value with its name and number.
    const ALL: &'static [(Self, &'static str, u8)];
}

macro_rules! named {
    ($($(#[$doc:meta])* $class:ident $print:literal {
        $($(#[$value_doc:meta])* $value:ident $name:literal = $number:literal,)+
    })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $class { $($(#[$value_doc])* $value = $number,)+ }

        impl Named for $class {
            const CLASS: &'static str = $print;
            const ALL: &'static [(Self, &'static str, u8)] =
                &[$((Self::$value, $name, $number),)+];
        }
    )+};
}

/// Name and number of a value.
pub fn name_of<E: Named + PartialEq>(value: E) -> (&'static str, u8) {
    let row = E::ALL.iter().find(|(other, ..)| *other == value);
    row.map(|(_, name, number)| (*name, *number)).expect("a value of the table")
}

/// The value with a number.
pub fn of_number<E: Named>(number: u8) -> Option<E> {
    E::ALL.iter().find(|row| row.2 == number).map(|row| row.0)
}

named! {
    /// Format of elements.
    DataFmt "DataFmt" {
        /// Eight-bit integers; channels are padded to 8.
        Int8 "INT8" = 1,
        /// Half-precision floats; channels are padded to 4.
        Fp16 "FP16" = 3,
    }
    /// Whether integers are signed.
    DataSign "DataSign" {
        /// They are not: this project's choice, as published programs have signed ones only.
        Unsigned "UNSIGNED" = 0,
        /// They are.
        Signed "SIGNED" = 1,
    }
    /// The value that a comparison selects.
    Cmps "CMPS" {
        /// No comparison.
        Default "DEFAULT" = 0,
        /// The maximum.
        Max "MAX" = 1,
    }
    /// Mode of sum group 0.
    Sg0m "SG0M" {
        /// Addition.
        Default "DEFAULT" = 0,
    }
    /// Mode of product group 0.
    Mg0s "MG0S" {
        /// The only published value.
        Default "DEFAULT" = 0,
    }
    /// Mode of sum group 1.
    Sg1m "SG1M" {
        /// The only published value.
        Default "DEFAULT" = 0,
    }
    /// Mode of the scalar sum.
    Summ "SUMM" {
        /// The only published value.
        Default "DEFAULT" = 0,
    }
    /// Rounding of floats to integers.
    Float2Fixed "Float2Fixed" {
        /// Up; used by programs without a conversion.
        Ceil "CEIL" = 0,
        /// To nearest.
        Round "ROUND" = 2,
    }
    /// Mode of quantisation.
    Qsmd "QSMD" {
        /// The zero point is added.
        Default "DEFAULT" = 0,
    }
    /// Dimensions of a comparison.
    Cmpd "CMPD" {
        /// The only published value.
        Default "DEFAULT" = 0,
    }
    /// Dimensions of the reduction tree.
    Treed "TREED" {
        /// The only published value.
        Default "DEFAULT" = 0,
    }
    /// Dimensions of accumulation.
    Accd "ACCD" {
        /// The only published value.
        Default "DEFAULT" = 0,
    }
    /// Register for scalar results.
    Swrs "SWRS" {
        /// The only published value.
        Default "DEFAULT" = 0,
    }
    /// How the columns of the array divide the work.
    XCutMode "XCutMode" {
        /// Along output channels.
        CutK "CUT_K" = 3,
    }
    /// How the rows of the array divide the work.
    YCutMode "YCutMode" {
        /// Along the width.
        CutW "CUT_W" = 0,
        /// Along the height.
        CutH "CUT_H" = 1,
        /// Along the batch.
        CutN "CUT_N" = 2,
        /// Along output channels.
        CutK "CUT_K" = 3,
        /// Along input channels.
        CutC "CUT_C" = 4,
    }
    /// Activation after a convolution.
    ActMode "ActMode" {
        /// None.
        Disable "DISABLE" = 0,
        /// Negative values become zero.
        Relu "RELU" = 1,
    }
}

impl DataSign {
    /// The value of a byte.
    pub fn value(self, byte: u8) -> i16 {
        match self {
            Self::Unsigned => byte.into(),
            Self::Signed => byte.cast_signed().into(),
        }
    }
}

impl DataFmt {
    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Int8 => 1,
            Self::Fp16 => 2,
        }
    }

    /// Bytes of a pixel with so many channels in L2: padded to eight bytes.
    pub fn pixel(self, channels: u32) -> u64 {
        (u64::from(channels) * self.bytes()).next_multiple_of(8)
    }
}
