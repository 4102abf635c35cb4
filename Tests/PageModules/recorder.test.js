// Tests the script that records a page: changes in statistics, and messages kept for the recorder
// across lost connections and reloads.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { changes, objectsOf } from "../../Sources/Live/PageRecording/Script/deltas.js";
import { copier } from "../../Sources/Live/PageRecording/Script/frames.js";
import { Link } from "../../Sources/Live/PageRecording/Script/link.js";
import { observe, replace } from "../../Sources/Live/PageRecording/Script/natives.js";
import { Sampler } from "../../Sources/Live/PageRecording/Script/sampling.js";
import { plain, withoutCredentials } from "../../Sources/Live/PageRecording/Script/values.js";

// MARK: Statistics

/** Applies a report to the known objects, as the recorder does. */
function fold(known, { form, timestamp, objects }) {
  const next = form === "whole" ? {} : { ...known };
  for (const [id, members] of Object.entries(objects)) {
    if (members === null) {
      delete next[id];
      continue;
    }
    const { timestamp: _, ...rest } = (form === "whole" ? undefined : known[id]) ?? {};
    next[id] = { ...rest, timestamp, ...members };
  }
  return next;
}

/**
 * Returns the objects without timestamps, because those of unchanged objects are not sent again.
 */
function withoutTimes(objects) {
  return Object.fromEntries(
    Object.entries(objects).map(([id, { timestamp: _, ...rest }]) => [id, rest]));
}

test("changes in statistics add up to the report that they came from", () => {
  let state = 7;
  const random = (limit) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % limit;
  };
  let before = null;
  let known = {};
  for (let round = 0; round < 300; round += 1) {
    const now = {};
    for (let object = 0; object < 6; object += 1) {
      if (random(5) === 0) continue;
      const isRemote = object === 5;
      const members = {
        type: isRemote ? "remote-inbound-rtp" : object === 0 ? "peer-connection" : "inbound-rtp",
        timestamp: isRemote ? 500 + random(3) : 1000 + round,
      };
      for (let member = 0; member < 4; member += 1) {
        if (random(30) > 0) members[`m${member}`] = random(3);
      }
      members.nested = { cpu: random(2), none: 1 };
      now[`id-${object}`] = members;
    }
    known = fold(known, JSON.parse(JSON.stringify(changes(before, now))));
    assert.deepEqual(withoutTimes(known), withoutTimes(now));
    if (now["id-5"]) assert.equal(known["id-5"].timestamp, now["id-5"].timestamp);
    before = now;
  }
});

test("unchanged values are not sent again", () => {
  const now = { a: { type: "codec", timestamp: 1, mimeType: "audio/opus" } };
  assert.deepEqual(changes(now, { a: { ...now.a, timestamp: 2 } }).objects, {});
});

test("a report becomes plain objects without their ids", () => {
  const report = new Map([["x", { id: "x", type: "codec", timestamp: 3 }]]);
  assert.deepEqual(objectsOf(report), { x: { type: "codec", timestamp: 3 } });
});

test("one report is read at a time, and one requested meanwhile is read after it", async () => {
  const reads = [];
  const reported = [];
  const sampler = new Sampler({
    read: () => new Promise((resolve) => reads.push(resolve)),
    report: (value) => reported.push(value), isFull: () => false, missed() {}, later() {},
    isConnecting: () => false, interval: 1000,
  });
  const answer = async (count) => {
    reads.shift()(new Map([["a", { id: "a", type: "transport", timestamp: count, count }]]));
    await null;
    await null;
  };
  sampler.sample();
  sampler.sample();
  sampler.sample();
  assert.equal(reads.length, 1);
  await answer(1);
  assert.equal(reads.length, 1);
  await answer(2);
  assert.equal(reads.length, 0);
  assert.deepEqual(reported.map(({ objects }) => objects.a.count), [1, 2]);
});

// MARK: The link

/** A link with simulated sockets, time and storage; `received` is what the recorder got. */
function setting(storage = new Map(), recorder = { received: {}, seen: [] }) {
  const tasks = [];
  let names = storage.size;
  const sockets = [];
  const stops = [];
  const link = new Link({
    open: (session) => {
      const socket = {
        session, binaryType: "", readyState: 0, bufferedAmount: 0, sent: [],
        onopen: null, onmessage: null, onclose: null,
        send(data) { socket.sent.push(data); },
        close() { socket.readyState = 3; },
      };
      sockets.push(socket);
      return socket;
    },
    storage: {
      getItem: (key) => storage.get(key) ?? null, setItem: (key, text) => storage.set(key, text),
    },
    now: () => 1000,
    random: () => {
      names += 1;
      return String(names).padStart(32, "0");
    },
    later: (work, milliseconds) => tasks.push({ work, milliseconds }),
    onNewSession: () => link.report("page", null, "again"),
    onStop: (reason) => stops.push(reason),
  });
  const run = () => { for (const { work } of tasks.splice(0)) work(); };
  /** Greets a socket, as the recorder does. */
  const greet = (socket) => socket.onmessage({ data: JSON.stringify(
    { isNew: Object.keys(recorder.received).length === 0, received: recorder.received }) });
  /** Lets the recorder read what was sent, and acknowledge it if the connection is open. */
  const read = (socket, isLost = false) => {
    for (const data of socket.sent.splice(0)) {
      const [head, ...lines] = String(data).split("\n");
      const [load, number] = head.split(" ");
      if (Number(number) <= (recorder.received[load] ?? 0)) continue;
      recorder.received[load] = Number(number);
      recorder.seen.push(...lines.map((line) => JSON.parse(line)[2]));
    }
    if (!isLost) socket.onmessage({ data: JSON.stringify({ received: recorder.received }) });
  };
  return { link, sockets, stops, run, greet, read, recorder, storage, tasks };
}

test("reports made before there is a connection arrive in order", () => {
  const { link, sockets, run, greet, read, recorder } = setting();
  link.connect();
  for (let value = 0; value < 5; value += 1) link.report("event", null, value);
  run();
  assert.deepEqual(sockets[0].sent, []);
  greet(sockets[0]);
  read(sockets[0]);
  assert.deepEqual(recorder.seen, [0, 1, 2, 3, 4]);
  assert.equal(link.units.length, 0);
});

test("messages that a lost connection may have dropped are sent again, and count once", () => {
  const { link, sockets, run, greet, read, recorder } = setting();
  link.connect();
  greet(sockets[0]);
  let last = 0;
  for (let round = 0; round < 40; round += 1) {
    const socket = sockets.at(-1);
    for (let each = 0; each <= round % 3; each += 1) {
      link.report("event", null, last);
      last += 1;
      if (each % 2 === 0) run();
    }
    run();
    // Some messages are read without an acknowledgement, some are lost with the socket, some
    // arrive.
    if (round % 4 === 1) read(socket, true);
    if (round % 4 === 3) read(socket);
    if (round % 3 === 2) {
      socket.onclose();
      run();
      greet(sockets.at(-1));
    }
  }
  run();
  read(sockets.at(-1));
  assert.ok(sockets.length > 10);
  assert.deepEqual(recorder.seen, Array.from({ length: last }, (_, place) => place));
});

test("a reloaded page continues the session, and sends what the first one left", () => {
  const first = setting();
  first.link.connect();
  first.greet(first.sockets[0]);
  first.link.report("event", null, "before");
  first.run();
  first.read(first.sockets[0]);
  first.link.report("event", null, "at the end");
  first.link.store();
  const second = setting(first.storage, first.recorder);
  assert.equal(second.link.session, first.link.session);
  assert.notEqual(second.link.load, first.link.load);
  second.link.report("event", null, "after");
  second.link.connect();
  second.run();
  second.greet(second.sockets[0]);
  second.read(second.sockets[0]);
  assert.deepEqual(first.recorder.seen, ["before", "at the end", "after"]);
});

test("waiting messages are bounded: statistics and frames are dropped first, and reported", () => {
  const { link, sockets, run, greet, read, recorder } = setting();
  const large = "x".repeat(100_000);
  let count = 0;
  while (!link.isFull) {
    link.report("event", null, large);
    count += 1;
    assert.ok(count < 200);
  }
  link.send([["PC_0", { mid: "0", kind: "video", size: 10, time: 1, ssrc: 1, rtpTime: 1,
    key: true, mimeType: "video/VP8", width: 1, height: 1 }]], new Uint8Array(10));
  link.missed.samples += 1;
  for (let more = 0; more < 400; more += 1) link.report("event", null, large);
  assert.ok(link.unitBytes + link.lineBytes < 14e6);
  assert.ok(link.missed.events > 300);
  link.connect();
  greet(sockets[0]);
  run();
  read(sockets[0]);
  link.report("event", null, "room again");
  run();
  read(sockets[0]);
  assert.equal(recorder.seen.at(-1), "room again");
  assert.equal(recorder.seen.at(-2).frames, 1);
  assert.equal(recorder.seen.at(-2).samples, 1);
});

test("a restarted recorder receives the current state, without old changes", () => {
  const { link, sockets, run, greet, read, recorder } = setting();
  link.connect();
  greet(sockets[0]);
  link.report("event", null, "known");
  run();
  read(sockets[0]);
  sockets[0].onclose();
  link.report("stats", "PC_0", "changes of what is not known");
  link.report("event", null, "meanwhile");
  run();
  recorder.received = {};
  recorder.seen = [];
  greet(sockets[1]);
  run();
  read(sockets[1]);
  assert.deepEqual(recorder.seen, ["again", "meanwhile"]);
});

test("a recorder that refuses further reports is not called again", () => {
  const { link, sockets, stops, run, greet, tasks } = setting();
  link.connect();
  greet(sockets[0]);
  sockets[0].onmessage({ data: JSON.stringify({ stop: "enough" }) });
  link.report("event", null, 1);
  sockets[0].onclose();
  run();
  assert.deepEqual(stops, ["enough"]);
  assert.equal(sockets.length, 1);
  assert.equal(link.lines.length, 0);
  assert.equal(tasks.length, 0);
});

// MARK: The browser's functions

test("a function that is observed behaves as before", async () => {
  const calls = [];
  const api = {
    async good(value) { return value + 1; },
    async bad() { throw new TypeError("no"); },
    plain(one, two) { return [this === api, one, two]; },
    old(success, failure) { (success ?? failure)("result"); },
  };
  for (const name of Object.keys(api)) {
    observe(api, name, {
      begin: (_, values) => ({ name, values }),
      succeed: ({ name }, result) => calls.push([name, "succeeded", result]),
      fail: ({ name }, why) => calls.push([name, "failed", why]),
    });
  }
  assert.equal(await api.good(1), 2);
  await assert.rejects(api.bad(), TypeError);
  assert.deepEqual(api.plain("a", "b"), [true, "a", "b"]);
  assert.equal(api.plain.name, "plain");
  assert.equal(api.plain.length, 2);
  let heard;
  api.old((result) => { heard = result; });
  assert.equal(heard, "result");
  assert.deepEqual(calls, [
    ["good", "succeeded", 2], ["bad", "failed", "TypeError: no"],
    ["plain", "succeeded", [true, "a", "b"]], ["old", "succeeded", "result"],
  ]);
});

test("errors in the recorder do not reach the page", () => {
  const api = { call: () => "fine" };
  observe(api, "call", { begin: () => { throw new Error("ours"); } });
  assert.equal(api.call(), "fine");
});

test("an unhandled failure remains unhandled", () => {
  const module = new URL(
    "../../Sources/Live/PageRecording/Script/natives.js", import.meta.url);
  const run = (use) => spawnSync(process.execPath, ["--input-type=module", "--eval", `
    import { observe } from ${JSON.stringify(module.href)};
    const api = { async call() { throw new Error("not handled"); } };
    observe(api, "call", { begin: () => ({}), succeed() {}, fail() {} });
    ${use}`]);
  assert.equal(run("api.call();").status, 1);
  assert.equal(run("api.call().catch(() => {});").status, 0);
});

test("functions that cannot be replaced are left alone", () => {
  const api = Object.freeze({ call: () => 1 });
  replace(api, "call", () => () => 2);
  replace(api, "missing", () => () => 2);
  assert.equal(api.call(), 1);
});

// MARK: Values

test("values are serialized without credentials, functions and cycles", () => {
  const ring = { name: "ring", call() {} };
  ring.self = ring;
  assert.equal(plain(ring).name, "ring");
  assert.equal(plain(ring).call, undefined);
  const { iceServers } = withoutCredentials(
    { iceServers: [{ urls: "turn:a", username: "u", credential: "secret" }] });
  assert.deepEqual(iceServers, [{ urls: "turn:a", username: "u", credential: "removed" }]);
});

// MARK: Frames

/** An encoded frame as browsers have it. */
function frame(bytes, metadata) {
  return { data: new Uint8Array(bytes).buffer, type: "key", timestamp: 7,
    getMetadata: () => metadata };
}

test("frames go on in order, and their copies come in batches with the bytes of all", async () => {
  const batches = [];
  const tasks = [];
  const { stage, flush } = copier(
    (batch, transferred) => batches.push({ ...batch, transferred }), (work) => tasks.push(work));
  const { readable, writable } = stage(3);
  const frames = [frame([1, 2], { synchronizationSource: 9 }), frame([3], { rtpTimestamp: 8 })];
  const writer = writable.getWriter();
  const reader = readable.getReader();
  for (const each of frames) {
    writer.write(each);
    assert.equal((await reader.read()).value, each);
  }
  assert.equal(tasks.length, 1);
  assert.equal(batches.length, 0);
  tasks[0]();
  assert.equal(batches.length, 1);
  const [{ copies, bytes, transferred }] = batches;
  assert.deepEqual([...bytes], [1, 2, 3]);
  assert.deepEqual(transferred, [bytes.buffer]);
  const facts = copies.map(({ receiver, size, ssrc, rtpTime }) => [receiver, size, ssrc, rtpTime]);
  assert.deepEqual(facts, [[3, 2, 9, 7], [3, 1, undefined, 8]]);
  flush();
  assert.equal(batches.length, 1);
});

test("a frame that cannot be copied goes on, and a batch has its limits", async () => {
  const batches = [];
  const { stage, flush } = copier((batch) => batches.push(batch), () => {});
  const { readable, writable } = stage(1);
  const writer = writable.getWriter();
  const reader = readable.getReader();
  const broken = { data: new ArrayBuffer(1), getMetadata() { throw new Error("none"); } };
  writer.write(broken);
  assert.equal((await reader.read()).value, broken);
  for (let count = 0; count < 300; count += 1) {
    writer.write(frame([count], {}));
    await reader.read();
  }
  flush();
  assert.deepEqual(batches.map(({ copies }) => copies.length), [128, 128, 44]);
  assert.deepEqual(batches.flatMap(({ bytes }) => [...bytes]),
    Array.from({ length: 300 }, (_, place) => place & 255));
});
