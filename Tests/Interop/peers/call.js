// Runs in the browser before any other script: makes calls, and observes a page's calls.
(() => {
  const Native = window.RTCPeerConnection;
  const connections = [];
  let echo = null;
  let canvas = null;

  window.RTCPeerConnection = class extends Native {
    constructor(...settings) {
      super(...settings);
      connections.push(this);
    }
  };

  async function open() {
    const connection = new RTCPeerConnection(window.call.configuration);
    connection.ontrack = (event) => {
      const player = document.querySelector("video");
      player.srcObject ??= new MediaStream();
      player.srcObject.addTrack(event.track);
    };
    connection.ondatachannel = (event) => watch(connection, event.channel);
    return connection;
  }

  // Talks over a channel, local or announced, as talk.py does, and expects every message to be
  // echoed.
  function watch(connection, channel) {
    if (echo !== null) return;
    echo = "no echo yet";
    talk(connection, line(channel)).catch((error) => (echo += "; " + error));
  }

  async function talk(connection, first) {
    const { brief } = window.call;
    await first.opened;
    // Message sizes up to the maximum that this browser states.
    const [, most] = /a=max-message-size:(\d+)/.exec(connection.localDescription.sdp);
    const sizes = [0, 1, 1200, 16384, 65535, 65536, 262144, 1048576]
      .slice(0, brief ? 3 : 8)
      .filter((size) => size <= Number(most));
    const text = (size) => "\u00e9".repeat(size >> 1) + "x".repeat(size % 2);
    const block = (size) => Uint8Array.from({ length: size }, (_, i) => (i * 7) & 255);
    const key = (data) => (typeof data === "string" ? "text " + data : "bytes " + data);
    const own = (label, ordered) => line(connection.createDataChannel(label, { ordered }));
    const same = async (line, sent, isOrdered) => {
      await line.opened;
      for (const message of sent) line.channel.send(message);
      const back = [];
      for (const _ of sent) back.push(key(await line.next()));
      const expected = sent.map(key);
      if (!isOrdered) [back, expected].forEach((list) => list.sort());
      expected.forEach((message, i) => {
        if (back[i] !== message) throw `message ${i} came back as ${back[i].slice(0, 40)}`;
      });
    };
    await same(first, sizes.flatMap((size) => [text(size), block(size)]), true);
    echo = "no echo without order";
    const blocks = Array.from({ length: brief ? 5 : 50 }, (_, i) => block(100 + i));
    await same(own("unordered", false), blocks, false);
    echo = "no echo on many channels";
    const many = Array.from({ length: brief ? 3 : 100 }, (_, i) => own("many " + i, i % 2 === 0));
    await Promise.all(many.map((each) => same(each, [each.channel.label], true)));
    echo = "many channels are not closed";
    for (const each of many) each.channel.close();
    await Promise.all(many.map((each) => each.closed));
    const count = 2 * sizes.length + blocks.length + many.length;
    echo = `hello from ${many.length + 2} channels, ${count} messages`;
  }

  // A channel whose messages can be awaited.
  function line(channel) {
    const waiting = [];
    const readers = [];
    channel.binaryType = "arraybuffer";
    channel.onmessage = ({ data }) => {
      const message = typeof data === "string" ? data : new Uint8Array(data);
      readers.length ? readers.shift()(message) : waiting.push(message);
    };
    return {
      channel,
      opened: new Promise((done) => {
        // Chromium sometimes refuses messages sent at the moment of its `open` event.
        const soon = () => setTimeout(done, 200);
        channel.onopen = soon;
        if (channel.readyState === "open") soon();
      }),
      closed: new Promise((done) => (channel.onclose = done)),
      next: () =>
        new Promise((done) => (waiting.length ? done(waiting.shift()) : readers.push(done))),
    };
  }

  // A camera with a visible pattern: a moving gradient.
  function draw() {
    const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 480 });
    const context = canvas.getContext("2d");
    let number = 0;
    setInterval(() => {
      const shift = (number++ % 64) * 10;
      const gradient = context.createLinearGradient(-shift, 0, 1280 - shift, 0);
      for (let i = 0; i <= 4; i++) gradient.addColorStop(i / 4, i % 2 ? "white" : "black");
      context.fillStyle = gradient;
      context.fillRect(0, 0, 640, 480);
    }, 40);
    return canvas.captureStream(25).getVideoTracks()[0];
  }

  // Firefox's own fake camera shows one colour at a time.
  if (navigator.userAgent.includes("Firefox")) {
    const capture = MediaDevices.prototype.getUserMedia;
    MediaDevices.prototype.getUserMedia = async function (constraints) {
      const stream = await capture.call(this, constraints);
      for (const track of stream.getVideoTracks()) {
        stream.removeTrack(track);
        stream.addTrack(draw());
        track.stop();
      }
      return stream;
    };
  }

  async function addMedia(connection) {
    const stream = await navigator.mediaDevices.getUserMedia({
      // Otherwise the audio processing suppresses the test tone as noise.
      audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
      video: { width: 640, height: 480 },
    });
    for (const track of stream.getTracks()) {
      const sender = connection.addTrack(track, stream);
      if (track.kind !== "video" || !window.call.layers) continue;
      const parameters = sender.getParameters();
      parameters.encodings[0].scalabilityMode = window.call.layers;
      await sender.setParameters(parameters);
    }
  }

  // Restricts the codecs to the call's, where these are not the defaults.
  function prefer(connection) {
    const all = { video: window.call.codec, audio: window.call.audio };
    for (const transceiver of connection.getTransceivers()) {
      const { kind } = transceiver.receiver.track;
      if (["vp8", "opus"].includes(all[kind])) continue;
      const { codecs } = RTCRtpReceiver.getCapabilities(kind);
      const types = [kind + "/" + all[kind], kind + "/rtx"];
      transceiver.setCodecPreferences(
        codecs.filter((codec) => types.includes(codec.mimeType.toLowerCase())),
      );
    }
  }

  async function describe(connection, description) {
    await connection.setLocalDescription(description);
    await new Promise((resolve) => {
      const look = () => connection.iceGatheringState === "complete" && resolve();
      connection.onicegatheringstatechange = look;
      look();
    });
    return connection.localDescription.sdp;
  }

  // The standard deviation of the luma in the largest playing video.
  function contrast() {
    const remote = connections.flatMap((connection) =>
      connection.getReceivers().map((receiver) => receiver.track.id)
    );
    const shows = (player) =>
      player.videoWidth > 0 &&
      player.srcObject?.getVideoTracks().some((track) => remote.includes(track.id));
    const player = [...document.querySelectorAll("video")].find(shows);
    if (!player) return null;
    canvas ??= new OffscreenCanvas(64, 48).getContext("2d", { willReadFrequently: true });
    canvas.drawImage(player, 0, 0, 64, 48);
    const { data } = canvas.getImageData(0, 0, 64, 48);
    const luma = [];
    for (let i = 0; i < data.length; i += 4) {
      luma.push(0.2126 * data[i] + 0.7152 * data[i + 1] + 0.0722 * data[i + 2]);
    }
    const mean = luma.reduce((sum, value) => sum + value) / luma.length;
    return Math.sqrt(luma.reduce((sum, value) => sum + (value - mean) ** 2, 0) / luma.length);
  }

  window.call = {
    connections,
    receivesOnly: false,
    brief: false,
    codec: "vp8",
    audio: "opus",
    configuration: {},
    // The kind of media whose sections the answer rejects.
    rejects: "",
    // Whether there are data channels; without DTLS there are none.
    channels: true,
    // The scalability mode of the sent video, as in "L1T3" (W3C webrtc-svc).
    layers: "",

    async offer() {
      const connection = await open();
      if (this.receivesOnly) {
        connection.addTransceiver("audio", { direction: "recvonly" });
        connection.addTransceiver("video", { direction: "recvonly" });
      } else {
        await addMedia(connection);
      }
      prefer(connection);
      // Most applications create a data channel, whether or not the remote peer supports it.
      if (this.channels) watch(connection, connection.createDataChannel("chat"));
      return describe(connection, await connection.createOffer());
    },

    async accept(sdp) {
      await connections[0].setRemoteDescription({ type: "answer", sdp });
    },

    async answer(sdp) {
      const connection = await open();
      await connection.setRemoteDescription({ type: "offer", sdp });
      if (!this.receivesOnly) await addMedia(connection);
      prefer(connection);
      for (const transceiver of connection.getTransceivers()) {
        if (transceiver.receiver.track.kind === this.rejects) transceiver.stop();
      }
      return describe(connection, await connection.createAnswer());
    },

    // Negotiates again during the call. A pending local offer is rolled back in favour of the
    // peer's.
    async reoffer() {
      return describe(connections[0], await connections[0].createOffer());
    },

    async reanswer(sdp) {
      await connections[0].setRemoteDescription({ type: "offer", sdp });
      return describe(connections[0], await connections[0].createAnswer());
    },

    transceiver(mid) {
      return connections[0].getTransceivers().find((each) => each.mid === mid);
    },

    // A second camera.
    addVideo() {
      const isVideo = ({ track }) => track?.kind === "video";
      const track = connections[0].getSenders().find(isVideo).track.clone();
      connections[0].addTrack(track, new MediaStream([track]));
    },

    // How many frames, or packets of audio, were received and sent, by the mids of active sections.
    async flow() {
      const counts = {};
      for (const { mid, sender, receiver, currentDirection } of connections[0].getTransceivers()) {
        if (!mid || currentDirection === "stopped") continue;
        counts[mid] = { in: 0, out: 0 };
        for (const each of (await receiver.getStats()).values()) {
          if (each.type !== "inbound-rtp") continue;
          counts[mid].in += each.framesDecoded ?? each.packetsReceived;
        }
        for (const each of (await sender.getStats()).values()) {
          if (each.type !== "outbound-rtp") continue;
          counts[mid].out += each.framesEncoded ?? each.packetsSent;
        }
      }
      return counts;
    },

    async report() {
      const stats = [];
      for (const connection of connections) {
        // The protocol passes dictionaries only as copies.
        (await connection.getStats()).forEach((each) => stats.push({ ...each }));
      }
      const connection = connections.at(-1)?.connectionState ?? "new";
      const descriptions = connections.flatMap((each) => [
        each.localDescription?.sdp ?? "",
        each.remoteDescription?.sdp ?? "",
      ]);
      return { connection, stats, descriptions, echo, contrast: contrast() };
    },
  };
})();
