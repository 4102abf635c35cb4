// Packets down to their fields: STUN (RFC 8489), DTLS (RFC 6347), RTP and RTCP (RFC 3550), SCTP (RFC
// 9260), and a TURN channel's header. What comes from the network is read as far as it goes: a field
// is `{name, value, from, length, fields}`, with its place in the bytes.

/** Reads numbers, and notes as fields where they stand. */
class Reader {
  constructor(bytes, from = 0, to = bytes.length) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.bytes = bytes;
    this.at = from;
    this.to = Math.min(to, bytes.length);
  }

  get left() { return this.to - this.at; }

  /** The next number of 1 to 4 bytes; nothing when they are not there. */
  number(length) {
    if (this.left < length) throw new RangeError("it ends here");
    let value = 0;
    for (let index = 0; index < length; index += 1) value = value * 256
      + this.bytes[this.at + index];
    this.at += length;
    return value;
  }

  /** The next number as a field. */
  field(name, length, words = (value) => String(value)) {
    const from = this.at;
    const value = this.number(length);
    return { name, value: words(value), number: value, from, length };
  }

  /** The next bytes as a field, in hexadecimal unless words say otherwise. */
  block(name, length, words) {
    const from = this.at;
    const wanted = Math.max(0, Math.min(length, this.left));
    this.at += wanted;
    const part = this.bytes.subarray(from, from + wanted);
    return { name, value: words ? words(part) : hexText(part, 24), from, length: wanted };
  }
}

/** Bytes in hexadecimal, shortened when there are many. */
export function hexText(bytes, most = Infinity) {
  const shown = [...bytes.subarray(0, Math.min(bytes.length, most))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return bytes.length > most ? `${shown} … (${bytes.length} bytes)` : shown;
}

const hex32 = (value) => `0x${value.toString(16).padStart(8, "0")}`;
const textOf = (bytes) => new TextDecoder().decode(bytes);
const named = (names) => (value) => (names[value] ? `${names[value]} (${value})` : String(value));

/** Collects fields until the bytes end, and then says so. */
function whole(fields, read) {
  try {
    read();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    fields.push({ name: "cut short", value: "the bytes end here", from: 0, length: 0 });
  }
  return fields;
}

/** A packet as layers of fields; RTP and RTCP are protected unless they are said to be clear. */
export function dissect(bytes, protocol, isClear = false) {
  const layers = [];
  if (!bytes.length) return layers;
  let begin = 0;
  if (bytes[0] >= 0x40 && bytes[0] < 0x50) {
    const reader = new Reader(bytes);
    const fields = [];
    whole(fields, () => {
      fields.push(reader.field("channel", 2, hex32), reader.field("length", 2));
    });
    layers.push({ name: "TURN channel", fields });
    begin = reader.at;
  }
  const inner = bytes.subarray(begin);
  const kind = protocol === "turn" ? kindOf(inner) : protocol;
  const dissectors = { stun: stunLayers, dtls: dtlsLayers, rtp: rtpLayers, rtcp: rtcpLayers,
    sctp: sctpLayers };
  const found = dissectors[kind]?.(bytes, begin, isClear) ?? [];
  return [...layers, ...found];
}

function kindOf(bytes) {
  const [first] = bytes;
  if (first < 4) return "stun";
  return first >= 20 && first < 64 ? "dtls" : "other";
}

/* ---- STUN ---- */

const stunMethods = { 1: "Binding", 3: "Allocate", 4: "Refresh", 6: "Send", 7: "Data",
  8: "CreatePermission", 9: "ChannelBind" };
const stunClasses = ["request", "indication", "success response", "error response"];
const stunAttributes = {
  0x0001: "MAPPED-ADDRESS", 0x0006: "USERNAME", 0x0008: "MESSAGE-INTEGRITY", 0x0009: "ERROR-CODE",
  0x000a: "UNKNOWN-ATTRIBUTES", 0x000c: "CHANNEL-NUMBER", 0x000d: "LIFETIME",
    0x0012: "XOR-PEER-ADDRESS",
  0x0013: "DATA", 0x0014: "REALM", 0x0015: "NONCE", 0x0016: "XOR-RELAYED-ADDRESS",
  0x0019: "REQUESTED-TRANSPORT", 0x001c: "MESSAGE-INTEGRITY-SHA256", 0x0020: "XOR-MAPPED-ADDRESS",
  0x0024: "PRIORITY", 0x0025: "USE-CANDIDATE", 0x8022: "SOFTWARE", 0x8023: "ALTERNATE-SERVER",
  0x8028: "FINGERPRINT", 0x8029: "ICE-CONTROLLED", 0x802a: "ICE-CONTROLLING",
    0xc057: "NETWORK-COST",
};

const stunType = (type) => {
  const method = (type & 0x0f) | ((type >> 1) & 0x70) | ((type >> 2) & 0xf80);
  const group = ((type >> 4) & 1) | ((type >> 7) & 2);
  return `${stunMethods[method] ?? `method ${method}`} ${stunClasses[group]}`;
};

function xorAddress(bytes, part, isXored) {
  const family = part[1];
  const key = [0x21, 0x12, 0xa4, 0x42, ...bytes.subarray(8, 20)];
  const clear = (index, keyIndex) => part[index] ^ (isXored ? key[keyIndex] : 0);
  const port = (clear(2, 0) << 8) | clear(3, 1);
  const address = [...part.subarray(4)].map((byte, index) => byte ^ (isXored ? key[index] : 0));
  if (family === 1 && address.length >= 4) return `${address.slice(0, 4).join(".")} port ${port}`;
  const groups = [];
  for (let index = 0; index + 1 < Math.min(address.length, 16); index += 2) {
    groups.push(((address[index] << 8) | address[index + 1]).toString(16));
  }
  return `${groups.join(":")} port ${port}`;
}

function stunLayers(bytes, begin) {
  const reader = new Reader(bytes, begin);
  const fields = [];
  whole(fields, () => {
    fields.push(reader.field("type", 2, stunType), reader.field("length", 2),
      reader.field("magic cookie", 4, hex32), reader.block("transaction", 12));
    while (reader.left >= 4) {
      const from = reader.at;
      const type = reader.number(2);
      const length = reader.number(2);
      const body = reader.block("value", length,
        (part) => stunValue(bytes.subarray(begin), type, part));
      reader.at = Math.min(reader.at + ((4 - (length % 4)) % 4), reader.to);
      fields.push({
        name: stunAttributes[type] ?? `attribute 0x${type.toString(16)}`, value: body.value, from,
        length: reader.at - from,
      });
    }
  });
  return [{ name: "STUN", fields }];
}

function stunValue(message, type, part) {
  const view = new DataView(part.buffer, part.byteOffset, part.byteLength);
  if ([0x0006, 0x0014, 0x0015, 0x8022].includes(type)) return textOf(part);
  if ([0x0001, 0x8023].includes(type) && part.length >= 8) return xorAddress(message, part, false);
  if ([0x0012, 0x0016, 0x0020].includes(type) && part.length >= 8) return xorAddress(message, part,
    true);
  if ([0x000d, 0x0024].includes(type) && part.length >= 4) return String(view.getUint32(0));
  if (type === 0x0009
    && part.length >= 4) return `${part[2] * 100 + part[3]} ${textOf(part.subarray(4))}`;
  return part.length ? hexText(part, 24) : "";
}

/* ---- DTLS ---- */

const dtlsTypes = { 20: "change cipher spec", 21: "alert", 22: "handshake", 23: "application data",
  25: "tls12_cid", 26: "acknowledgement" };
const dtlsVersions = { 0xfeff: "DTLS 1.0", 0xfefd: "DTLS 1.2", 0xfefc: "DTLS 1.3" };
const handshakeTypes = {
  0: "HelloRequest", 1: "ClientHello", 2: "ServerHello", 3: "HelloVerifyRequest",
    4: "NewSessionTicket",
  8: "EncryptedExtensions", 11: "Certificate", 12: "ServerKeyExchange", 13: "CertificateRequest",
  14: "ServerHelloDone", 15: "CertificateVerify", 16: "ClientKeyExchange", 20: "Finished",
};

function dtlsLayers(bytes, begin) {
  const layers = [];
  const reader = new Reader(bytes, begin);
  const limit = 64;
  while (reader.left > 0 && layers.length < limit) {
    const fields = [];
    const from = reader.at;
    whole(fields, () => {
      if ((bytes[reader.at] & 0xe0) === 0x20) {
        fields.push(reader.field("unified header", 1, hex32),
          reader.block("encrypted", reader.left));
        return;
      }
      const type = reader.field("content type", 1, named(dtlsTypes));
      fields.push(type, reader.field("version", 2, named(dtlsVersions)));
      const epoch = reader.field("epoch", 2);
      const high = reader.number(2);
      const number = reader.field("sequence number", 4);
      fields.push(epoch, { ...number, value: String(high * 2 ** 32 + number.number),
        from: number.from - 2, length: 6 });
      const length = reader.field("length", 2);
      fields.push(length);
      const end = Math.min(reader.at + length.number, reader.to);
      if (type.number === 22 && epoch.number === 0) handshake(reader, end, fields);
      else if (type.number === 21 && epoch.number === 0 && end - reader.at === 2) {
        fields.push(reader.field("level", 1), reader.field("description", 1));
      }
      if (reader.at < end) fields.push(reader.block(epoch.number ? "encrypted" : "body",
        end - reader.at));
    });
    layers.push({ name: "DTLS record", fields });
    if (reader.at === from) break;
    if (fields.at(-1)?.name === "cut short") break;
  }
  return layers;
}

function handshake(reader, end, fields) {
  const type = reader.field("handshake", 1, named(handshakeTypes));
  fields.push(type, reader.field("message length", 3), reader.field("message number", 2),
    reader.field("fragment offset", 3), reader.field("fragment length", 3));
  if (type.number === 1 || type.number === 2) {
    fields.push(reader.field("version", 2, named(dtlsVersions)), reader.block("random", 32));
  }
  fields.push(reader.block("body", end - reader.at));
}

/* ---- RTP ---- */

function rtpLayers(bytes, begin, isClear) {
  const reader = new Reader(bytes, begin);
  const fields = [];
  whole(fields, () => {
    const first = reader.field("version, padding, extension, sources", 1,
      (value) => `${value >> 6}, ${(value >> 5) & 1}, ${(value >> 4) & 1}, ${value & 15}`);
    fields.push(first, reader.field("marker, payload type", 1,
      (value) => `${value >> 7}, ${value & 127}`),
      reader.field("sequence number", 2), reader.field("timestamp", 4),
      reader.field("SSRC", 4, (value) => `${value} (${hex32(value)})`));
    for (let index = 0; index < (first.number & 15); index += 1) fields.push(reader.field("CSRC",
      4));
    if (first.number & 0x10) extensions(reader, fields);
    fields.push(reader.block(isClear ? "payload" : "payload, encrypted in SRTP", reader.left));
  });
  return [{ name: "RTP", fields }];
}

/** Header extensions with one byte or two for each head (RFC 8285). */
function extensions(reader, fields) {
  const profile = reader.field("extension profile", 2, hex32);
  const words = reader.field("extension length", 2, (value) => `${4 * value} bytes`);
  fields.push(profile, words);
  const end = Math.min(reader.at + 4 * words.number, reader.to);
  const isShort = profile.number === 0xbede;
  if (!isShort && profile.number >> 4 !== 0x100) {
    fields.push(reader.block("extension", end - reader.at));
    return;
  }
  while (reader.at < end) {
    const from = reader.at;
    const head = reader.number(1);
    if (head === 0) continue;
    if (isShort && head >> 4 === 15) break;
    const length = isShort ? (head & 15) + 1 : reader.number(1);
    const body = reader.block("", Math.min(length, end - reader.at));
    fields.push({ name: `extension ${isShort ? head >> 4 : head}`, value: body.value, from,
      length: reader.at - from });
  }
  reader.at = end;
}

/* ---- RTCP and SCTP ---- */

const rtcpTypes = {
  200: "sender report", 201: "receiver report", 202: "source description", 203: "goodbye",
  204: "application", 205: "transport feedback", 206: "payload feedback", 207: "extended report",
};
const feedbackKinds = {
  205: { 1: "NACK", 15: "transport-wide" }, 206: { 1: "PLI", 2: "SLI", 4: "FIR", 15: "REMB" },
};

function rtcpLayers(bytes, begin, isClear) {
  const layers = [];
  const reader = new Reader(bytes, begin);
  const limit = 64;
  while (reader.left >= 4 && layers.length < limit) {
    const fields = [];
    const from = reader.at;
    const count = bytes[from] & 31;
    const type = bytes[from + 1];
    whole(fields, () => {
      fields.push(
        reader.field("version, padding, count", 1,
          (value) => `${value >> 6}, ${(value >> 5) & 1}, ${value & 31}`),
        reader.field("packet type", 1, named(rtcpTypes)));
      const length = reader.field("length", 2, (value) => `${4 * (value + 1)} bytes`);
      fields.push(length, reader.field("SSRC of sender", 4));
      if (!isClear) {
        fields.push(reader.block("encrypted in SRTCP", reader.left));
        return;
      }
      const end = Math.min(from + 4 * (length.number + 1), reader.to);
      rtcpBody(reader, type, count, end, fields);
      if (reader.at < end) fields.push(reader.block("body", end - reader.at));
    });
    layers.push({ name: `RTCP ${feedbackKinds[type]?.[count] ?? ""}`.trim(), fields });
    if (!isClear || reader.at === from || fields.at(-1).name === "cut short") break;
  }
  return layers;
}

/** Reports (RFC 3550 section 6.4) and feedback (RFC 4585 section 6). */
function rtcpBody(reader, type, count, end, fields) {
  if (type === 200) {
    fields.push(reader.block("NTP time", 8), reader.field("RTP time", 4),
      reader.field("packets", 4), reader.field("octets", 4));
  }
  if (type === 200 || type === 201) {
    for (let index = 0; index < count && end - reader.at >= 24; index += 1) {
      fields.push(reader.field("report on SSRC", 4),
        reader.field("fraction lost", 1, (value) => `${value} of 256`),
        reader.field("lost in all", 3), reader.field("highest sequence", 4),
        reader.field("jitter", 4), reader.field("last report", 4, hex32),
        reader.field("delay since then", 4, (value) => `${value} of 65536 s`));
    }
  } else if ((type === 205 || type === 206) && end - reader.at >= 4) {
    fields.push(reader.field("SSRC of media", 4));
    while (type === 205 && count === 1 && end - reader.at >= 4) {
      fields.push(reader.field("missing", 2), reader.field("and of the next 16", 2,
        (value) => value.toString(2).padStart(16, "0")));
    }
  }
}

const sctpChunks = { 0: "DATA", 1: "INIT", 2: "INIT ACK", 3: "SACK", 4: "HEARTBEAT",
  5: "HEARTBEAT ACK", 6: "ABORT", 7: "SHUTDOWN", 8: "SHUTDOWN ACK", 9: "ERROR", 10: "COOKIE ECHO",
    11: "COOKIE ACK", 14: "SHUTDOWN COMPLETE", 64: "I-DATA", 130: "RE-CONFIG", 192: "FORWARD TSN" };

function sctpLayers(bytes, begin) {
  const reader = new Reader(bytes, begin);
  const fields = [];
  whole(fields, () => {
    fields.push(reader.field("source port", 2), reader.field("destination port", 2),
      reader.field("verification tag", 4, hex32), reader.field("checksum", 4, hex32));
    while (reader.left >= 4 && fields.length < 200) {
      const from = reader.at;
      const type = reader.field("chunk", 1, named(sctpChunks));
      const flags = reader.number(1);
      const length = reader.number(2);
      const end = Math.min(from + Math.max(length, 4), reader.to);
      fields.push({ ...type, value: `${type.value}, flags ${flags}, ${length} bytes`,
        length: end - from });
      if (type.number === 0 && end - reader.at >= 12) {
        fields.push(reader.field("TSN", 4), reader.field("stream", 2),
          reader.field("number in stream", 2),
          reader.field("payload protocol", 4));
      } else if (type.number === 3 && end - reader.at >= 12) {
        fields.push(reader.field("cumulative TSN", 4), reader.field("window", 4),
          reader.field("gaps", 2),
          reader.field("duplicates", 2));
      }
      if (reader.at < end) fields.push(reader.block("body", end - reader.at));
      reader.at = Math.min(end + ((4 - (length % 4)) % 4), reader.to);
    }
  });
  return [{ name: "SCTP", fields }];
}

/** One line on a packet, by its beginning. */
export function packetLine(bytes, protocol) {
  const layers = dissect(bytes, protocol);
  const field = (name) => layers.flatMap((layer) => layer.fields).find((each) =>
    each.name === name)?.value;
  if (protocol === "stun") return field("type") ?? "";
  if (protocol === "dtls") return field("handshake") ?? field("content type") ?? "";
  if (protocol === "rtcp") return field("packet type") ?? "";
  return layers.map((layer) => layer.name).join(", ");
}
