// A foreign program on the same mailbox: locks with proper-lockfile, reads, changes, writes in place, as Claude Code does.
//
//   node peer.js append FILE SENDER COUNT     COUNT messages at the end
//   node peer.js mark FILE COUNT              flips `read` of everything, COUNT times
//   node peer.js compact FILE COUNT           takes out what has been read, COUNT times; prints what it took, a line each
//   node peer.js tear FILE COUNT EVERY        COUNT torn writes in place as Claude Code makes them; every EVERYth is never
//                                             finished, and it prints for how long the file stayed torn, in milliseconds
//   node peer.js hold FILE                    takes the lock, says "held", and keeps it until standard input ends
"use strict";
const fs = require("fs");
const lockfile = require("proper-lockfile");

function pause(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

// proper-lockfile's synchronous call does not retry by itself; 5 to 100 ms between tries is what its users set.
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

// The content, once it is whole. In place, like Claude Code: the file is never replaced.
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
    // 2.1.330: under the lock, over the old content, which it cuts afterwards.
    return locked(file, (team) => {
      const text = JSON.stringify(team, null, 2);
      const fd = fs.openSync(file, "r+");
      fs.writeSync(fd, text + "\n  }\n}", 0);
      pause(Math.random() * 10);
      fs.ftruncateSync(fd, Buffer.byteLength(text));
      fs.closeSync(fd);
    });
  }
  // 2.1.34: without a lock; it empties the file, and writes it a moment later.
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
  // A bench starts all peers first and lets them go together.
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
