import Room
import Wire

/// Describes events for people: the type, as conditions name it, and then the details.
///
/// Rows have JSON for programs. For the orders of a room, this JSON contains names of Swift types.
/// The timeline and the debugger show these descriptions instead of the JSON.
package enum EventWords {
  /// The maximum length of a string within JSON; a longer one is replaced by its length.
  private static let textLimit = 120
  /// The maximum length of a description, so that rows of tables stay short.
  private static let lengthLimit = 300

  /// Describes an `event` row, as in `talking: ben (518745) talks, -15 dBov`.
  ///
  /// - Parameter names: the names of room participants by their service's id.
  package static func text(
    type: String, detail: String, names: [String: String] = [:]
  ) -> String {
    guard let value = try? JSONValue(parsing: detail) else {
      return shortened(detail.isEmpty ? type : "\(type): \(detail)")
    }
    let words =
      type == "order"
      ? OrderWords.text(value)
      : signaling(type, value) ?? room(type, value, names) ?? media(type, value, names)
        ?? phrase(value)
    return shortened(words.isEmpty ? type : "\(type): \(words)")
  }

  /// Describes a call such as `setEnabled {...}`, with a phrase in place of its JSON arguments.
  package static func text(ofCall call: String) -> String {
    guard let brace = call.firstRange(of: " {") else { return call }
    let name = String(call[..<brace.lowerBound])
    guard let value = try? JSONValue(parsing: String(call[brace.lowerBound...].dropFirst())) else {
      return shortened(call)
    }
    let words = (name == "setParameters" ? encodings(value) : nil) ?? phrase(value)
    return shortened(words.isEmpty ? name : "\(name): \(words)")
  }

  /// Describes those parameters of a sender that an application can change; nil if the value has no
  /// encodings.
  private static func encodings(_ value: JSONValue) -> String? {
    guard let encodings = value["_1"]?["encodings"]?.elements, !encodings.isEmpty else {
      return nil
    }
    let texts = encodings.map { encoding in
      let limits = list([
        encoding["active"]?.flag == false ? "not sent" : nil,
        encoding["maxBitrate"].map { "maxBitrate \(word($0)) bit/s" },
        encoding["maxFramerate"].map { "maxFramerate \(word($0))" },
        encoding["scaleResolutionDownBy"].map { "scaleResolutionDownBy \(word($0))" },
        encoding["scalabilityMode"].map { "scalabilityMode \(word($0))" },
        encoding["networkPriority"].map { "networkPriority \(word($0))" },
      ])
      return (encoding["rid"]?.text.map { "rid \($0): " } ?? "")
        + (limits.isEmpty ? "no limits" : limits)
    }
    return list(
      [value["transceiver"]?.integer.map { "transceiver \($0)" }, texts.joined(separator: "; ")])
  }

  private static func shortened(_ text: String) -> String {
    text.count <= lengthLimit ? text : text.prefix(lengthLimit - 1) + "…"
  }

  // MARK: Endpoints

  /// Describes an event of a connection in W3C terms; nil for other events.
  private static func signaling(_ type: String, _ value: JSONValue) -> String? {
    switch type {
    case "secured":
      return list([
        version(value["version"]?.text ?? "") + (value["role"]?.text.map { " as \($0)" } ?? ""),
        value["cipherSuite"]?.text, value["profile"]?.text,
        value["transport"]?.integer.map { "transport \($0)" },
      ])
    case "track":
      let streams = value["remoteStreamIDs"]?.elements.compactMap(\.text) ?? []
      return list([
        "\(value["id"]?.integer ?? 0) \(value["kind"]?.text ?? "")", value["direction"]?.text,
        value["mid"]?.text.map { "mid \($0)" },
        streams.isEmpty ? nil : "of stream \(streams.joined(separator: " "))",
      ])
    case "addstream":
      let tracks = (value["tracks"]?.elements ?? []).map { track in
        "\(track["kind"]?.text ?? "track") of track \(track["transceiver"]?.integer ?? 0)"
      }
      return list([value["id"]?.text] + tracks)
    case "refused":
      return "by \(value["layer"]?.text ?? "a layer"): \(value["reason"]?.text ?? "no reason")"
    default: return nil
    }
  }

  /// Returns the name of a DTLS version by its number in packets (RFC 9147 section 5.1).
  private static func version(_ number: String) -> String {
    switch number {
    case "FEFF": "DTLS 1.0"
    case "FEFD": "DTLS 1.2"
    case "FEFC": "DTLS 1.3"
    default: "DTLS \(number)"
    }
  }

  // MARK: Rooms

  /// Describes an event of a room and its participants; nil for other events.
  private static func room(
    _ type: String, _ value: JSONValue, _ names: [String: String]
  ) -> String? {
    let participant = person(value["participant"]?.text, names)
    switch type {
    case "connecting": return value["progress"]?.integer.map { "\($0) %" }
    case "connected":
      let people = (value["participants"]?.text ?? "").split(separator: " ")
        .map { person(String($0), names) }
      return people.isEmpty ? "" : "participants: \(people.joined(separator: ", "))"
    case "disconnected", "failed":
      return list([
        value["reason"]?.text, value["code"]?.integer.map { "code \($0)" },
        value["message"]?.text, value["serverCode"]?.integer.map { "the server's code \($0)" },
        value["media"]?.integer.map { "media \($0)" },
      ])
    case "participantEntered": return "\(participant) entered"
    case "participantLeft":
      return "\(participant) left" + (value["cause"]?.text.map { " (\($0))" } ?? "")
    case "talking":
      let isTalking = value["talking"]?.flag ?? true
      let level = isTalking ? value["dbov"]?.integer.map { "\($0) dBov" } : nil
      return list(["\(participant) \(isTalking ? "talks" : "no longer talks")", level])
    case "message":
      return list([
        value["sender"]?.text.map { "from \(person($0, names))" }, value["type"]?.text,
        value["text"].map(word),
      ])
    case "reconnecting":
      return list([
        value["attempt"]?.integer.map { "attempt \($0)" }, value["reason"]?.text,
      ])
    case "restartingICE":
      return list([
        value["connection"]?.integer.map { "connection \($0)" },
        value["attempt"]?.integer.map { "attempt \($0)" },
      ])
    case "receiversGrown": return value["size"]?.integer.map { "to \($0)" }
    default: return nil
    }
  }

  /// Returns a participant's name, followed by the service's id.
  private static func person(_ id: String?, _ names: [String: String]) -> String {
    guard let id else { return "somebody" }
    return names[id].map { "\($0) (\(id))" } ?? id
  }

  /// Describes an event about media in a room; nil for other events.
  private static func media(
    _ type: String, _ value: JSONValue, _ names: [String: String]
  ) -> String? {
    let media = value["media"]?.integer.map { "media \($0)" } ?? "media"
    let local = value["local"]?.integer.map { "own media \($0)" } ?? "own media"
    switch type {
    case "localMediaPublished": return "\(local) is \(media) of the room"
    case "localMediaUnpublished": return local
    case "localMediaMuted":
      return "\(local) is \(value["muted"]?.flag == false ? "no longer muted" : "muted")"
    case "remotePublished", "remoteUnpublished", "remoteStateChanged":
      return list([
        "\(media), \(value["kind"]?.text ?? "media") of \(person(value["owner"]?.text, names))",
        value["active"]?.flag == false ? "switched off" : nil, value["extraValue"].map(word),
      ])
    case "remoteSubscribed":
      return "\(media) is received on connection \(value["connection"]?.integer ?? 0), "
        + "track \(value["track"]?.integer ?? 0)"
    case "remoteUnsubscribed": return "\(media) is no longer received"
    case "audioOccupied": return "\(media) is selected"
    case "audioVacated": return "\(media) is no longer selected"
    default: return nil
    }
  }

  // MARK: Other values

  /// Describes the members of a JSON value, as in `direction in, track 1`.
  static func phrase(_ value: JSONValue) -> String {
    guard case .object(let members) = value else { return word(value) }
    return list(
      members.map { member in
        let words = word(member.value)
        switch member.value {
        case .null: return nil
        case .flag(let isSo): return isSo ? member.name : "not \(member.name)"
        // Codable encodes an enum case without associated values as an empty object.
        case .object(let values) where values.isEmpty: return member.name
        default: break
        }
        // Codable names the unlabeled associated values of enum cases `_0`, `_1` and so on.
        if words.isEmpty || member.name.hasPrefix("_") { return words }
        return "\(member.name) \(words)"
      })
  }

  /// Describes a single JSON value; empty for null and for empty values.
  static func word(_ value: JSONValue) -> String {
    switch value {
    case .null: ""
    case .flag(let flag): flag ? "true" : "false"
    case .integer(let number): String(number)
    case .number(let number): JSONText.number(number).text
    case .text(let text):
      text.count > textLimit || text.contains(where: \.isNewline)
        ? counted(text.count, "character") : text
    case .list(let values):
      values.contains { !$0.members.isEmpty }
        ? counted(values.count, "entry", "entries")
        : values.map(word).filter { !$0.isEmpty }.joined(separator: " ")
    case .object: phrase(value)
    }
  }

  /// Joins the parts that are not empty with commas.
  static func list(_ parts: [String?]) -> String {
    parts.compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: ", ")
  }
}

/// Describes what a room orders its transports, connections and helpers to do.
private enum OrderWords {
  static func text(_ value: JSONValue) -> String {
    let name = value["order"]?.text ?? ""
    let with = value["with"] ?? .null
    if let number = value["transport"]?.integer { return transport(name, number, with) }
    guard let number = value["connection"]?.integer else { return share(name) }
    return connection(name, number, with) ?? sound(name, number, with)
      ?? EventWords.list(["\(name) on connection \(number)", EventWords.phrase(with)])
  }

  private static func transport(_ name: String, _ number: Int64, _ with: JSONValue) -> String {
    switch name {
    case "open":
      let protocols = with["subprotocols"]?.elements.compactMap(\.text) ?? []
      return EventWords.list([
        "open transport \(number) to \(with["url"]?.text ?? "a server")",
        protocols.isEmpty ? nil : "protocol \(protocols.joined(separator: " "))",
      ])
    case "close":
      return EventWords.list([
        "close transport \(number)", with["code"]?.integer.map { "code \($0)" },
        with["reason"]?.text,
      ])
    default: return EventWords.list(["\(name) on transport \(number)", EventWords.phrase(with)])
    }
  }

  /// Describes an order to a connection that is not about its media; nil for other orders.
  private static func connection(_ name: String, _ number: Int64, _ with: JSONValue) -> String? {
    let first = with["_0"] ?? .null
    switch name {
    case "open":
      let servers = with["_1"]?["servers"]?.elements.count ?? 0
      return EventWords.list([
        "open connection \(number)" + (first.text.map { " (\($0))" } ?? ""),
        servers == 0 ? nil : counted(servers, "ICE server"),
      ])
    case "makeOffer":
      let restarts = with["iceRestart"]?.flag == true
      return "make an offer on connection \(number)" + (restarts ? " that restarts ICE" : "")
    case "setRemote":
      let length = counted(first["sdp"]?.text?.count ?? 0, "character")
      return "apply the \(first["type"]?.text ?? "description") of the server to connection "
        + "\(number), \(length)"
    case "addCandidate":
      guard let candidate = first["candidate"]?.text, !candidate.isEmpty else {
        return "connection \(number) gets no more candidates"
      }
      return "add a candidate of the server to connection \(number): \(candidate)"
    case "createChannel":
      return "make the data channel \"\(with["label"]?.text ?? "")\" on connection \(number)"
    case "sendOnChannel":
      return "send on the data channel \"\(with["label"]?.text ?? "")\" of connection \(number)"
    case "getStats": return "sample the statistics of connection \(number)"
    case "close": return "close connection \(number)"
    default: return nil
    }
  }

  /// Describes an order about the media of a connection; nil for other orders.
  private static func sound(_ name: String, _ number: Int64, _ with: JSONValue) -> String? {
    let first = with["_0"] ?? .null
    let track = "track \(with["transceiver"]?.integer ?? 0) of connection \(number)"
    let isSo = with["_1"]?.flag ?? true
    switch name {
    case "attach":
      let media = first["id"]?["number"]?.integer.map { " as local media \($0)" } ?? ""
      return "send \(first["kind"]?.text ?? "media")\(media) on connection \(number)"
    case "detach":
      return "no longer send local media \(first["number"]?.integer ?? 0) on connection \(number)"
    case "limitAudio":
      return "select at most \(counted(first.integer ?? 0, "voice")) on connection \(number)"
    case "exemptAudio":
      return "\(track) is \(isSo ? "always" : "no longer always") selected"
    case "setAudible": return "\(track) is \(isSo ? "audible" : "silenced")"
    default: return nil
    }
  }

  private static func share(_ name: String) -> String {
    switch name {
    case "launch": "start the helper that shares a screen"
    case "accept": "let the helper send its frames"
    case "end": "end the helper that shares a screen"
    default: name
    }
  }
}
