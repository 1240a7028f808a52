//! Representation of numbers in ARK.

use irc_tl::{Constant, DType, TensorType};

/// A number as a factor of ARK, which is finite and in single precision.
pub fn factor(number: f64, dtype: DType) -> Result<f32, String> {
    let rounded = rounded(number, dtype);
    let single = rounded as f32;
    if single.is_finite() && f64::from(single) == rounded {
        return Ok(single);
    }
    Err(format!("ARK files do not hold the number {rounded}"))
}

/// A number rounded to a float type; unchanged for other types.
pub fn rounded(number: f64, dtype: DType) -> f64 {
    if dtype.is_float() { dtype.round_float(number) } else { number }
}

/// The number that all elements of a constant equal.
pub fn splat(constant: &Constant) -> Option<f64> {
    let width = constant.ty.dtype.size();
    let first = constant.bytes.get(..width)?;
    if !constant.bytes.chunks_exact(width).all(|element| element == first) {
        return None;
    }
    let ty = TensorType::new(constant.ty.dtype, []);
    let one = Constant::new(ty, constant.bytes.slice(..width)).tensor().ok()?;
    let number = one.get_f64(0);
    let mut back = one.clone();
    back.set_f64(0, number);
    (back.bytes() == one.bytes()).then_some(number)
}

/// A constant in the corresponding element type of ARK.
pub fn narrowed(constant: &Constant) -> Result<Constant, String> {
    if constant.ty.dtype != DType::I64 {
        return Ok(constant.clone());
    }
    let wide = constant.tensor().map_err(|error| error.to_string())?;
    let values = wide.to_i128().unwrap_or_default();
    let values: Result<Vec<i32>, _> = values.into_iter().map(i32::try_from).collect();
    let values = values.map_err(|_| "a constant does not fit into 32 bits".to_owned())?;
    let narrow = irc_tl::Tensor::from_values(constant.ty.shape.clone(), &values);
    Ok(Constant::of(&narrow.map_err(|error| error.to_string())?))
}
