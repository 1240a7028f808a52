//! The mutations, as a table.

use serde_json::{Value, json};

use super::File::{self, Allocated, Frontend, Rings, TwoCores};

/// A mutation of a file.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// The expected code.
    pub code: &'static str,
    /// The file.
    pub file: File,
    /// The edits.
    pub edits: Vec<Edit<'static>>,
}

/// A change of one value, by JSON pointer.
#[derive(Debug)]
pub enum Edit<'p> {
    /// The value becomes another, or is added.
    Set(&'p str, Value),
    /// Removes the value.
    Drop(&'p str),
    /// Duplicates the element of an array.
    Repeat(&'p str),
    /// Swaps two values.
    Swap(&'p str, &'p str),
}

impl Edit<'_> {
    /// Applies the edit; returns false if the path does not exist.
    pub fn apply(&self, value: &mut Value) -> bool {
        self.try_on(value).is_some()
    }

    fn try_on(&self, value: &mut Value) -> Option<()> {
        match self {
            Edit::Set(pointer, new) => {
                let (parent, key) = parent(value, pointer)?;
                match parent {
                    Value::Object(members) => drop(members.insert(key.to_owned(), new.clone())),
                    _ => *parent.get_mut(key.parse::<usize>().ok()?)? = new.clone(),
                }
            }
            Edit::Drop(pointer) => {
                let (parent, key) = parent(value, pointer)?;
                match parent {
                    Value::Object(members) => drop(members.remove(key)?),
                    Value::Array(elements) => drop(elements.remove(key.parse().ok()?)),
                    _ => return None,
                }
            }
            Edit::Repeat(pointer) => {
                let element = value.pointer(pointer)?.clone();
                parent(value, pointer)?.0.as_array_mut()?.push(element);
            }
            Edit::Swap(a, b) => {
                let (first, second) = (value.pointer(a)?.clone(), value.pointer(b)?.clone());
                *value.pointer_mut(a)? = second;
                *value.pointer_mut(b)? = first;
            }
        }
        Some(())
    }
}

fn parent<'v, 'p>(value: &'v mut Value, pointer: &'p str) -> Option<(&'v mut Value, &'p str)> {
    let (parent, key) = pointer.rsplit_once('/')?;
    Some((value.pointer_mut(parent)?, key))
}

fn set(pointer: &'static str, value: Value) -> Edit<'static> {
    Edit::Set(pointer, value)
}

/// All mutations.
pub fn all() -> Vec<Row> {
    let mut rows = vec![];
    let mut row = |name, code, file, edits: Vec<Edit<'static>>| {
        rows.push(Row { name, code, file, edits });
    };
    use Edit::{Drop, Repeat, Swap};

    // Form.
    row("a key is missing", "gem-missing-key", Rings, vec![Drop("/buffersize")]);
    row("an address is missing", "gem-missing-key", Rings, vec![Drop("/0/0/buffer/0/address")]);
    row("a block is missing", "gem-missing-key", TwoCores, vec![Drop("/1/0/buffer/0/block")]);
    row("a key is unknown", "gem-unknown-key", Rings, vec![set("/0/0/colour", json!(1))]);
    row("a name is unknown", "gem-unknown-name", Rings, vec![set("/0/0/layer_type", json!("pee"))]);
    row("a kind is unknown", "gem-unknown-name", Rings, vec![set("/-1/out/0/type", json!("x"))]);
    row("a type is wrong", "gem-wrong-type", Rings, vec![set("/0/0/time", json!("long"))]);
    row(
        "an ifmap is no list",
        "gem-wrong-type",
        Rings,
        vec![set(
            "/0/0/ifmap",
            json!({"lower": [0, 0, 0, 0], "upper": [0, 0, 0, 0], "transfer_id": [0]}),
        )],
    );
    row("a number is too large", "gem-range", Rings, vec![set("/0/0/time", json!(1u64 << 60))]);
    row("a mesh is empty", "gem-range", Rings, vec![set("/xlen", json!(0))]);
    row("a size is negative", "gem-range", TwoCores, vec![set("/-1/out/0/size", json!(-8))]);
    row("a box is upside down", "gem-extent", Rings, vec![set("/0/1/workload/0/2", json!(5))]);
    row(
        "a box has three axes",
        "gem-extent",
        Rings,
        vec![set("/0/1/workload/0", json!([0, 0, 0]))],
    );
    row(
        "channels are no range",
        "gem-extent",
        TwoCores,
        vec![set("/1/0/buffer/0/source/0/channel", json!([5, 2]))],
    );
    row(
        "a group has a name",
        "gem-dram-group",
        Allocated,
        vec![set("/DRAM/first", json!({"in": [], "out": []}))],
    );

    // Cores, workloads, layers.
    row(
        "a core is outside the mesh",
        "gem-t1-core",
        TwoCores,
        vec![Swap("/1", "/2"), set("/3", json!([]))],
    );
    row(
        "cores count from 0",
        "gem-t1-plain-cores",
        TwoCores,
        vec![set("/0", json!([])), Drop("/2")],
    );
    row(
        "cores count from 0, a size is of two bytes",
        "gem-w5-other-size",
        TwoCores,
        vec![set("/0", json!([])), Drop("/2"), set("/1/0/ofmap_size", json!(2048))],
    );
    row(
        "cores count from 0, nothing reads a result",
        "gem-o8-unread-result",
        TwoCores,
        vec![set("/0", json!([])), Drop("/2")],
    );
    row(
        "cores count from 0, a destination is not there",
        "gem-o9-no-destination",
        TwoCores,
        vec![set("/0", json!([])), Drop("/2")],
    );
    row(
        "a workload has another's id",
        "gem-w1-workload-id",
        TwoCores,
        vec![set("/1/1/workload_id", json!(0))],
    );
    row(
        "a workload is not at its index",
        "gem-w1-workload-id",
        Rings,
        vec![set("/0/4/workload_id", json!(5))],
    );
    row("workloads change places", "gem-w1-workload-id", TwoCores, vec![Swap("/1/0", "/1/1")]);
    row(
        "a kind of another dialect",
        "gem-w2-layer-type",
        Rings,
        vec![set("/0/0/layer_type", json!("conv2d"))],
    );
    row("no kind", "gem-w2-no-layer-type", TwoCores, vec![Drop("/1/0/layer_type")]);
    row("no weight", "gem-w4-weight", Rings, vec![Drop("/0/6/weight")]);
    row(
        "a weight too many",
        "gem-w4-weight",
        TwoCores,
        vec![set("/1/0/layer_type", json!("pool"))],
    );
    row(
        "workloads overlap",
        "gem-l1-workload-overlap",
        Rings,
        vec![set("/0/2/workload/0/2", json!(3))],
    );
    row("a layer has a gap", "gem-l2-layer-cover", Rings, vec![set("/0/1/workload/1/2", json!(2))]);
    row(
        "a layer begins at 1",
        "gem-l3-layer-origin",
        Rings,
        vec![set("/0/0/workload/0/1", json!(1))],
    );

    // Transfers.
    row(
        "two results share an id",
        "gem-x1-result-id",
        Rings,
        vec![set("/0/1/ofmap/0/transfer_id", json!(2))],
    );
    row(
        "two parts share an id",
        "gem-x1-result-id",
        Allocated,
        vec![set("/1/0/buffer/2/destinations/1/transfer_id", json!(3))],
    );
    row("DRAM takes in twice", "gem-t2-in-id", Rings, vec![Repeat("/-1/in/0")]);
    row("DRAM gives out twice", "gem-t3-out-id", Rings, vec![Repeat("/-1/out/0")]);
    row(
        "an id goes both ways",
        "gem-t4-dram-id",
        Rings,
        vec![set("/-1/in/0/transfer_id", json!(0))],
    );
    row("DRAM's size is wrong", "gem-t5-out-size", TwoCores, vec![set("/-1/out/0/size", json!(8))]);
    row(
        "nobody makes it",
        "gem-f3-producer",
        Rings,
        vec![set("/0/1/ifmap/0/transfer_id/0", json!(99))],
    );
    row("two make it", "gem-f3-producer", Rings, vec![set("/0/1/ofmap/0/transfer_id", json!(0))]);
    row("DRAM does not take it in", "gem-o3-dram-result", Rings, vec![Drop("/-1/in/0")]);
    row(
        "it does not go to DRAM",
        "gem-o3-dram-result",
        Rings,
        vec![Drop("/0/3/ofmap/0/destination/2")],
    );
    row(
        "a destination is not there",
        "gem-o4-destination",
        TwoCores,
        vec![set("/1/0/ofmap/0/destination/0/workload_id", json!(77))],
    );
    row(
        "a destination is on another core",
        "gem-o4-destination",
        TwoCores,
        vec![set("/1/0/ofmap/0/destination/0/id", json!(1))],
    );
    row(
        "a destination has another layer",
        "gem-o4-destination",
        TwoCores,
        vec![set("/1/0/ofmap/0/destination/0/layer_name", json!("e"))],
    );
    row(
        "a user is not sent it",
        "gem-o5-unsent",
        TwoCores,
        vec![Drop("/1/0/ofmap/0/destination/0")],
    );
    row(
        "a destination does not use it",
        "gem-o5-unused",
        TwoCores,
        vec![
            Repeat("/1/0/ofmap/0/destination/0"),
            set("/1/0/ofmap/0/destination/1/workload_id", json!(7)),
            set("/1/0/ofmap/0/destination/1/layer_name", json!("e")),
        ],
    );
    row(
        "a surplus destination",
        "gem-o5-surplus-destination",
        Rings,
        vec![
            Repeat("/0/0/ofmap/0/destination/0"),
            set("/0/0/ofmap/0/destination/2/workload_id", json!(0)),
        ],
    );
    row(
        "it is used before it is computed",
        "gem-o6-use-before-result",
        Rings,
        vec![set("/0/0/ifmap/0/transfer_id/0", json!(4))],
    );
    row(
        "a result is lost",
        "gem-o7-lost-result",
        TwoCores,
        vec![set("/2/3/ofmap/0/destination", json!([]))],
    );

    row(
        "a tile is of another layer",
        "gem-k6-tile-layer",
        Rings,
        vec![set("/0/0/tile_info/tile_num_0/layer_name", json!("l1_conv"))],
    );
    row(
        "a tensor is for another layer",
        "gem-b27-layer",
        TwoCores,
        vec![set("/1/0/buffer/0/layer", json!("x"))],
    );
    row(
        "an earlier workload is the last producer",
        "gem-f10-last-maker",
        TwoCores,
        vec![set("/1/2/ifmap/max_workload_id", json!(0))],
    );
    row(
        "no workload wants a tensor first",
        "gem-q6-priority",
        Allocated,
        vec![set("/1/0/buffer/0/priority", json!(99))],
    );
    row(
        "a scale is negative",
        "gem-n11-value",
        Frontend,
        vec![set("/l0_conv/quant_info/output_scale", json!(-1))],
    );

    // DRAM.
    row(
        "DRAM sends to nobody",
        "gem-d1-destination",
        Rings,
        vec![set("/-1/out/0/destination/0/workload_id", json!(50))],
    );
    row(
        "DRAM sends to another layer",
        "gem-d2-layer",
        Rings,
        vec![set("/-1/out/0/destination/0/layer_name", json!("l1_conv"))],
    );
    row(
        "a block names its source",
        "gem-d2-source-layer",
        TwoCores,
        vec![set("/-1/out/0/type", json!("ifmap")), set("/-1/out/0/layer_name", json!("input"))],
    );
    row(
        "DRAM sends what is not used",
        "gem-d3-unused",
        Rings,
        vec![set("/-1/out/0/destination/0/workload_id", json!(1))],
    );
    row(
        "a relation to nothing",
        "gem-d4-related",
        Rings,
        vec![set("/-1/out/3/related_ifmap/0", json!(70))],
    );
    row("a relation one way", "gem-d4-related", Rings, vec![Drop("/-1/in/1/related_ofmap/0")]);
    row(
        "a relation from nothing",
        "gem-d4-related",
        Rings,
        vec![set("/-1/in/1/related_ofmap/0", json!(70))],
    );
    row(
        "related parts are apart",
        "gem-d8-related-overlap",
        TwoCores,
        vec![
            set("/-1/in/0/related_ofmap", json!([8])),
            set("/-1/out/1/related_ifmap", json!([13])),
            set("/-1/in/0/lower", json!([0, 0, 9, 0])),
            set("/-1/in/0/upper", json!([0, 7, 9, 3])),
            set("/-1/out/6/related_ifmap", json!([13])),
        ],
    );
    row(
        "related parts leave some out",
        "gem-d13-related-cover",
        Rings,
        vec![Drop("/-1/out/3/related_ifmap/1")],
    );
    row(
        "DRAM names another producer",
        "gem-d11-maker",
        Rings,
        vec![set("/-1/in/0/workload_id", json!(2))],
    );
    row(
        "DRAM has another box",
        "gem-d12-in-extent",
        Rings,
        vec![set("/-1/in/0/upper", json!([0, 7, 7, 6]))],
    );

    row("groups differ", "gem-t6-group", Allocated, vec![set("/DRAM/1/out/0/priority", json!(4))]);
    row("DRAM does not name a user", "gem-d5-users", Rings, vec![Drop("/-1/out/0/destination/1")]);
    row("DRAM names a user twice", "gem-d5-users", Rings, vec![Repeat("/-1/out/0/destination/1")]);

    // Sizes.
    row("an ifmap's size", "gem-f1-ifmap-size", Rings, vec![set("/0/0/ifmap/0/size", json!(511))]);
    row("an alignment", "gem-f2-align", Rings, vec![set("/0/0/ifmap/0/align", json!(4))]);
    row("a weight's size", "gem-g1-weight-size", Rings, vec![set("/0/0/weight/size", json!(512))]);
    row("a result's size", "gem-w3-result-size", Rings, vec![set("/0/0/ofmap_size", json!(1023))]);
    row(
        "a result's bits",
        "gem-w3-result-size",
        TwoCores,
        vec![set("/1/0/ofmap_size", json!(1023))],
    );
    row(
        "a tensor's size",
        "gem-b8-resident-size",
        Rings,
        vec![set("/0/0/buffer/0/size", json!(504))],
    );
    row("a tensor's blocks", "gem-b1-block", TwoCores, vec![set("/1/0/buffer/0/block", json!(2))]);
    row("a weight's blocks", "gem-b1-block", TwoCores, vec![set("/1/0/buffer/1/block", json!(2))]);
    row(
        "an address between words",
        "gem-b2-address",
        Rings,
        vec![set("/0/0/buffer/0/address", json!(513))],
    );

    // Coverage.
    row(
        "a tile has no number",
        "gem-k1-tile-number",
        Rings,
        vec![
            Swap("/0/0/tile_info/tile_num_0", "/0/0/tile_info/tile_num_1"),
            set("/0/0/tile_info/tile_num_3", json!(null)),
            Swap("/0/0/tile_info/tile_num_1", "/0/0/tile_info/tile_num_3"),
            Drop("/0/0/tile_info/tile_num_1"),
        ],
    );
    row(
        "tiles overlap",
        "gem-k2-tile-overlap",
        Rings,
        vec![set("/0/0/tile_info/tile_num_0/ofmap_upper/1", json!(8))],
    );
    row(
        "tiles leave some out",
        "gem-k3-tile-cover",
        Rings,
        vec![set("/0/0/tile_info/tile_num_0/ofmap_upper/1", json!(6))],
    );
    row(
        "a tile is outside",
        "gem-k3-tile-cover",
        Rings,
        vec![set("/0/0/tile_info/tile_num_1/ofmap_upper/1", json!(16))],
    );
    row(
        "padding of a vector layer",
        "gem-k4-vp-padding",
        Rings,
        vec![set("/0/3/tile_padding_tblr", json!([1, 1, 1, 1]))],
    );
    row(
        "a weight is for other channels",
        "gem-g2-weight-channels",
        Rings,
        vec![set("/0/0/weight/upper/1", json!(14))],
    );
    row(
        "a result is another box",
        "gem-o2-result-extent",
        Rings,
        vec![set("/0/0/ofmap/0/upper/2", json!(6))],
    );
    row(
        "a part is outside",
        "gem-o2-result-extent",
        TwoCores,
        vec![set("/1/0/ofmap/0/upper/3", json!(4))],
    );

    row(
        "tiles read less than the workload",
        "gem-k5-tile-input",
        Rings,
        vec![set("/0/1/tile_info/tile_num_0/ifmap_upper/2", json!(2))],
    );

    // Operands.
    row(
        "what is read is not marked",
        "gem-b17-ifmap-resident",
        Rings,
        vec![set("/0/1/buffer/1/cur_wl_ifmap", json!(false))],
    );
    row(
        "what is read is not there",
        "gem-b17-ifmap-resident",
        TwoCores,
        vec![Drop("/2/2/buffer/0")],
    );
    row(
        "more is read than is there",
        "gem-f6-ifmap-extent",
        Rings,
        vec![set("/0/1/ifmap/0/upper/2", json!(8))],
    );
    row(
        "an id is not listed",
        "gem-f8-source-ids",
        Rings,
        vec![Drop("/0/3/ifmap/0/transfer_id/1")],
    );
    row(
        "sources leave some out",
        "gem-f7-source-cover",
        Rings,
        vec![set("/0/3/buffer/1/source/1/lower/2", json!(5))],
    );
    row(
        "sources overlap",
        "gem-f7-source-cover",
        TwoCores,
        vec![set("/2/4/buffer/0/source/1/channel", json!([3, 7]))],
    );
    row(
        "an input is left out",
        "gem-f7-external-input",
        TwoCores,
        vec![set("/2/0/ifmap/upper/1", json!(15)), set("/2/0/buffer/0/upper/1", json!(15))],
    );
    row(
        "a source differs from its producer",
        "gem-f9-source",
        Rings,
        vec![set("/0/3/buffer/1/source/1/layer_name", json!("l0_conv"))],
    );
    row(
        "a source is no transfer",
        "gem-f9-source",
        TwoCores,
        vec![set("/2/4/buffer/0/source/1/transfer_id", json!(55))],
    );
    row(
        "a source has another size",
        "gem-f9-source",
        TwoCores,
        vec![set("/2/4/buffer/0/source/1/size", json!(8))],
    );
    row("a composite has a gap", "gem-b10-composite", Rings, vec![Drop("/0/1/buffer/2/source/1")]);
    row(
        "no sources",
        "gem-b9-null-source",
        TwoCores,
        vec![set("/1/0/buffer/0/source", json!(null))],
    );
    row(
        "a weight by two transfers",
        "gem-g3-weight-source",
        Rings,
        vec![Repeat("/0/0/weight/transfer_id/0")],
    );
    row(
        "a weight that is none",
        "gem-g3-weight-source",
        Rings,
        vec![set("/0/0/weight/transfer_id/0", json!(0))],
    );
    row(
        "a weight differs from DRAM's",
        "gem-g4-weight-extent",
        Rings,
        vec![set("/-1/out/1/upper/1", json!(14))],
    );
    row(
        "activations without transfer",
        "gem-g5-weight-transfer",
        TwoCores,
        vec![
            Drop("/1/0/weight/transfer_id"),
            set("/1/0/weight/from_ofmap", json!(true)),
            set("/1/0/weight/lower", json!([0, 0, 0])),
            set("/1/0/weight/upper", json!([0, 7, 3])),
        ],
    );

    row(
        "a reader reads something else",
        "gem-b11-reader",
        TwoCores,
        vec![set("/2/1/buffer/1/workload_id", json!(6))],
    );
    row(
        "a composite does not begin at 0",
        "gem-b13-origin",
        Rings,
        vec![set("/0/0/buffer/0/lower/1", json!(1))],
    );
    row(
        "a result of nobody",
        "gem-b12-result",
        Rings,
        vec![set("/0/3/buffer/3/layer_name", json!("l5_quantize"))],
    );
    row(
        "a result of another box",
        "gem-b12-result",
        TwoCores,
        vec![set("/1/0/buffer/2/upper/2", json!(2))],
    );

    // The L2 buffer.
    row(
        "a region leaves the buffer",
        "gem-r1-region",
        Rings,
        vec![set("/0/0/ring_buffer_info/1/1", json!(9216))],
    );
    row(
        "regions overlap",
        "gem-r1-region",
        Rings,
        vec![set("/0/0/ring_buffer_info/1/0", json!(1024))],
    );
    row(
        "a region is no KiB",
        "gem-r2-ring-table",
        Rings,
        vec![set("/0/0/ring_buffer_info/1/0", json!(2056))],
    );
    row(
        "too many regions",
        "gem-r2-ring-table",
        Rings,
        vec![set(
            "/0/0/ring_buffer_info",
            json!((0..17).map(|place| [1024 * place, 1024 * (place + 1)]).collect::<Vec<_>>()),
        )],
    );
    row(
        "an address in no region",
        "gem-b3-address",
        Rings,
        vec![set("/0/0/buffer/0/address", json!(8192))],
    );
    row(
        "a region is too small",
        "gem-b4-region-size",
        Rings,
        vec![
            set("/0/0/ring_buffer_info/0/1", json!(2048)),
            set("/0/0/ring_buffer_info/0/0", json!(1536)),
        ],
    );
    row(
        "tensors overlap",
        "gem-b15-overlap",
        Rings,
        vec![set("/0/0/buffer/0/address", json!(2048))],
    );
    row(
        "a tensor wraps onto another",
        "gem-b15-overlap",
        Rings,
        vec![set("/0/0/buffer/0/address", json!(504))],
    );
    row(
        "a tensor moves into the wrap",
        "gem-b15-overlap",
        Rings,
        vec![set("/0/0/buffer/2/address", json!(1544))],
    );
    row(
        "blocks overlap",
        "gem-b15-overlap",
        Allocated,
        vec![set("/1/0/buffer/1/address", json!(0))],
    );
    row(
        "tensors take more than there is",
        "gem-b16-capacity",
        Rings,
        vec![set("/0/0/ring_buffer_info", json!([[0, 2048]]))],
    );
    row(
        "blocks are beyond the buffer",
        "gem-b16-capacity",
        Allocated,
        vec![set("/1/0/buffer/0/address", json!(1024))],
    );
    row(
        "blocks add up to more",
        "gem-b16-unallocated",
        TwoCores,
        vec![set("/1/0/buffer/0/block", json!(2000))],
    );
    row(
        "an old tensor is new",
        "gem-b5-newly-added",
        Rings,
        vec![set("/0/1/buffer/0/newly_added", json!(true))],
    );
    row("a tensor moves", "gem-b6-changed", Rings, vec![set("/0/1/buffer/0/address", json!(1024))]);
    row(
        "a tensor returns",
        "gem-b7-returned",
        Rings,
        vec![set("/0/4/buffer/2/tensor_id", json!(1))],
    );
    row(
        "a tensor occurs twice",
        "gem-b14-twice",
        Rings,
        vec![set("/0/0/buffer/1/tensor_id", json!(0))],
    );
    row("no place for readers", "gem-b20-output-space", Rings, vec![Drop("/0/0/buffer/2")]);
    row("no place to store from", "gem-b20-output-space", Rings, vec![Drop("/0/3/buffer/3")]);
    row("a result is dropped", "gem-b21-dropped", Rings, vec![Drop("/0/2/buffer/2")]);
    row("a tensor repeats", "gem-b22-repeated", Allocated, vec![Repeat("/1/0/buffer/0")]);
    row(
        "readers of another result",
        "gem-b23-stale-readers",
        Allocated,
        vec![Swap("/2/2/buffer/4/destinations", "/2/3/buffer/3/destinations")],
    );
    row("a tensor without layer", "gem-b24-unnamed", Rings, vec![]);
    row(
        "a flag is misspelt",
        "gem-b25-start-ending",
        Allocated,
        vec![set("/1/0/buffer/0/start_ending", json!(true))],
    );
    row(
        "a weight is not listed",
        "gem-b26-unlisted-weight",
        Allocated,
        vec![set("/1/0/weight/transfer_id/0", json!(11))],
    );

    // WL0.
    row(
        "weights overlap",
        "gem-z1-wl0-overlap",
        Rings,
        vec![set("/0/0/wl0_buffer/1/address", json!(127))],
    );
    row(
        "a weight is beyond WL0",
        "gem-z2-wl0-capacity",
        Rings,
        vec![set("/0/0/wl0_buffer/1/address", json!(32768))],
    );
    row(
        "a row is no weight",
        "gem-z3-row",
        Rings,
        vec![set("/0/0/wl0_buffer/1/transfer_id/0", json!(0))],
    );
    row(
        "a row is another box",
        "gem-z3-row",
        Rings,
        vec![set("/0/0/wl0_buffer/1/upper/1", json!(6))],
    );
    row(
        "the old name of WL0",
        "gem-z4-wl1-name",
        Rings,
        vec![set("/0/3/wl1_buffer", json!(null)), Drop("/0/3/wl0_buffer")],
    );
    row("a row's size", "gem-z5-row-size", Rings, vec![set("/0/0/wl0_buffer/1/size", json!(63))]);
    row(
        "a row's size from L2",
        "gem-z5-row-size",
        Rings,
        vec![set("/0/0/wl0_buffer/0/size", json!(64))],
    );
    row(
        "a weight is not in WL0",
        "gem-b18-weight-resident",
        Rings,
        vec![Drop("/0/0/wl0_buffer/0")],
    );
    row("a weight is not in L2", "gem-b18-weight-resident", TwoCores, vec![Drop("/1/0/buffer/1")]);
    row(
        "a weight comes from elsewhere",
        "gem-b19-weight-source",
        Rings,
        vec![set("/0/0/wl0_buffer/0/source", json!("DDR"))],
    );

    row("a row moves", "gem-z6-moved", Rings, vec![set("/0/2/wl0_buffer/0/address", json!(64))]);

    // Order.
    row(
        "a place changes",
        "gem-q1-order-changed",
        Rings,
        vec![set("/0/1/buffer/0/tensor_order", json!(8))],
    );
    row(
        "two tensors have one place",
        "gem-q2-order-repeated",
        Rings,
        vec![set("/0/0/buffer/1/tensor_order", json!(0))],
    );
    row(
        "a place is left out",
        "gem-q3-order-gap",
        Rings,
        vec![set("/0/7/buffer/2/tensor_order", json!(12))],
    );
    row(
        "on chip in the middle",
        "gem-q3-order-gap",
        Rings,
        vec![set("/0/0/buffer/2/tensor_order", json!(10))],
    );
    row(
        "a load before its time",
        "gem-q4-order-late",
        Rings,
        vec![
            set("/0/0/buffer/1/tensor_order", json!(7)),
            set("/0/6/buffer/1/tensor_order", json!(1)),
        ],
    );
    row(
        "a result that is never sent",
        "gem-q7-never-sent",
        Rings,
        vec![set("/0/7/buffer/2/start_send", json!(false))],
    );
    row(
        "a row from L2 has a place",
        "gem-q5-row-order",
        Rings,
        vec![set("/0/0/wl0_buffer/0/tensor_order", json!(1))],
    );
    row(
        "a cycle between cores",
        "gem-a1-cycle",
        TwoCores,
        vec![Swap("/1/0", "/1/2"), Swap("/2/0", "/2/2")],
    );
    row(
        "a reader before its producer's store",
        "gem-a1-cycle",
        Rings,
        vec![set("/-1/out/0/related_ifmap", json!([6]))],
    );
    row("space comes too late", "gem-a2-deadlock", TwoCores, vec![Drop("/2/1/buffer/1")]);

    // Frontend files.
    row(
        "a layer has another name",
        "gem-n1-name",
        Frontend,
        vec![set("/l0_conv/name", json!("l1_conv"))],
    );
    row(
        "a layer has another index",
        "gem-n2-index",
        Frontend,
        vec![set("/l0_conv/layer_index", json!(1))],
    );
    row("an input has no shape", "gem-n3-inputs", Frontend, vec![Drop("/l0_conv/input_shape/1")]);
    row("an edge one way", "gem-n4-edge", Frontend, vec![Drop("/l0_conv/next_layer/0")]);
    row(
        "an edge from nowhere",
        "gem-n4-edge",
        Frontend,
        vec![set("/l0_conv/next_layer/0", json!("l2_add"))],
    );
    row(
        "an edge has two shapes",
        "gem-n5-edge-shape",
        Frontend,
        vec![set("/l0_conv/output_shape/0/2", json!(9))],
    );
    row(
        "an edge has two types",
        "gem-n6-edge-dtype",
        Frontend,
        vec![set("/l0_conv/output_dtype/0", json!("float16"))],
    );
    row(
        "a layer reads a later one",
        "gem-n7-order",
        Frontend,
        vec![set("/l0_conv/previous_layer/0", json!("l2_add"))],
    );
    row(
        "a window gives another extent",
        "gem-n8-result-shape",
        Frontend,
        vec![set("/l3_pool/stride", json!([1, 1]))],
    );
    row(
        "a weight has other channels",
        "gem-n9-weight-shape",
        Frontend,
        vec![set("/l0_conv/input_shape/1/1", json!(9))],
    );
    row(
        "an extent is 0",
        "gem-n10-shape",
        Frontend,
        vec![set("/l0_conv/output_shape/0/2", json!(0))],
    );
    row("a stride is 0", "gem-n10-shape", Frontend, vec![set("/l0_conv/stride/0", json!(0))]);
    row(
        "an element type is unknown",
        "gem-n12-dtype",
        Frontend,
        vec![set("/l0_conv/output_dtype/0", json!("int9"))],
    );
    row("no quantisation", "gem-n14-quantization", Frontend, vec![Drop("/l0_conv/quant_info")]);

    // A schedule against its frontend file.
    row(
        "a layer is not in the frontend file",
        "gem-m1-layer",
        Frontend,
        vec![
            set("/l3_qool", json!(null)),
            Swap("/l3_qool", "/l3_pool"),
            Drop("/l3_pool"),
            set("/l3_qool/name", json!("l3_qool")),
            set("/l2_add/next_layer/0", json!("l3_qool")),
            set("/l4_conv/previous_layer/0", json!("l3_qool")),
            set("/l5_quantize/previous_layer/0", json!("l3_qool")),
        ],
    );
    row(
        "a layer is of another extent",
        "gem-m2-extent",
        Frontend,
        vec![
            set("/l5_quantize/previous_layer/0", json!("input9")),
            set("/l5_quantize/input_shape/0/2", json!(5)),
            set("/l5_quantize/output_shape/0/2", json!(5)),
            Drop("/l3_pool/next_layer/1"),
        ],
    );
    row(
        "a layer is not scheduled",
        "gem-m3-unscheduled",
        Frontend,
        vec![set("/l6_reshape/device", json!("npu"))],
    );
    row(
        "a layer runs elsewhere",
        "gem-m4-engine",
        Frontend,
        vec![set("/l0_conv/operation", json!("resize"))],
    );
    row(
        "a weight is of another shape",
        "gem-m5-weight",
        Frontend,
        vec![
            set("/l4_conv/input_shape/1", json!([8, 8, 3, 3])),
            set("/l4_conv/kernel_size", json!([3, 3])),
            set("/l4_conv/padding", json!([1, 1, 1, 1])),
        ],
    );
    row(
        "elements of another width",
        "gem-m6-bitwidth",
        Frontend,
        vec![set("/l0_conv/input_dtype/0", json!("float16"))],
    );
    rows
}
