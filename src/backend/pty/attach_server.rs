//! The launcher's side of the socket: binds it at a path that is short enough (PT-05), accepts
//! viewers and serves each from threads of its own.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::broadcaster::{Broadcaster, ViewerId};
use super::wire::{LauncherMessage, ViewerMessage};
use sys::clock;
use sys::fs::{FsError, private_dir_in_existing};
use sys::socket::{LONGEST_PATH, Listener};

/// Limit of simultaneous connections, each of which costs two threads; further ones are closed.
const MOST: usize = 32;
/// Timeout for a client's first message.
const FIRST_MESSAGE_WITHIN: Duration = Duration::from_secs(5);
/// Pause after a failed `accept`, for example when file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listening socket; dropping it stops the server and removes the socket.
pub struct AttachServer {
    listener: Arc<Listener>,
}

impl AttachServer {
    /// Binds the first of `places` that can hold a socket and serves `broadcaster` there.
    pub fn open(
        places: &[PathBuf],
        broadcaster: &Arc<Broadcaster>,
    ) -> Result<AttachServer, FsError> {
        let listener = Arc::new(bind(places)?);
        let (waiting, broadcaster, connections) =
            (listener.clone(), broadcaster.clone(), Arc::new(AtomicUsize::new(0)));
        let thread = thread::Builder::new().name("attach-server".to_owned());
        let started = thread.spawn(move || accept_viewers(&waiting, &broadcaster, &connections));
        match started {
            Ok(_) => Ok(AttachServer { listener }),
            Err(source) => {
                Err(FsError::Io { op: "serve", path: listener.path().to_owned(), source })
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.listener.path()
    }
}

impl Drop for AttachServer {
    fn drop(&mut self) {
        self.listener.close();
    }
}

/// Returns the candidate paths of the socket, best first: `preferred`, then the same name in short
/// private directories.
pub fn places(preferred: PathBuf, runtime_dir: Option<&Path>, uid: u32) -> Vec<PathBuf> {
    let name = preferred.file_name().unwrap_or_default().to_owned();
    let runtime_dir = runtime_dir.filter(|dir| dir.is_absolute()).map(|dir| dir.join("phalanx"));
    let short = [runtime_dir, Some(PathBuf::from(format!("/tmp/phalanx-{uid}")))];
    [Some(preferred)].into_iter().chain(short.map(|dir| Some(dir?.join(&name)))).flatten().collect()
}

fn bind(places: &[PathBuf]) -> Result<Listener, FsError> {
    let mut problem = None;
    for path in places {
        let made = if path.as_os_str().len() > LONGEST_PATH {
            Err(FsError::Refused {
                op: "create the socket",
                path: path.clone(),
                reason: format!("its path is longer than {LONGEST_PATH} bytes"),
            })
        } else {
            private_dir_in_existing(path.parent().unwrap_or(Path::new("/")))
                .and_then(|()| Listener::bind(path))
        };
        match made {
            Ok(listener) => return Ok(listener),
            Err(e) => problem = Some(e),
        }
    }
    Err(problem.unwrap_or_else(|| FsError::Io {
        op: "create the socket",
        path: PathBuf::new(),
        source: io::Error::other("no place was given"),
    }))
}

/// Accepts connections until the listener is closed.
fn accept_viewers(
    listener: &Listener,
    broadcaster: &Arc<Broadcaster>,
    connections: &Arc<AtomicUsize>,
) {
    loop {
        match listener.accept() {
            Ok(stream) if connections.load(Ordering::Relaxed) < MOST => {
                connections.fetch_add(1, Ordering::Relaxed);
                let (served, done) = (broadcaster.clone(), connections.clone());
                let thread = thread::Builder::new().name("viewer".to_owned()).spawn(move || {
                    // The client reports a broken connection.
                    let _ = serve(stream, &served);
                    done.fetch_sub(1, Ordering::Relaxed);
                });
                if thread.is_err() {
                    // The closure that owned the stream was dropped, which closed it.
                    connections.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Ok(_) => (),
            // The error of `accept` after the listener was shut down.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => return,
            Err(_) => clock::sleep(ACCEPT_PAUSE),
        }
    }
}

fn serve(mut stream: UnixStream, broadcaster: &Arc<Broadcaster>) -> io::Result<()> {
    stream.set_read_timeout(Some(FIRST_MESSAGE_WITHIN))?;
    match ViewerMessage::read(&mut stream)? {
        Some(ViewerMessage::Lines(count)) => {
            stream.set_write_timeout(Some(FIRST_MESSAGE_WITHIN))?;
            let lines = usize::try_from(count).unwrap_or(usize::MAX);
            LauncherMessage::Lines(broadcaster.lines(lines)).write(&mut stream)
        }
        Some(ViewerMessage::Input(input)) => {
            broadcaster.input(&input)?;
            LauncherMessage::Typed.write(&mut stream)
        }
        Some(ViewerMessage::Attach { rows, cols }) => {
            stream.set_read_timeout(None)?;
            let id = broadcaster.join((rows, cols));
            let done = serve_viewer(&stream, broadcaster, id, read_messages);
            broadcaster.leave(id);
            done
        }
        Some(ViewerMessage::Follow) => {
            stream.set_read_timeout(None)?;
            let id = broadcaster.follow();
            let done = serve_viewer(&stream, broadcaster, id, wait_for_end);
            broadcaster.leave(id);
            done
        }
        Some(ViewerMessage::Keys(_) | ViewerMessage::Size { .. }) | None => Ok(()),
    }
}

/// Sends output from a thread of its own and runs `read`, which reads the viewer's messages, in
/// this one.
fn serve_viewer(
    mut stream: &UnixStream,
    broadcaster: &Arc<Broadcaster>,
    id: ViewerId,
    read: fn(&mut &UnixStream, &Broadcaster, ViewerId) -> io::Result<()>,
) -> io::Result<()> {
    let (mut to, shown) = (stream.try_clone()?, broadcaster.clone());
    let showing = thread::Builder::new().name("viewer-out".to_owned()).spawn(move || {
        while let Some(message) = shown.next(id) {
            let is_last = matches!(message, LauncherMessage::Ended(_));
            if message.write(&mut to).is_err() || is_last {
                break;
            }
        }
        shown.leave(id);
        // Also ends the read in the other thread.
        let _ = to.shutdown(Shutdown::Both);
    })?;
    let done = read(&mut stream, broadcaster, id);
    broadcaster.leave(id);
    // The output thread may be blocked in a write that the viewer does not read.
    let _ = stream.shutdown(Shutdown::Both);
    let _ = showing.join();
    done
}

fn read_messages(
    stream: &mut &UnixStream,
    broadcaster: &Broadcaster,
    id: ViewerId,
) -> io::Result<()> {
    while let Some(message) = ViewerMessage::read(stream)? {
        match message {
            ViewerMessage::Keys(keys) => broadcaster.type_in(&keys)?,
            ViewerMessage::Size { rows, cols } => broadcaster.resize(id, (rows, cols)),
            ViewerMessage::Attach { .. }
            | ViewerMessage::Follow
            | ViewerMessage::Lines(_)
            | ViewerMessage::Input(_) => {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Returns once the follower has closed the connection, or at its first message: followers send
/// none.
fn wait_for_end(stream: &mut &UnixStream, _: &Broadcaster, _: ViewerId) -> io::Result<()> {
    ViewerMessage::read(stream).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::viewer::{Viewer, peek};
    use super::*;
    use sys::child::{ChildExit, open_pty};

    /// A server of a terminal of 6x30 whose program has printed `hello`.
    fn served() -> (tempfile::TempDir, AttachServer, Arc<Broadcaster>) {
        let (master, _slave) = open_pty(6, 30).expect("a pty");
        let broadcaster = Arc::new(Broadcaster::new(master, (6, 30)));
        broadcaster.feed(b"hello");
        let dir = tempfile::tempdir().expect("a temporary directory");
        let places = [dir.path().join("sockets/run")];
        let server = AttachServer::open(&places, &broadcaster).expect("writable");
        (dir, server, broadcaster)
    }

    fn next(viewer: &mut Viewer) -> LauncherMessage {
        viewer.receive().expect("connected").expect("not at its end")
    }

    fn is_whole(message: &LauncherMessage) -> bool {
        matches!(message, LauncherMessage::Output(bytes) if bytes.starts_with(b"\x18"))
    }

    #[test]
    fn follower_sees_sizes_screens_and_output_over_the_socket() {
        let (_dir, server, broadcaster) = served();
        let mut follower = Viewer::follow(server.path()).expect("it listens");
        assert_eq!(next(&mut follower), LauncherMessage::Size { rows: 6, cols: 30 });
        assert!(is_whole(&next(&mut follower)));
        broadcaster.feed(b" world");
        assert_eq!(next(&mut follower), LauncherMessage::Output(b" world".to_vec()));
        let mut viewer = Viewer::attach(server.path(), (8, 40)).expect("it listens");
        assert!(is_whole(&next(&mut viewer)), "no size for an attached viewer");
        assert_eq!(next(&mut follower), LauncherMessage::Size { rows: 8, cols: 40 });
        assert!(is_whole(&next(&mut follower)));
        viewer.leave();
        assert_eq!(next(&mut follower), LauncherMessage::Size { rows: 6, cols: 30 });
        assert!(is_whole(&next(&mut follower)));
        let exit = ChildExit { code: Some(7), signal: None };
        broadcaster.end(exit, Duration::ZERO);
        assert_eq!(next(&mut follower), LauncherMessage::Ended(exit));
        assert_eq!(follower.receive().expect("closed in order"), None);
    }

    #[test]
    fn follower_that_types_or_resizes_is_disconnected() {
        let (_dir, server, _broadcaster) = served();
        let keys: fn(&mut Viewer) -> io::Result<()> = |viewer| viewer.type_in(b"x".to_vec());
        for send in [keys, |viewer| viewer.resize((9, 50))] {
            let mut follower = Viewer::follow(server.path()).expect("it listens");
            assert_eq!(next(&mut follower), LauncherMessage::Size { rows: 6, cols: 30 });
            assert!(is_whole(&next(&mut follower)));
            send(&mut follower).expect("connected");
            assert!(matches!(follower.receive(), Ok(None) | Err(_)));
        }
        assert_eq!(peek(server.path(), 5).expect("it still serves"), "hello");
        let mut follower = Viewer::follow(server.path()).expect("it listens");
        let size = LauncherMessage::Size { rows: 6, cols: 30 };
        assert_eq!(next(&mut follower), size, "the size is unchanged");
    }

    #[test]
    fn pt_05_long_socket_path_falls_back_to_a_short_directory() {
        let long = PathBuf::from(format!("/home/{}/sockets/run", "x".repeat(100)));
        let found = places(long.clone(), Some(Path::new("/run/user/7")), 7);
        assert_eq!(
            found,
            [long.clone(), "/run/user/7/phalanx/run".into(), "/tmp/phalanx-7/run".into()]
        );
        for none in [None, Some(Path::new("")), Some(Path::new("relative"))] {
            assert_eq!(places(long.clone(), none, 7), [long.clone(), "/tmp/phalanx-7/run".into()]);
        }
        let dir = tempfile::tempdir().expect("a temporary directory");
        let short = dir.path().join("phalanx/run");
        let listener = bind(&[long.clone(), short.clone()]).expect("the second fits");
        assert_eq!(listener.path(), short);
        let message = bind(&[long]).expect_err("no place").to_string();
        assert!(message.contains("longer than 107 bytes"), "{message}");
    }

    #[test]
    fn sec_07_symlinked_socket_directory_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (planted, real) = (dir.path().join("planted"), dir.path().join("real"));
        sys::fs::private_dir(&real).expect("writable");
        std::os::unix::fs::symlink(&real, &planted).expect("writable");
        let message = bind(&[planted.join("run")]).expect_err("a symbolic link").to_string();
        assert!(message.contains("it is a symbolic link"), "{message}");
    }
}
