// Tests session descriptions: finding them in messages, their sections, their differences.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  description, differences, sectionsOf, wayOf,
} from "../../Sources/Take/Page/Document/views/descriptions.js";

const sdp = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n"
  + "a=sendonly\r\nm=video 0 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=sendrecv\r\n";

test("a description is found in whatever message a server wraps it", () => {
  assert.equal(description({ message: sdp }), sdp);
  assert.equal(description({ message: JSON.stringify({ type: "offer", sdp }) }), sdp);
  const wrapped = { janus: "event", jsep: { type: "answer", sdp }, list: [1, null] };
  assert.equal(description({ message: JSON.stringify(wrapped) }), sdp);
  assert.equal(description({ message: JSON.stringify({ a: { b: [{ c: sdp }] } }) }), sdp);
  assert.equal(description({ message: "{\"candidate\": \"a\"}" }), null);
  assert.equal(description({ message: "{not JSON" }), null);
  assert.equal(description({}), null);
});

test("a description has a section for the session and one for each of its media", () => {
  const sections = sectionsOf(sdp);
  assert.deepEqual(sections.map(({ kind }) => kind), ["session", "audio", "video"]);
  assert.deepEqual(sections.map(({ mid }) => mid), [undefined, "0", "1"]);
  assert.equal(wayOf(sections[1]), "sendonly");
  assert.equal(wayOf(sections[2]), "rejected");
});

test("differences are minimal", () => {
  const changes = (before, after) => differences(before, after).map(({ change }) => change);
  assert.deepEqual(changes(["a", "b", "c"], ["a", "x", "c"]), ["same", "gone", "added", "same"]);
  assert.deepEqual(changes([], ["a"]), ["added"]);
  assert.deepEqual(changes(["a"], []), ["gone"]);
  const lines = differences(["a", "b", "c", "d"], ["b", "d", "e"]);
  assert.deepEqual(lines.filter(({ change }) => change !== "gone").map(({ line }) => line),
    ["b", "d", "e"]);
  assert.equal(lines.filter(({ change }) => change === "same").length, 2);
});
