//! Zeroed memory whose elements start at a cache line, without unsafe code.

/// A fixed-length array that starts at an address divisible by 64.
#[derive(Debug, Default)]
pub(super) struct Aligned<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy> Aligned<T> {
    /// `len` times `zero`. For f32 the memory comes zeroed from the operating system, page by
    /// page as it is first written.
    pub(super) fn new(zero: T, len: usize) -> Self {
        const LINE: usize = 64;
        let memory = vec![zero; len + LINE / size_of::<T>().max(1)];
        // Alignment is for speed alone: where it cannot be had, any start will do.
        let start = memory.as_ptr().align_offset(LINE);
        let start = if start + len <= memory.len() { start } else { 0 };
        Self { memory, start, len }
    }

    pub(super) fn as_slice(&self) -> &[T] {
        &self.memory[self.start..self.start + self.len]
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.memory[self.start..self.start + self.len]
    }
}
