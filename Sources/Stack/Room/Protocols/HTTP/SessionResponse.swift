package import Peer
import Wire

/// An answer to a WHIP or WHEP client.
package struct SessionResponse: Hashable, Sendable {
  package var status: Int
  package var fields: [HTTPField]
  package var body: [UInt8]
  /// Who answered.
  package var url: String

  package init(status: Int, fields: [HTTPField], body: [UInt8], url: String) {
    self.status = status
    self.fields = fields
    self.body = body
    self.url = url
  }

  /// A session that the server has begun.
  package struct Opening: Hashable, Sendable {
    /// Where it is reached.
    package var session: String
    /// Names the ICE session, with its quotes; nil when the server takes no fragments.
    package var entityTag: String?
    /// The server's answer, or its own offer.
    package var description: String
    package var isCounterOffer: Bool
  }

  package var isGood: Bool { (200..<300).contains(status) }
  package var text: String { String(decoding: body, as: UTF8.self) }
  package var entityTag: String? { field("ETag") }
  package var iceServers: [ICEServerConfiguration] { LinkField.iceServers(field("Link") ?? "") }

  /// Where the `Location` field leads to (RFC 9110 section 10.2.2); nil if it leads nowhere.
  package var location: String? {
    field("Location").flatMap { URLReference(url).resolving($0)?.text }
  }

  /// Whether the server takes no candidates (RFC 9725 section 4.3.1), which is no failure: checks
  /// from addresses that it does not know tell it of them as well.
  package var refusesCandidates: Bool { [405, 415, 422, 501].contains(status) }

  /// After how many seconds another try is worth it (RFC 9110 section 10.2.3), where it is one of
  /// time.
  package var retrySeconds: Int64? {
    status == 503 || status == 429 ? field("Retry-After").flatMap { Int64($0) } : nil
  }

  /// The value of a field; several are joined as one list.
  package func field(_ name: String) -> String? {
    let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  private var isDescription: Bool {
    let type = (field("Content-Type") ?? "").prefix { $0 != ";" && $0 != " " }
    return type.lowercased() == SessionRequest.descriptionType && !body.isEmpty
  }

  /// The session that an offer has begun.
  ///
  /// - Parameter takesOffers: whether the server may offer itself instead (WHEP only).
  /// - Throws: `SessionRefusal` when there is none.
  package func opening(takesOffers: Bool, hasToken: Bool) throws(SessionRefusal) -> Opening {
    let isCounterOffer = takesOffers && status == 406 && isDescription
    guard status == 201 || isCounterOffer else { throw refusal(hasToken: hasToken) }
    guard isDescription else {
      throw SessionRefusal(
        "\(url) answered with status 201 but without application/sdp", status: status)
    }
    guard let location else {
      throw SessionRefusal("\(url) gave no usable Location of the session", status: status)
    }
    return Opening(
      session: location, entityTag: entityTag, description: text, isCounterOffer: isCounterOffer)
  }

  /// The fragment that answers a restart of ICE.
  package func restart(hasToken: Bool) throws(SessionRefusal) -> String {
    guard status == 200, !body.isEmpty else { throw refusal(hasToken: hasToken) }
    return text
  }

  /// Why a request was refused, in one sentence.
  package func refusal(hasToken: Bool) -> SessionRefusal {
    let hint =
      switch status {
      case 401, 403: hasToken ? "; check --token" : "; give a token with --token"
      default: ""
      }
    let told = sentence.map { ": \($0)" } ?? ""
    return SessionRefusal("\(url) answered with status \(status)\(told)\(hint)", status: status)
  }

  /// What the server says in words: a problem's detail or title (RFC 9457), an error, or the text.
  package var sentence: String? {
    if let words = JSONValue(text: text), case .object = words {
      for name in ["detail", "title", "error"] {
        if let text = words[name]?.text { return text }
      }
    }
    let line = text.prefix(200).split(whereSeparator: \.isNewline).joined(separator: " ")
    let isPage = (field("Content-Type") ?? "").lowercased().hasPrefix("text/html")
    return line.isEmpty || isPage ? nil : line
  }
}

/// Why a server did not do what a WHIP or WHEP client asked.
package struct SessionRefusal: Error, Hashable, Sendable {
  package var reason: String
  package var status: Int

  init(_ reason: String, status: Int) {
    self.reason = reason
    self.status = status
  }
}
