//! Writes the results of candle with the formats of tensors and with the embedded text model. The
//! tests of the text engine compare their results with them: `cargo run --release --package
//! sluicegate-candle --all-features --bin reference > crates/text-engine/tests/data/candle.json`.

use std::borrow::Cow;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device, Result};
use serde_json::{Value, json};
use sluicegate_candle::Model;
use text_engine::weights;

fn main() -> Result<()> {
    let formats = KINDS
        .iter()
        .flat_map(|kind| MASKS.map(|mask| decoded(*kind, mask)))
        .collect::<Result<Vec<_>>>()?;
    let mut model = Model::load(&weights::default_path(), |full| Ok(QMatMul::Tensor(full)))?;
    let mut logits = Vec::new();
    for (step, tokens) in STEPS.iter().enumerate() {
        if step + 1 == STEPS.len() {
            model.reset();
        }
        logits.push(outline(tokens, &model.forward(tokens)?));
    }
    // One line for each.
    let lines = |values: &[Value]| {
        values
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(",\n")
    };
    let (formats, logits) = (lines(&formats), lines(&logits));
    println!("{{\"formats\": [\n{formats}\n],\n\"logits\": [\n{logits}\n]}}");
    Ok(())
}

/// Two blocks of a format and the bits of their numbers, eight hexadecimal digits each.
fn decoded((code, kind): (u32, GgmlDType), mask: u8) -> Result<Value> {
    let (size, values) = (kind.type_size(), kind.block_size());
    let bytes: Vec<u8> = (0..2 * size)
        .map(|index| (index * index * 31 + index * 7) as u8 & mask)
        .collect();
    let storage = QStorage::from_data(Cow::Borrowed(&bytes), &Device::Cpu, kind)?;
    let decoded = QTensor::new(storage, 2 * values)?.dequantize(&Device::Cpu)?;
    let decoded = decoded.to_vec1::<f32>()?;
    let hex =
        |bytes: Vec<u8>| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let bits = decoded
        .iter()
        .flat_map(|value| value.to_bits().to_be_bytes());
    Ok(
        json!({"code": code, "name": format!("{kind:?}"), "block": hex(bytes), "numbers": hex(bits.collect())}),
    )
}

/// The best token after these, and some of the logits.
fn outline(tokens: &[u32], logits: &[f32]) -> Value {
    let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
    let some: Vec<_> = logits
        .iter()
        .step_by(EVERY)
        .map(|logit| (f64::from(*logit) * 100.0).round() / 100.0)
        .collect();
    json!({"tokens": tokens, "best": best, "every": EVERY, "logits": some})
}

/// The formats by their `ggml_type`.
const KINDS: [(u32, GgmlDType); 13] = [
    (0, GgmlDType::F32),
    (1, GgmlDType::F16),
    (2, GgmlDType::Q4_0),
    (3, GgmlDType::Q4_1),
    (6, GgmlDType::Q5_0),
    (7, GgmlDType::Q5_1),
    (8, GgmlDType::Q8_0),
    (10, GgmlDType::Q2K),
    (11, GgmlDType::Q3K),
    (12, GgmlDType::Q4K),
    (13, GgmlDType::Q5K),
    (14, GgmlDType::Q6K),
    (30, GgmlDType::BF16),
];
/// Without one of these bits in a byte, no scale is infinite.
const MASKS: [u8; 2] = [0xbf, 0xdf];
/// The tokens of each step. The model is reset before the last one.
const STEPS: [&[u32]; 4] = [&[504, 3575, 282, 4649, 314], &[7042], &[30, 198], &[504]];
/// One logit of so many is written.
const EVERY: usize = 96;
