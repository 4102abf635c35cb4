/// Why bytes are no packet capture, or where one goes bad.
package enum CaptureError: Error, Hashable, Sendable {
  /// The first bytes are those of no format that is read here.
  case notACapture
  /// A version of the format that nobody defined.
  case version(major: UInt16, minor: UInt16)
  /// A length that cannot be right, with the offset of its record or block in the file.
  case badLength(Int, offset: Int)
  /// A packet of an interface that was not described, with the offset of its block.
  case unknownInterface(Int, offset: Int)
}

extension CaptureError: CustomStringConvertible {
  /// One sentence without the name of the file.
  package var description: String {
    switch self {
    case .notACapture: "it is neither a pcap nor a pcapng file"
    case .version(let major, let minor):
      "it is of version \(major).\(minor), which is not known"
    case .badLength(let length, let offset):
      "it is damaged at byte \(offset): a length of \(length) cannot be right"
    case .unknownInterface(let number, let offset):
      "it is damaged at byte \(offset): interface \(number) was not described"
    }
  }
}
