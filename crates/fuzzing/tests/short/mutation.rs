//! Makes inputs from seeds: it breaks them, combines them, and inserts words of a dictionary.

/// Makes one input after another, always the same sequence.
pub(crate) struct Mutator {
    dice: RandomBytes,
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    bytes_max: usize,
}

impl Mutator {
    pub(crate) fn new(seeds: Vec<Vec<u8>>, words: Vec<Vec<u8>>, bytes_max: usize) -> Self {
        Self { dice: RandomBytes(0x005e_ed0f_7ac1_e11e), seeds, words, bytes_max }
    }

    pub(crate) fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.seed();
        for _ in 0..=self.dice.roll(6) {
            self.mutate(&mut input);
            input.truncate(self.bytes_max);
        }
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.dice.roll(input.len() + 1);
        let to = at + self.dice.roll((input.len() - at + 1).min(40));
        match self.dice.roll(8) {
            0 => input.truncate(at),
            1 => {
                input.drain(at..to);
            }
            2 if at < input.len() => input[at] ^= 1 << self.dice.roll(8),
            3 if at < input.len() => input[at] = self.dice.byte(),
            4 => {
                let part = input[at..to].to_vec();
                input.splice(at..at, part);
            }
            5 => {
                let other = self.seed();
                let from = self.dice.roll(other.len() + 1);
                input.splice(at.., other[from..].iter().copied());
            }
            6 if !self.words.is_empty() => {
                let word = self.words[self.dice.roll(self.words.len())].clone();
                input.splice(at..at, word);
            }
            _ => {
                let noise: Vec<u8> = (0..=self.dice.roll(4)).map(|_| self.dice.byte()).collect();
                input.splice(at..at, noise);
            }
        }
    }

    fn seed(&mut self) -> Vec<u8> {
        let number = self.dice.roll(self.seeds.len());
        self.seeds[number].clone()
    }
}

/// A small random generator with a fixed seed, so that a failing run can be repeated.
struct RandomBytes(u64);

impl RandomBytes {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides.max(1) as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.roll(256)).unwrap()
    }
}
