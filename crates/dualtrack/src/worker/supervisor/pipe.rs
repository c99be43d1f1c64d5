//! One pipe from the program: read while the program lives, then emptied of what is in it by then.

use rustix::io::{ioctl_fionread, retry_on_intr};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

/// See the module.
#[derive(Debug)]
pub(super) struct Pipe {
    from: Receiver,
    over: watch::Receiver<bool>,
    /// Bytes that were in it when the program was over and are not read yet.
    left: Option<u64>,
}

impl Pipe {
    /// Ends once `over` is true and what is there has been read: somebody outside the tree may hold the
    /// other end, and write to it for ever.
    pub const fn new(from: Receiver, over: watch::Receiver<bool>) -> Self {
        Self { from, over, left: None }
    }

    /// Reads into the buffer, which is not empty; `None` at the end.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if self.left.is_none() {
            tokio::select! {
                biased;
                _ = self.over.wait_for(|over| *over) => {}
                read = self.from.read(buffer) => return read.ok().filter(|bytes| *bytes > 0),
            }
        }
        self.rest(buffer)
    }

    // From the system itself: the runtime may not have heard yet that there is something to read.
    fn rest(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let left = match self.left {
            Some(left) => left,
            None => ioctl_fionread(&self.from).ok()?,
        };
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        if room == 0 {
            return None;
        }
        let bytes = retry_on_intr(|| rustix::io::read(&self.from, &mut buffer[..room])).ok()?;
        self.left = Some(left.saturating_sub(bytes as u64));
        Some(bytes).filter(|bytes| *bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[tokio::test]
    async fn what_was_written_before_the_end_is_read_and_no_more() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"something\n").unwrap();
        // Over before the runtime looked at the pipe for the first time, and its other end stays open.
        let (_still, over) = watch::channel(true);
        let mut pipe = Pipe::new(Receiver::from_owned_fd(reader.into()).unwrap(), over);
        let mut buffer = [0; 4];
        let mut all = Vec::new();
        while let Some(bytes) = pipe.read(&mut buffer).await {
            all.extend_from_slice(&buffer[..bytes]);
            writer.write_all(b"a stranger's").unwrap();
        }
        assert_eq!(all, b"something\n");
    }
}
