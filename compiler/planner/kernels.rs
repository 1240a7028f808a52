//! The matrix kernels of each architecture, and the messages where none fits.
use irc_ark_format::{
    model::DataType,
    plan::{Architecture, Config, MatmulKernel, matmul_kernels},
};

/// The device whose kernels and memory represent an architecture.
pub(crate) fn device(architecture: Architecture) -> Architecture {
    match architecture {
        Architecture::Any | Architecture::Cuda => Architecture::Cuda80,
        Architecture::Rocm => Architecture::Rocm942,
        concrete => concrete,
    }
}

/// Whether an architecture stands for no single device, so that plans for it may have any tiles.
pub(crate) fn is_family(architecture: Architecture) -> bool {
    device(architecture) != architecture
}

/// The matrix kernels of an architecture.
pub(crate) fn of(architecture: Architecture, dtype: DataType) -> Vec<MatmulKernel> {
    match (device(architecture), dtype) {
        // What ARK declares: tiles of warps 64x64 and two stages.
        (Architecture::Cuda70, DataType::Fp16) => {
            let two_stages = 2 * (128 * 32 + 32 * 256) * 2;
            vec![MatmulKernel { m: 128, n: 256, k: 32, warps: 8, sram: two_stages }]
        }
        (device, _) => matmul_kernels(device, dtype),
    }
}

/// Requirements on a kernel; `None` accepts any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelRequest {
    /// Its tile.
    pub tile: Option<[i64; 3]>,
    /// Its warps.
    pub warps: Option<i64>,
    /// Its bytes of on-chip memory.
    pub sram: Option<i64>,
}

impl KernelRequest {
    /// The requirements that the keys of a config express.
    pub fn of(config: &Config) -> Self {
        let tile = config.ints("TileShapeMNK").and_then(|tile| tile.try_into().ok());
        Self { tile, warps: config.int("NumWarps"), sram: config.int("SramBytes") }
    }

    /// Whether a kernel meets all requirements.
    pub fn fits(self, had: KernelRequest) -> bool {
        (self.tile.is_none() || self.tile == had.tile)
            && (self.warps.is_none() || self.warps == had.warps)
            && (self.sram.is_none() || self.sram == had.sram)
    }

    /// The kernel, if all properties are required.
    pub fn whole(self) -> Option<MatmulKernel> {
        let [m, n, k] = self.tile?;
        Some(MatmulKernel { m, n, k, warps: self.warps?, sram: self.sram? })
    }
}

/// The kernel of a tile, with pinned warps and bytes where given, else those of the device.
///
/// # Errors
/// The kernels that exist.
pub(crate) fn pinned(
    architecture: Architecture,
    dtype: DataType,
    wanted: KernelRequest,
) -> Result<MatmulKernel, String> {
    let fits = |kernel: &MatmulKernel| wanted.fits(request_of(kernel));
    if let Some(kernel) = of(architecture, dtype).into_iter().find(fits) {
        return Ok(kernel);
    }
    // Where not every kernel is known, a complete config may name one that is not in the table.
    let whole = wanted.whole().filter(|_| is_open(architecture));
    whole.ok_or_else(|| no_match(architecture, dtype, wanted))
}

/// Whether an architecture may have kernels that are not in the table.
fn is_open(architecture: Architecture) -> bool {
    use Architecture::{Any, Cuda, Rocm, Rocm90a, Rocm942};
    matches!(architecture, Any | Cuda | Rocm | Rocm90a | Rocm942)
}

fn request_of(kernel: &MatmulKernel) -> KernelRequest {
    KernelRequest {
        tile: Some([kernel.m, kernel.n, kernel.k]),
        warps: Some(kernel.warps),
        sram: Some(kernel.sram),
    }
}

/// The message when no kernel meets the requirements: it lists those that exist.
pub(crate) fn no_match(
    architecture: Architecture,
    dtype: DataType,
    wanted: KernelRequest,
) -> String {
    let kernels = of(architecture, dtype);
    if kernels.is_empty() {
        return no_kernel(architecture, dtype);
    }
    let tile = wanted.tile.map(|tile| format!(" for the tile {}", tile_text(tile)));
    let warps = wanted.warps.map(|warps| format!("{warps} warps"));
    let sram = wanted.sram.map(|sram| format!("{sram} bytes"));
    let needs: Vec<String> = [warps, sram].into_iter().flatten().collect();
    let with = if needs.is_empty() { "" } else { " with " };
    let one = |kernel: &MatmulKernel| {
        let tile = tile_text([kernel.m, kernel.n, kernel.k]);
        format!("{tile} ({} warps, {} bytes)", kernel.warps, kernel.sram)
    };
    let known: Vec<String> = kernels.iter().map(one).collect();
    let whole = match is_open(architecture) {
        true => "; for another pin `TileShapeMNK`, `NumWarps` and `SramBytes`",
        false => "",
    };
    format!(
        "{} has no {dtype} kernel{}{with}{}; its tiles are {}{whole}",
        architecture.name(),
        tile.unwrap_or_default(),
        needs.join(" and "),
        known.join(", ")
    )
}

/// The message when an architecture has no kernel for products of a type.
pub(crate) fn no_kernel(architecture: Architecture, dtype: DataType) -> String {
    let name = architecture.name();
    let help = match dtype.is_float() {
        true => "ARK has them for CUDA_80 and ROCM_942",
        false => "ARK has them for FP32, FP16 and BF16",
    };
    format!("Matmul of {dtype} has no known kernel on {name}; {help}")
}

/// The message when no tile divides a product: the extents to pad it to.
pub(crate) fn no_tile(architecture: Architecture, dtype: DataType, size: [i64; 3]) -> String {
    let options = nearest(&of(architecture, dtype), size);
    let option = |(tile, [m, n, k]): &Padded| format!("M={m} N={n} K={k} for {}", tile_text(*tile));
    let options: Vec<String> = options.iter().map(option).collect();
    let [m, n, k] = size;
    format!(
        "no {} tile for Matmul of {dtype} divides M={m} N={n} K={k}; pad the operands to multiples \
         of a tile: {}",
        architecture.name(),
        options.join(", or ")
    )
}

/// A tile, and the extents of a product padded to multiples of it.
type Padded = ([i64; 3], [i64; 3]);

/// The tiles for which a product needs least padding of each extent; the least padding first.
fn nearest(kernels: &[MatmulKernel], size: [i64; 3]) -> Vec<Padded> {
    let padded = |kernel: &MatmulKernel| {
        let tile = [kernel.m, kernel.n, kernel.k];
        let up = |axis: usize| (size[axis] + tile[axis] - 1) / tile[axis] * tile[axis];
        (tile, [up(0), up(1), up(2)])
    };
    let mut all: Vec<Padded> = kernels.iter().map(padded).collect();
    all.sort_by_key(|(_, [m, n, k])| m.saturating_mul(*n).saturating_mul(*k));
    let mut least: Vec<Padded> = vec![];
    for (tile, extents) in all {
        let more = |(_, other): &Padded| other.iter().zip(&extents).all(|(a, b)| a <= b);
        if !least.iter().any(more) {
            least.push((tile, extents));
        }
    }
    least
}

fn tile_text([m, n, k]: [i64; 3]) -> String {
    format!("{m}x{n}x{k}")
}
