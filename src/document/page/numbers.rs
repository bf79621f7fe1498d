//! Numbers as a reader meets them.

/// A probability by its decimal logarithm, as markup: `0.55`, `3.94 × 10<sup>−31</sup>`.
pub(super) fn probability(log10: f64) -> String {
    if log10 >= -2.0 {
        return format!("{:.3}", 10f64.powf(log10));
    }
    // No report comes near; a logarithm that is not one should still print.
    if log10 < -1e9 {
        return "less than 10<sup>−1000000000</sup>".to_owned();
    }
    let mut exponent = log10.floor();
    let mut mantissa = 10f64.powf(log10 - exponent);
    // 9.996 would print as 10.00.
    if mantissa >= 9.995 {
        (mantissa, exponent) = (1.0, exponent + 1.0);
    }
    format!("{mantissa:.2} × 10<sup>−{:.0}</sup>", -exponent)
}

/// How rare an event is, in words and as markup: `about 1 in 30 million`.
pub(super) fn rarity(log10: f64) -> String {
    let times = 10f64.powf(-log10);
    if log10 > -0.005 {
        "nearly all".to_owned()
    } else if log10 > -1.0 {
        format!("about {:.0} in 100", 10f64.powf(log10) * 100.0)
    } else if log10 > -6.0 {
        format!("about 1 in {}", grouped(two_digits(times)))
    } else if log10 > -15.0 {
        let (unit, name) = match log10 {
            log10 if log10 > -9.0 => (1e6, "million"),
            log10 if log10 > -12.0 => (1e9, "billion"),
            _ => (1e12, "trillion"),
        };
        format!("about 1 in {} {name}", two_digits(times / unit))
    } else {
        format!("about 1 in 10<sup>{:.0}</sup>", (-log10).floor())
    }
}

/// `value` rounded to two significant digits; 1 to 10^6.
fn two_digits(value: f64) -> f64 {
    let step = 10f64.powf(value.log10().floor() - 1.0);
    // Steps of 0.1 are not exact: print whole tenths.
    ((value / step).round() * step * 10.0).round() / 10.0
}

/// A whole number with commas between thousands.
pub(super) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with commas between thousands.
pub(super) fn count(value: u64) -> String {
    grouped(value as f64)
}

/// `1 token`, `2 tokens`.
pub(super) fn counted(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// An effect size.
pub(super) fn effect(z: Option<f64>) -> String {
    // A minus sign is wider than a hyphen and lines up with digits.
    z.map_or_else(|| "none".to_owned(), |z| format!("{z:.2}").replace('-', "−"))
}
