//! Files: bounded reads, atomic private writes, directories. Reads and appends refuse a path whose
//! last component is a symbolic link.

mod about;
mod beneath;
mod dir;
mod error;
mod file;
mod lines;
mod log;
mod stamp;
mod write;

pub use about::{About, FileKind, about, free_space, refuse_link};
pub use beneath::{Beneath, EntryBeneath};
pub use dir::{
    create_dir_exclusive, list, make_private, names, private_dir, private_dir_in_existing,
    remove_dir_all,
};
pub use error::FsError;
pub(super) use file::open_regular;
pub use file::{
    Contents, FileVersion, canonical, exists, is_dir, len, link, link_target, read, read_range,
    read_tail, read_versioned, remove_file, rename, version,
};
pub use lines::{FileId, LineFile};
pub use log::{LogFile, older, remove_log, times_of};
pub use stamp::{FileStamp, StampDir};
pub(super) use write::open_append;
pub use write::{
    Sync, append_durable, append_line, append_lines, copy_new, create_all, create_new, create_with,
    exchange, move_new, persist, replace_if, sweep_abandoned, sweep_temporary, sync_dir_of,
    write_atomic, write_foreign,
};

#[cfg(test)]
mod tests;
