import SDP

/// The numbers used in the peer's current description, whether supported here or not.
struct RemoteNumbers {
  private var payloadTypes: Set<String> = []
  /// The URI of each extension identifier; nil if it stands for several.
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

  func uses(payloadType: UInt8) -> Bool { payloadTypes.contains(String(payloadType)) }

  /// Whether an extension identifier stands for another URI.
  func uses(extensionID id: UInt8, otherThanFor uri: String) -> Bool {
    uris[UInt16(id)].map { $0 != uri } ?? false
  }
}
