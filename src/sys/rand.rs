//! Random names and jitter from the operating system's generator.

use uuid::Uuid;

/// Returns a version 4 UUID: 36 characters, lower case, hyphenated.
pub fn uuid() -> String {
    Uuid::new_v4().to_string()
}

/// Returns 32 lower-case hexadecimal characters, all 128 bits random.
pub fn token() -> String {
    let mut bytes = *Uuid::new_v4().as_bytes();
    // A v4 UUID fixes six bits, all in bytes 6 and 8; fill these two from a second draw.
    let second = *Uuid::new_v4().as_bytes();
    bytes[6] = second[0];
    bytes[8] = second[1];
    Uuid::from_bytes(bytes).simple().to_string()
}

/// Returns a number in `0..bound` (0 if `bound` is 0). Slightly biased: for jitter, not for
/// secrets.
pub fn below(bound: u64) -> u64 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    high.checked_rem(bound).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn uuid_is_version_four_and_hyphenated() {
        let text = uuid();
        assert_eq!(text.len(), 36);
        assert_eq!(text.matches('-').count(), 4);
        assert_eq!(&text[14..15], "4");
    }

    #[test]
    fn token_is_hex_and_every_nibble_varies() {
        let tokens: Vec<String> = (0..200).map(|_| token()).collect();
        for token in &tokens {
            assert_eq!(token.len(), 32);
            assert!(
                token.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
                "{token}"
            );
        }
        for position in 0..32 {
            let seen: HashSet<u8> = tokens.iter().map(|t| t.as_bytes()[position]).collect();
            assert!(seen.len() > 8, "nibble {position} takes only {} values", seen.len());
        }
    }

    #[test]
    fn below_stays_under_its_bound() {
        assert_eq!(below(0), 0);
        assert!((0..100).all(|_| below(7) < 7));
    }
}
