import FoundationEssentials
import Replay
import SCTP
package import Wire

/// An expectation about a live client's getStats after a re-enactment: `freezeCount <= 1`,
/// `video.framesDecoded > 100`, `candidate-pair.currentRoundTripTime < 0.1`.
///
/// It must hold for every stats object of the type that has the named member. Without a type, it
/// concerns all received streams (`inbound-rtp`); `audio` and `video` mean received streams of that
/// kind.
package struct StatExpectation: Hashable, Sendable, CustomStringConvertible {
  /// An expectation's comparison operator.
  package enum Comparison: String, CaseIterable, Sendable {
    case atMost = "<="
    case atLeast = ">="
    case equal = "=="
    case unequal = "!="
    case less = "<"
    case more = ">"

    func holds(_ left: Double, _ right: Double) -> Bool {
      switch self {
      case .atMost: left <= right
      case .atLeast: left >= right
      case .equal: left == right
      case .unequal: left != right
      case .less: left < right
      case .more: left > right
      }
    }
  }

  /// A stats type, or `audio` or `video`; nil for all received streams.
  package var type: String?
  package var member: String
  package var comparison: Comparison
  package var value: Double

  /// The expected form, for error messages.
  package static let wanted =
    "an expectation is MEMBER <= NUMBER, as in \"freezeCount <= 1\" or "
    + "\"video.framesDecoded > 100\", with <, <=, >, >=, == or !="

  /// Parses an expectation.
  package init?(argument: String) {
    guard argument.utf8.count <= 200,
      let comparison = Comparison.allCases.first(where: { argument.contains($0.rawValue) })
    else { return nil }
    let sign = argument.firstRange(of: comparison.rawValue)
    guard let sign, let value = TimeText.number(argument[sign.upperBound...].trimmed) else {
      return nil
    }
    let name = argument[..<sign.lowerBound].trimmed
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    let isNamed = parts.allSatisfy { part in
      !part.isEmpty
        && part.utf8.allSatisfy { byte in
          (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte)
            || (0x61...0x7a).contains(byte) || byte == 0x2d
        }
    }
    guard isNamed, (1...2).contains(parts.count), let last = parts.last else { return nil }
    type = parts.count == 2 ? String(parts[0]) : nil
    member = String(last)
    self.comparison = comparison
    self.value = value
  }

  package var description: String {
    let number = Int64(exactly: value).map { "\($0)" } ?? "\(value)"
    return "\(type.map { $0 + "." } ?? "")\(member) \(comparison.rawValue) \(number)"
  }

  /// Whether an expectation holds, and a sentence that states the actual values.
  package struct Outcome: Hashable, Sendable {
    package var holds: Bool
    package var sentence: String
  }

  /// Judges the statistics of all of a page's connections.
  package func judge(_ objects: [JSONValue]) -> Outcome {
    let meant = objects.filter { object in
      switch type {
      case nil: object["type"]?.text == "inbound-rtp"
      case "audio"?, "video"?:
        object["type"]?.text == "inbound-rtp" && object["kind"]?.text == type
      case let type?: object["type"]?.text == type
      }
    }
    let found = meant.compactMap { object in
      object[member]?.number.map { (name: object["kind"]?.text ?? object["id"]?.text ?? "", $0) }
    }
    guard !found.isEmpty else {
      return Outcome(
        holds: false,
        sentence: "\(description): the client's statistics have no such member"
          + (meant.isEmpty ? ", because there is no \(type ?? "inbound-rtp")" : ""))
    }
    let values = found.map { entry in
      (Int64(exactly: entry.1).map { "\($0)" } ?? decimal(entry.1, 4)) + " (\(entry.name))"
    }
    return Outcome(
      holds: found.allSatisfy { comparison.holds($0.1, value) },
      sentence: "\(description): \(member) is \(values.joined(separator: ", "))")
  }
}

/// The script that reads the statistics of a page's connections, whatever the page does with them.
package enum StatScript {
  /// The text, to run before the page's own scripts.
  package static let text = """
    (() => {
      const native = globalThis.RTCPeerConnection;
      if (!native || globalThis.retakeStats) return;
      const connections = [];
      const read = async entry => {
        const list = [];
        (await entry.connection.getStats()).forEach(object => list.push({ ...object }));
        if (list.length) entry.stats = list;
      };
      globalThis.RTCPeerConnection = new Proxy(native, {
        construct(target, values, newTarget) {
          const connection = Reflect.construct(target, values, newTarget);
          const entry = { connection, stats: [] };
          connections.push(entry);
          // A connection's last statistics stay known after the page has closed it.
          const timer = setInterval(() => read(entry).catch(() => clearInterval(timer)), 250);
          return connection;
        },
      });
      globalThis.retakeStats = async () => {
        for (const entry of connections) {
          if (entry.connection.connectionState !== 'closed') await read(entry).catch(() => {});
        }
        return connections.flatMap(entry => entry.stats);
      };
    })();
    """

  /// The expression for the stats objects of all of the page's connections.
  package static let question = "globalThis.retakeStats ? retakeStats() : []"
}

// MARK: - Page

/// The page that receives a re-enactment in a browser.
///
/// It loads nothing but the recorder's script.
package enum WatchPage {
  /// Returns a URL's origin, as browsers state it; nil if the URL is invalid.
  package static func origin(of url: String) -> String? {
    guard let parts = URLComponents(string: url), let scheme = parts.scheme, let host = parts.host
    else { return nil }
    return "\(scheme)://\(host)" + (parts.port.map { ":\($0)" } ?? "")
  }

  /// Returns the query that makes the page play without a click.
  ///
  /// - Parameter jitterBufferTarget: the jitterBufferTarget of its receivers, in milliseconds.
  package static func query(jitterBufferTarget: Int?) -> String {
    "auto" + (jitterBufferTarget.map { "&jitterBufferTarget=\($0)" } ?? "")
  }

  /// Returns the page's HTML, which asks for the plan's kinds of media.
  package static func html(_ plan: ReenactmentPlan) -> String {
    let kinds = plan.sections.map { JSONText.text($0.kind.rawValue) }
    // Channels that the recorded receiver opened, and negotiated ones; the player opens the
    // sender's again.
    let channels = plan.channels.filter { !$0.isRemote || $0.options.negotiated }.map { channel in
      JSONText.object([
        ("label", .text(channel.options.label)),
        ("negotiated", .flag(channel.options.negotiated)),
        ("id", channel.options.id.map { .integer(Int64($0)) }),
      ])
    }
    // A label may contain `</script>`.
    let listed = JSONText.list(channels).text.replacing("<", with: "\\u003c")
    return """
      <!doctype html>
      <html lang="en">
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width">
      <title>Retake: a recorded call</title>
      <style>
        body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 50rem; }
        video { background: #000; display: block; max-width: 100%; }
        td { padding-right: 1.5rem; }
      </style>
      <h1>A recorded call</h1>
      <p>This page receives the packets of a recorded call, at their recorded times.</p>
      <p><button id="play">Play</button> <b id="state"></b></p>
      <video id="video" autoplay playsinline controls></video>
      <table id="stats"></table>
      <script>
      const kinds = \(JSONText.list(kinds).text);
      const channels = \(listed);
      const hasChannels = \(!plan.channels.isEmpty);
      \(clientScript)
      </script>
      </html>
      """
  }

  private static let clientScript = """
    const $ = id => document.getElementById(id);
    const options = new URLSearchParams(location.search || location.hash.slice(1));
    const headers = { 'Content-Type': 'application/json',
      ...(options.has('token') ? { Authorization: 'Bearer ' + options.get('token') } : {}) };
    /* What the page does is recorded by the script of `retake record page`. */
    const recorded = new Promise(done => {
      const script = document.createElement('script');
      const token = options.get('token');
      script.src = 'page.js' + (token ? '?token=' + encodeURIComponent(token) : '');
      script.onload = script.onerror = done;
      document.head.append(script);
    });
    /* What the recorded sender signals later: candidates, and offers that mute or add media. */
    async function follow(pc, id) {
      for (;;) {
        const response = await fetch('next?id=' + encodeURIComponent(id), { headers });
        if (response.status === 204) continue;
        const message = await response.json();
        if (!response.ok) throw new Error(message.error);
        if (message.type === 'end') return;
        if (message.type === 'candidate') {
          await pc.addIceCandidate(message);
          continue;
        }
        await pc.setRemoteDescription({ type: 'offer', sdp: message.sdp });
        await pc.setLocalDescription();
        const answered = await fetch('answer', { method: 'POST', headers,
          body: JSON.stringify({ id, type: 'answer', sdp: pc.localDescription.sdp }) });
        if (!answered.ok) throw new Error((await answered.json()).error);
      }
    }
    async function play() {
      $('play').disabled = true;
      await recorded;
      const pc = new RTCPeerConnection();
      const stream = new MediaStream();
      pc.ontrack = event => {
        stream.addTrack(event.track);
        $('video').srcObject = stream;
      };
      pc.onconnectionstatechange = () => $('state').textContent = pc.connectionState;
      for (const kind of kinds) {
        const { receiver } = pc.addTransceiver(kind, { direction: 'recvonly' });
        /* How much the browser buffers, in milliseconds: a client that was mended. */
        if (options.has('jitterBufferTarget'))
          receiver.jitterBufferTarget = Number(options.get('jitterBufferTarget'));
      }
      for (const { label, negotiated, id } of channels)
        pc.createDataChannel(label, negotiated ? { negotiated, id } : {});
      /* One channel at least, or the offer has no section for those of the sender. */
      if (hasChannels && !channels.length) pc.createDataChannel('retake');
      await pc.setLocalDescription();
      if (pc.iceGatheringState !== 'complete') await Promise.race([
        new Promise(done => setTimeout(done, 2000)),
        new Promise(done => pc.onicegatheringstatechange = () => {
          if (pc.iceGatheringState === 'complete') done();
        })]);
      const response = await fetch('offer?trickle', { method: 'POST', headers,
        body: JSON.stringify({ type: 'offer', sdp: pc.localDescription.sdp }) });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
      await pc.setRemoteDescription({ type: 'answer', sdp: answer.sdp });
      follow(pc, answer.id).catch(error => $('state').textContent = error.message);
      setInterval(async () => {
        const rows = [];
        (await pc.getStats()).forEach(s => {
          if (s.type === 'inbound-rtp') rows.push([s.kind, s.packetsReceived + ' packets',
            s.packetsLost + ' lost', (s.framesDecoded ?? '') + '',
            s.freezeCount === undefined ? '' : s.freezeCount + ' freezes']);
        });
        $('stats').replaceChildren(...rows.map(row => {
          const line = document.createElement('tr');
          for (const cell of row) line.insertCell().textContent = cell;
          return line;
        }));
      }, 500);
    }
    const start = () => play().catch(error => {
      $('state').textContent = error.message;
      $('play').disabled = false;
    });
    $('play').onclick = start;
    if (options.has('auto')) start();
    """
}
