import Wire

/// A handshake message, whole again (RFC 6347 section 4.2.2, RFC 9147 section 5.2).
struct HandshakeMessage: Hashable, Sendable {
  var type: UInt8
  var sequence: UInt16
  var body: [UInt8]
}

/// Puts the handshake messages of one side together of their fragments, in whatever order they come
/// and however often.
struct HandshakeAssembler: Sendable {
  /// How many messages are followed, and how long they may be.
  private static let messagesMaximum = 64
  private static let lengthMaximum = 65_535
  private static let heldMaximum = 262_144

  /// A fragment counts as so many bytes more than it has.
  private static let fragmentOverhead = 64
  /// How many fragments of one message are kept, however small they are.
  private static let fragmentsMaximum = 1024

  private struct Partial: Sendable {
    var type: UInt8
    var sequence: UInt16
    /// The length that the message header claims; memory is only kept for bytes received.
    var length: Int
    /// The fragments in the order in which they came.
    var fragments: [(begin: Int, bytes: [UInt8])] = []
    /// What is there, apart from each other.
    var parts: [Range<Int>] = []
    var held = 0

    var body: [UInt8] {
      var body = [UInt8](repeating: 0, count: length)
      for (begin, bytes) in fragments {
        body.replaceSubrange(begin..<begin + bytes.count, with: bytes)
      }
      return body
    }
  }

  private var partials: [Partial] = []
  private var done: [UInt16] = []
  private var held = 0

  /// How many bytes of memory the fragments take that wait for others, about.
  var heldBytes: Int { held }

  /// Takes the text of a handshake record and gives the messages that it completes.
  mutating func add(_ bytes: RawSpan) -> [HandshakeMessage] {
    var messages: [HandshakeMessage] = []
    var reader = ByteReader(bytes)
    do throws(ReadError) {
      while !reader.isAtEnd {
        let type = try reader.uint8()
        let length = Int(try reader.uint24())
        let sequence = try reader.uint16()
        let begin = Int(try reader.uint24())
        let count = Int(try reader.uint24())
        let fragment = try reader.span(count)
        guard length <= Self.lengthMaximum, begin + count <= length else { return messages }
        if let message = add(type, sequence, length, begin, fragment) { messages.append(message) }
      }
    } catch {
      // Cut short: what was read so far is what there is.
    }
    return messages
  }

  private mutating func add(
    _ type: UInt8, _ sequence: UInt16, _ length: Int, _ begin: Int, _ fragment: RawSpan
  ) -> HandshakeMessage? {
    guard !done.contains(sequence) else { return nil }
    if fragment.byteCount == length {
      return finish(HandshakeMessage(type: type, sequence: sequence, body: [UInt8](fragment)))
    }
    var index = partials.firstIndex {
      $0.sequence == sequence && $0.type == type && $0.length == length
    }
    let size = fragment.byteCount + Self.fragmentOverhead
    guard held + size <= Self.heldMaximum,
      index.map({ partials[$0].fragments.count < Self.fragmentsMaximum }) ?? true
    else { return nil }
    if index == nil {
      guard partials.count < Self.messagesMaximum else { return nil }
      partials.append(Partial(type: type, sequence: sequence, length: length))
      index = partials.count - 1
    }
    guard let index else { return nil }
    held += size
    partials[index].held += size
    partials[index].fragments.append((begin, [UInt8](fragment)))
    var added = begin..<begin + fragment.byteCount
    var parts: [Range<Int>] = []
    for part in partials[index].parts {
      if part.upperBound >= added.lowerBound, part.lowerBound <= added.upperBound {
        added =
          min(part.lowerBound, added.lowerBound)..<max(part.upperBound, added.upperBound)
      } else {
        parts.append(part)
      }
    }
    partials[index].parts = parts + [added]
    guard added.count == length else { return nil }
    return finish(
      HandshakeMessage(type: type, sequence: sequence, body: partials[index].body))
  }

  private mutating func finish(_ message: HandshakeMessage) -> HandshakeMessage? {
    for partial in partials where partial.sequence == message.sequence {
      held -= partial.held
    }
    partials.removeAll { $0.sequence == message.sequence }
    guard done.count < Self.messagesMaximum else { return nil }
    done.append(message.sequence)
    return message
  }
}
