import SDP

/// The numbers that the peer's current description gives to anything, supported here or not.
struct ForeignNumbers {
  private var payloadTypes: Set<String> = []
  /// What an extension identifier stands for; nil when for several things.
  private var uris: [UInt16: String?] = [:]

  init(_ document: SDPDocument?) {
    for section in document?.sections ?? [] where !section.isRejected {
      payloadTypes.formUnion(section.formats)
      for map in section.extensionMaps {
        if let known = uris[map.id], known != map.uri {
          uris[map.id] = .some(nil)
        } else {
          uris[map.id] = map.uri
        }
      }
    }
  }

  /// Whether the peer uses a payload type.
  func uses(payloadType: UInt8) -> Bool { payloadTypes.contains(String(payloadType)) }

  /// Whether an extension identifier stands for something else than this URI.
  func uses(extensionID id: UInt8, otherThanFor uri: String) -> Bool {
    uris[UInt16(id)].map { $0 != uri } ?? false
  }
}
