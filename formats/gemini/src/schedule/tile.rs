//! Tiles of a workload: the choices of the intra-core compiler, in dialect A.

use irc_json::{At, Json, Node, Number, Reader};

use super::{Coords, Extent};
use crate::record::{Extra, Field, names, record};

names! {
    /// The axes along which a tile is divided over the two dimensions of the PE array.
    pub enum CutMode {
        /// K and C.
        Kc = "KC",
        /// K and H.
        Kh = "KH",
        /// K twice.
        Kk = "KK",
        /// K and N.
        Kn = "KN",
        /// K and W.
        Kw = "KW",
    }
}

record! {
    /// A tile: one instruction of the PE array or the vector processor.
    pub struct Tile {
        /// Mini tile of the input.
        act_mini_tile: Option<[i64; 4]>,
        /// Number of parts along C.
        ci_cut_num: Option<i64>,
        /// How it is divided over the PE array.
        cut_mode: Option<CutMode>,
        /// First corner of its operand, absolute in the layer's input.
        ifmap_lower: Coords,
        /// First corner of the second operand of elementwise layers.
        ifmap_lower2: Option<Coords>,
        /// Last corner of its operand.
        ifmap_upper: Coords,
        /// Last corner of the second operand.
        ifmap_upper2: Option<Coords>,
        /// The layer.
        layer_name: Option<String>,
        /// Order of loops.
        loop_order: Option<String>,
        /// Mini tile along C and K.
        mtc0_mtk0: Option<[i64; 2]>,
        /// First corner of its result, absolute in the layer's result.
        ofmap_lower: Coords,
        /// Last corner of its result.
        ofmap_upper: Coords,
        /// Mini tile of the result.
        out_mini_tile: Option<[i64; 4]>,
        /// Predicted cycles.
        single_tile_time_pred: Option<Number>,
        /// Padding at top, bottom, left and right.
        tile_padding_tblr: [i64; 4],
    }
}

impl Tile {
    /// Its operand.
    pub fn ifmap(&self) -> Extent {
        Extent { lower: self.ifmap_lower, upper: self.ifmap_upper }
    }

    /// The second operand of elementwise layers.
    pub fn ifmap2(&self) -> Option<Extent> {
        Some(Extent { lower: self.ifmap_lower2?, upper: self.ifmap_upper2? })
    }

    /// Its result.
    pub fn ofmap(&self) -> Extent {
        Extent { lower: self.ofmap_lower, upper: self.ofmap_upper }
    }
}

/// The tiles of a workload by number, in the order of the file, which is that of their keys as
/// strings: 0, 1, 10, 2. The published assembler takes them in that order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tiles {
    /// Numbers and tiles.
    pub tiles: Vec<(u32, Tile)>,
    /// Unknown keys, and the order of keys.
    pub extra: Extra,
}

impl Tiles {
    /// Numbers and tiles in the order of their keys as strings, whatever their order here.
    pub fn by_key(&self) -> Vec<(u32, &Tile)> {
        let mut tiles: Vec<(u32, &Tile)> =
            self.tiles.iter().map(|(number, tile)| (*number, tile)).collect();
        tiles.sort_by_cached_key(|(number, _)| number.to_string());
        tiles
    }
}

const PREFIX: &str = "tile_num_";

impl Field for Tiles {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        let members = reader.object(node, at)?.members;
        let (mut tiles, mut unknown) = (vec![], vec![]);
        let mut count = 0;
        for member in members {
            let number = member.key.strip_prefix(PREFIX).and_then(|digits| {
                let number: u32 = digits.parse().ok()?;
                (number.to_string() == digits).then_some(number)
            });
            let Some(number) = number else {
                crate::read::unknown(reader, member, at, &["tile_num_0"]);
                unknown.push((member.key.as_ref().into(), Json::of(&member.value)));
                continue;
            };
            count += 1;
            let tile = Tile::read(reader, &member.value, &at.key(&member.key));
            tiles.extend(tile.map(|tile| (number, tile)));
        }
        let extra = Extra::new(members, unknown);
        (tiles.len() == count).then_some(Tiles { tiles, extra })
    }

    fn write(&self) -> Option<Json> {
        let member = |(number, tile): &(u32, Tile)| {
            Some((format!("{PREFIX}{number}").into(), tile.write()?))
        };
        Some(self.extra.object(self.tiles.iter().filter_map(member).collect()))
    }
}
