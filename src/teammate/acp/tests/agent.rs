//! The flow of an agent's output to the loop.

use std::io::{self, Read};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use event_loop::InputQueue;
use sys::clock::Deadline;

use super::super::agent::{QUEUED, read_all};
use super::super::event::Event;

/// Chunks of one byte, more of them than one round of a scheduler handles.
const CHUNKS: usize = 50_000;
/// The reader is taken as stuck after this.
const PATIENCE: Duration = Duration::from_secs(60);

struct Bytes(usize);

impl Read for Bytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(left) = self.0.checked_sub(1) else { return Ok(0) };
        (self.0, buffer[0]) = (left, b'x');
        Ok(1)
    }
}

// A chunk that arrives before its token loses a place, and after QUEUED of them the agent is not
// read: it hangs in the middle of a turn.
#[tokio::test]
async fn ac_15_each_chunk_gives_its_place_back() {
    let mut queue = InputQueue::default();
    let inputs = queue.inputs();
    let (tokens, handled) = sync_channel(QUEUED);
    let reader = thread::spawn(move || read_all(Bytes(CHUNKS), &inputs, &tokens));
    let limit = Deadline::after(PATIENCE);
    let mut received = 0;
    while received < CHUNKS {
        let batch = tokio::time::timeout(limit.remaining(), queue.receive()).await;
        let (_, others) = batch.expect("the reader goes on");
        assert!(others.len() <= QUEUED, "{} chunks wait", others.len());
        for input in others {
            assert!(matches!(input, Event::Output(bytes) if bytes == b"x"));
            assert_eq!(handled.try_recv(), Ok(()), "no token at chunk {received}");
            received += 1;
        }
    }
    reader.join().expect("the reader ends with the output");
}
