import Wire

/// A message of the protocol that opens channels (RFC 8832 section 5).
enum ChannelMessage: Hashable {
  case open(DataChannelInit)
  case acknowledgement

  private static let openType: UInt8 = 3
  private static let acknowledgementType: UInt8 = 2
  /// The bit of the channel type that means unordered delivery.
  private static let unordered: UInt8 = 0x80

  /// The message as it goes over the wire.
  var bytes: [UInt8] {
    guard case .open(let channel) = self else { return [Self.acknowledgementType] }
    var type: UInt8 = 0
    var limit: UInt32 = 0
    if let count = channel.maxRetransmits {
      type = 1
      limit = UInt32(count)
    } else if let time = channel.maxPacketLifeTime {
      type = 2
      limit = UInt32(time)
    }
    let label = Array(channel.label.utf8.prefix(65535))
    let name = Array(channel.protocol.utf8.prefix(65535))
    var writer = ByteWriter(capacity: 12 + label.count + name.count)
    writer.uint8(Self.openType)
    writer.uint8(channel.ordered ? type : type | Self.unordered)
    writer.uint16(channel.priority.rawValue)
    writer.uint32(limit)
    writer.uint16(UInt16(truncatingIfNeeded: label.count))
    writer.uint16(UInt16(truncatingIfNeeded: name.count))
    writer.append(label)
    writer.append(name)
    return writer.bytes
  }

  /// Reads a message; a limit above 65,535 becomes that.
  init(_ bytes: RawSpan) throws(ReadError) {
    var reader = ByteReader(bytes)
    switch try reader.uint8() {
    case Self.acknowledgementType: self = .acknowledgement
    case Self.openType:
      var channel = DataChannelInit()
      let type = try reader.uint8()
      channel.ordered = type & Self.unordered == 0
      channel.priority = DataChannelPriority(weight: try reader.uint16())
      let limit = UInt16(clamping: try reader.uint32())
      switch type & ~Self.unordered {
      case 0: break
      case 1: channel.maxRetransmits = limit
      case 2: channel.maxPacketLifeTime = limit
      default: throw .malformed
      }
      let labelLength = Int(try reader.uint16())
      let protocolLength = Int(try reader.uint16())
      channel.label = String(decoding: try reader.array(labelLength), as: UTF8.self)
      channel.protocol = String(decoding: try reader.array(protocolLength), as: UTF8.self)
      self = .open(channel)
    default: throw .malformed
    }
  }
}
