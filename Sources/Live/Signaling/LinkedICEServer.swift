import Peer
import Room

/// An ICE server in a `Link` field (RFC 9725 section 4.6).
public struct LinkedICEServer: Hashable, Sendable {
  /// `stun:...`, `turn:...`, ...
  public var uri: String
  /// The user of a TURN server.
  public var username: String?
  /// The user's password.
  public var credential: String?

  /// Names a server.
  public init(uri: String, username: String? = nil, credential: String? = nil) {
    self.uri = uri
    self.username = username
    self.credential = credential
  }

  /// The value of the `Link` field for the server.
  package var field: String {
    var field = "<\(uri)>; rel=\"ice-server\""
    if let username { field += "; username=\(LinkedICEServer.quoted(username))" }
    if let credential {
      field += "; credential=\(LinkedICEServer.quoted(credential)); credential-type=\"password\""
    }
    return field
  }

  /// Formats a quoted string (RFC 9110 section 5.6.4).
  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for character in text {
      if character == "\"" || character == "\\" { quoted += "\\" }
      quoted.append(character)
    }
    return quoted + "\""
  }

  /// The ICE servers in the links of a response.
  static func all(in response: HTTPResponse) -> [LinkedICEServer] {
    all(inField: response.header("Link") ?? "")
  }

  /// The ICE servers in a field: `<uri>; rel="ice-server"; ...` (RFC 8288).
  static func all(inField field: String) -> [LinkedICEServer] {
    LinkField.iceServers(field).map {
      LinkedICEServer(
        uri: $0.urls.first ?? "", username: $0.username, credential: $0.credential)
    }
  }
}
