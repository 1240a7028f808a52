//! One workload: a part of a layer, run by one core.

use super::{Buffer, Coords, Extent, Ids, OneOrMany, Target, Tiles, Wl0Row};
use crate::record::{Nullable, names, record};

names! {
    /// The kind of a layer: in dialect A the engine that runs it, in the others its operation.
    pub enum LayerKind {
        /// The PE array: convolutions, matrix products.
        Pe = "pe",
        /// The vector processor.
        Vp = "vp",
        /// Data transformation.
        Dt = "dt",
        /// A convolution.
        Conv2d = "conv2d",
        /// A fully connected layer.
        Fc = "fc",
        /// A pooling.
        Pool = "pool",
        /// Elementwise arithmetic.
        ElementWise = "element_wise",
        /// A function of single elements.
        PointToPoint = "point_to_point",
    }
}

record! {
    /// A part of a layer, run by one core.
    pub struct Workload {
        /// Contents of the L2 buffer before it starts.
        buffer: Buffer,
        /// Its operands: in dialect A one entry for each input tensor, in the others one for all
        /// in the space of concatenated channels.
        ifmap: Option<OneOrMany<Ifmap>>,
        /// The layer.
        layer_name: String,
        /// The kind of the layer; SET omits it for some.
        layer_type: Option<LayerKind>,
        /// Its results and their users; in dialect C they are in the buffer.
        ofmap: Option<Vec<Ofmap>>,
        /// Bytes of the result in dialect A, bits in the others.
        ofmap_size: i64,
        /// Regions of the L2 buffer `[start, end]` within which addresses wrap, in dialect A.
        ring_buffer_info: Option<Vec<[i64; 2]>>,
        /// Tiles, in dialect A.
        tile_info: Option<Tiles>,
        /// Padding at top, bottom, left and right; that of another layer if `vp` runs it.
        tile_padding_tblr: Option<[i64; 4]>,
        /// Estimated cycles.
        time: i64,
        /// The weights it reads.
        weight: Option<Weight>,
        /// Contents of WL0 before it starts, in dialect A.
        wl0_buffer: Option<Nullable<Vec<Wl0Row>>>,
        /// The same under the name used by some published files.
        wl1_buffer: Option<Nullable<Vec<Wl0Row>>>,
        /// Its part of the layer's result, absolute.
        "workload" as extent: Extent,
        /// Its id: in dialect A its index on the core, in the others unique.
        workload_id: i64,
    }

    /// An operand of a workload that is read as activations.
    pub struct Ifmap {
        /// Channels are padded to a multiple of this.
        align: Option<i64>,
        /// Bits per element.
        bitwidth: Option<i64>,
        /// First corner: in dialect A relative to the resident tensor's own.
        lower: Coords,
        /// The last producer of some of it, in dialects B and C.
        max_workload_id: Option<i64>,
        /// Bytes, in dialect A.
        size: Option<i64>,
        /// Its transfers.
        transfer_id: Ids,
        /// Last corner.
        upper: Coords,
    }

    /// An operand of a workload that is read as weights.
    pub struct Weight {
        /// Whether it is activations that serve as weights.
        from_ofmap: Option<bool>,
        /// First corner: `[0, K, C, R*S]` in dialect A, K in the others.
        lower: Coords,
        /// The last producer of some of it.
        max_workload_id: Option<i64>,
        /// Bytes in dialect A, bits in the others.
        size: Option<i64>,
        /// Its transfers; SET omits them for some products of activations.
        transfer_id: Option<Ids>,
        /// Last corner.
        upper: Coords,
    }

    /// A part of a workload's result and its users.
    pub struct Ofmap {
        /// The users.
        destination: Vec<Target>,
        /// First corner: in dialect A relative to the workload's own.
        lower: Coords,
        /// Bytes in dialect A, bits in the others.
        size: i64,
        /// Its transfer.
        transfer_id: i64,
        /// Last corner.
        upper: Coords,
    }
}

impl Workload {
    /// Its operands that are read as activations.
    pub fn ifmaps(&self) -> &[Ifmap] {
        self.ifmap.as_ref().map_or(&[], OneOrMany::as_slice)
    }

    /// Its results, if the workload itself states them.
    pub fn ofmaps(&self) -> &[Ofmap] {
        self.ofmap.as_deref().unwrap_or_default()
    }

    /// Contents of WL0, from whichever key states them.
    pub fn wl0(&self) -> &[Wl0Row] {
        match self.wl0_buffer.as_ref().or(self.wl1_buffer.as_ref()) {
            Some(Nullable(Some(rows))) => rows,
            _ => &[],
        }
    }

    /// The key that states the contents of WL0.
    pub fn wl0_key(&self) -> &'static str {
        if self.wl0_buffer.is_none() && self.wl1_buffer.is_some() {
            "wl1_buffer"
        } else {
            "wl0_buffer"
        }
    }

    /// Its tiles, in the order of the file.
    pub fn tiles(&self) -> impl Iterator<Item = &super::Tile> {
        self.tile_info.iter().flat_map(|info| info.tiles.iter().map(|(_, tile)| tile))
    }

    /// The ring regions of the L2 buffer.
    pub fn regions(&self) -> &[[i64; 2]] {
        self.ring_buffer_info.as_deref().unwrap_or_default()
    }
}

impl Ifmap {
    /// Its box.
    pub fn extent(&self) -> Extent {
        Extent { lower: self.lower, upper: self.upper }
    }
}

impl Weight {
    /// Its box.
    pub fn extent(&self) -> Extent {
        Extent { lower: self.lower, upper: self.upper }
    }

    /// Its output channels, if it is weights.
    pub fn channels(&self) -> Option<(i64, i64)> {
        let axis = match self.lower.values().len() {
            1 => 0,
            4 => 1,
            _ => return None,
        };
        Some(self.extent().axis(axis))
    }

    /// Its transfers.
    pub fn transfers(&self) -> impl Iterator<Item = i64> + use<'_> {
        self.transfer_id.iter().flat_map(Ids::iter)
    }
}

impl Ofmap {
    /// Its box.
    pub fn extent(&self) -> Extent {
        Extent { lower: self.lower, upper: self.upper }
    }
}
