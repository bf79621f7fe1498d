//! Activations: a row-major matrix with one row per token.

/// A row-major matrix of f32, one row per token.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    width: usize,
    data: Vec<f32>,
}

impl Rows {
    /// `rows` rows of `width` zeros.
    #[must_use]
    pub fn zeros(rows: usize, width: usize) -> Self {
        Self { width, data: vec![0.0; rows * width] }
    }

    /// Takes `data` as rows of `width`; a last incomplete row is cut off.
    #[must_use]
    pub fn from_vec(width: usize, mut data: Vec<f32>) -> Self {
        let rows = data.len().checked_div(width).unwrap_or(0);
        data.truncate(rows * width);
        Self { width, data }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Elements per row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Row `index`.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> &[f32] {
        &self.data[index * self.width..][..self.width]
    }

    /// All elements, row after row.
    #[must_use]
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All elements, to be changed.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The elements, row after row.
    #[must_use]
    pub fn into_vec(self) -> Vec<f32> {
        self.data
    }
}
