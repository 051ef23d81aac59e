// A foreign writer of the same mailbox: locks with proper-lockfile, reads, changes and writes in place, as
// Claude Code does.
//
//   node peer.js append FILE SENDER COUNT     appends COUNT messages
//   node peer.js mark FILE COUNT              marks everything as read, COUNT times
//   node peer.js compact FILE COUNT           removes read messages, COUNT times; prints their ids
//   node peer.js tear FILE COUNT EVERY        makes COUNT torn writes in place as Claude Code does; every EVERYth
//                                             is never finished, and it prints how many milliseconds the
//                                             file stayed torn
//   node peer.js hold FILE                    takes the lock, prints "held", and keeps it until stdin closes
"use strict";
const fs = require("fs");
const lockfile = require("proper-lockfile");

function pause(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

// The synchronous call of proper-lockfile does not retry; its users set 5 to 100 ms between attempts.
function locked(file, change) {
  let release;
  for (let wait = 5; ; wait = Math.min(100, wait * 2)) {
    try {
      release = lockfile.lockSync(file, { stale: 10000 });
      break;
    } catch (e) {
      if (e.code !== "ELOCKED") throw e;
      pause(wait * (0.5 + Math.random()));
    }
  }
  try {
    const before = JSON.parse(fs.readFileSync(file, "utf8"));
    const after = change(before);
    if (after) fs.writeFileSync(file, JSON.stringify(after, null, 2));
  } finally {
    release();
  }
}

// Returns the content, retrying while a write in place is incomplete: the file is never replaced.
function whole() {
  for (;;) {
    try {
      const text = fs.readFileSync(file, "utf8");
      JSON.parse(text);
      return text;
    } catch (e) {
      if (!(e instanceof SyntaxError)) throw e;
      pause(1);
    }
  }
}

function tear(n, forGood) {
  if (n % 2 === 0 && !forGood) {
    // 2.1.330: under the lock, over the old content, which is truncated afterwards.
    return locked(file, (team) => {
      const text = JSON.stringify(team, null, 2);
      const fd = fs.openSync(file, "r+");
      fs.writeSync(fd, text + "\n  }\n}", 0);
      pause(Math.random() * 10);
      fs.ftruncateSync(fd, Buffer.byteLength(text));
      fs.closeSync(fd);
    });
  }
  // 2.1.34: without a lock; truncates the file and writes it a moment later.
  const text = whole();
  const fd = fs.openSync(file, "r+");
  fs.ftruncateSync(fd, forGood && n % 4 !== 0 ? Math.floor(Math.random() * text.length) : 0);
  if (!forGood) {
    pause(Math.random() * 10);
    fs.writeSync(fd, text, 0);
  } else {
    const began = Date.now();
    whole();
    console.log(Date.now() - began);
  }
  fs.closeSync(fd);
}

const [verb, file, ...rest] = process.argv.slice(2);
if (process.env.PEER_BARRIER) {
  // A benchmark starts all peers first and releases them together.
  console.log("ready");
  fs.readSync(0, Buffer.alloc(1));
}
if (verb === "append") {
  const [sender, count] = [rest[0], Number(rest[1])];
  for (let n = 0; n < count; n++) {
    locked(file, (box) => {
      box.push({
        from: sender,
        text: String(n),
        timestamp: new Date().toISOString(),
        read: false,
        msgV: 1,
        msg_id: `${sender}-${n}`,
        type: "message",
      });
      return box;
    });
  }
} else if (verb === "mark") {
  for (let n = 0; n < Number(rest[0]); n++) {
    locked(file, (box) => box.map((entry) => ({ ...entry, read: true })));
  }
} else if (verb === "compact") {
  for (let n = 0; n < Number(rest[0]); n++) {
    locked(file, (box) => {
      for (const entry of box.filter((e) => e.read)) console.log(entry.msg_id);
      return box.filter((e) => !e.read);
    });
  }
} else if (verb === "tear") {
  const [count, every] = rest.map(Number);
  for (let n = 1; n <= count; n++) tear(n, n % every === 0);
} else if (verb === "hold") {
  const release = lockfile.lockSync(file, { stale: 10000 });
  console.log("held");
  process.stdin.on("end", () => release());
  process.stdin.resume();
} else {
  console.error(`peer.js: no verb ${verb}`);
  process.exit(2);
}
