import RTP
import Secure
import Wire

// RTP and RTCP, in the clear or not.
extension Observer {
  /// A packet of RTP or RTCP.
  mutating func receiveMedia(
    _ tuple: FiveTuple, _ bytes: consuming [UInt8], _ isTruncated: Bool, isRTCP: Bool,
    _ isRelayed: Bool
  ) {
    guard let (path, from) = table.find(tuple) else {
      return tryOut(tuple, bytes, isTruncated, isRelayed)
    }
    guard count(bytes, on: path, from: from, isRelayed: isRelayed) else { return }
    let index = table.paths[path].transportIndex
    recordMedia(on: path, from: from, isMedia: true)
    connectByMedia(index, path, from)
    let packet = WaitingPacket(
      bytes: bytes, path: path, from: from, isRTCP: isRTCP, at: now, ecn: mark)
    if isTruncated {
      tell(.truncated, transport: index + 1)
      return give(packet, index, isClear: false)
    }
    receive(packet, index)
  }

  /// Connects ends that make checks when media flows both ways, or over a path whose check was
  /// answered.
  private mutating func connectByMedia(_ index: Int, _ path: Int, _ from: Int) {
    transports[index].hasSentMedia[from] = true
    guard transports[index].checks.isChecking else { return }
    let pair = table.paths[path].pair
    guard transports[index].hasSentMedia[1 - from] || pair.hasSucceeded[0] || pair.hasSucceeded[1]
    else { return }
    emit(transports[index].checks.connectByMedia(at: now), index)
  }

  /// Lets packets of an unknown path show whether they are RTP.
  private mutating func tryOut(
    _ tuple: FiveTuple, _ bytes: [UInt8], _ isTruncated: Bool, _ isRelayed: Bool
  ) {
    guard !table.isIgnored(tuple) else { return ignore() }
    let packet = Probation.Packet(
      tuple: tuple, bytes: bytes, isTruncated: isTruncated, at: now, ecn: mark)
    switch probation.take(packet) {
    case .notYet: break
    case .ignored:
      table.ignore(tuple)
      ignore()
    case .call(let packets):
      guard let (path, _) = placeUnannounced(tuple, isRelayed) else {
        table.ignore(tuple)
        return ignore()
      }
      tell(.lateStart, transport: table.paths[path].pair.transport)
      receive(packets, isRelayed)
    }
  }

  /// Receives packets that waited, each at the time at which it came.
  mutating func receive(_ packets: [Probation.Packet], _ isRelayed: Bool) {
    let present = (now, mark)
    for packet in packets {
      time.move(to: packet.at)
      mark = packet.ecn
      receive(packet.tuple, packet.bytes, isTruncated: packet.isTruncated, isRelayed: isRelayed)
    }
    time.move(to: present.0)
    mark = present.1
  }

  /// Opens a packet, or lets it wait for what opens it.
  private mutating func receive(_ packet: consuming WaitingPacket, _ index: Int) {
    if transports[index].media.hasKeys(packet.from) {
      return open(packet, index)
    }
    // Who agreed on keys by DTLS uses them (RFC 5764 section 4.1).
    let isOpen = !packet.isRTCP || transports[index].media.protection == .unknown
    if isOpen, transports[index].media.mayBeClear, transports[index].dtls.facts == nil {
      let shown = transports[index].media.look(
        at: packet.bytes.span.bytes, isRTCP: packet.isRTCP, from: packet.from)
      if shown == .clear { showClear(index) } else if shown == .protected { settle(index, shown) }
    }
    if transports[index].media.protection == .unknown, isClearBySettings(index) {
      settle(index, .clear)
    }
    switch transports[index].media.protection {
    case .clear: give(packet, index, isClear: true)
    case .unknown, .protected:
      probe(packet, index)
      if transports[index].media.hasKeys(packet.from) { return open(packet, index) }
      // What may be in the clear shows that soon.
      guard keys.areAwaited || transports[index].media.isUndecided else {
        if transports[index].media.waiting.count > 0 { releaseWaiting(index, isOver: true) }
        return give(packet, index, isClear: false)
      }
      keys.hold(bytes: packet.bytes.count)
      transports[index].media.hold(packet)
      while transports[index].media.waiting.count > settings.waitingPacketsMaximum
        || keys.holdsTooMuch,
        let oldest = transports[index].media.popWaiting()
      {
        keys.release(bytes: oldest.bytes.count)
        tell(.waitingOverflow, transport: index + 1)
        give(oldest, index, isClear: false)
      }
    }
  }

  /// Settles whether a transport's media is protected, unless keys showed it already.
  mutating func settle(_ index: Int, _ protection: MediaOpener.Protection) {
    guard transports[index].media.protection == .unknown else { return }
    transports[index].media.settle(protection)
    if protection == .clear { releaseWaiting(index) }
  }

  /// The packets show that they are in the clear, whatever a description says.
  private mutating func showClear(_ index: Int) {
    guard transports[index].media.mayBeClear else { return }
    transports[index].media.showClear()
    releaseWaiting(index)
  }

  /// Opens a packet with the keys that there are.
  private mutating func open(_ packet: consuming WaitingPacket, _ index: Int) {
    var packet = packet
    let size = packet.bytes.count
    let (from, isRTCP) = (packet.from, packet.isRTCP)
    if Self.isCryptex(packet) { return give(packet, index, isClear: false) }
    switch transports[index].media.open(&packet.bytes, from: from, isRTCP: isRTCP) {
    case .opened: give(packet, index, isClear: true, wireSize: size)
    case .repeated: countRepeated(packet, index)
    case .refused:
      tell(.notOpened, transport: index + 1)
      give(packet, index, isClear: false)
    case .noKey: give(packet, index, isClear: false)
    }
  }

  /// Whether a packet is one that no key opens here: libsrtp2 authenticates it as it should, and
  /// then decrypts what means nothing (RFC 9335 section 6.2).
  static func isCryptex(_ packet: borrowing WaitingPacket) -> Bool {
    guard !packet.isRTCP else { return false }
    let header = try? RTPHeader(parsing: packet.bytes.span.bytes, isProtected: true)
    return header?.hasEncryptedElements == true
  }

  /// Gives those packets on that wait and can be opened now, or need not be.
  mutating func releaseWaiting(_ index: Int, isOver: Bool = false) {
    var waiting = transports[index].media.takeWaiting()
    while let packet = waiting.popFirst() {
      let isReady =
        isOver || transports[index].media.protection == .clear
        || transports[index].media.hasKeys(packet.from)
      guard isReady else {
        transports[index].media.hold(packet)
        continue
      }
      keys.release(bytes: packet.bytes.count)
      if transports[index].media.hasKeys(packet.from) {
        open(packet, index)
      } else {
        give(packet, index, isClear: transports[index].media.protection == .clear)
      }
    }
  }
}

extension RTPHeader {
  /// Whether the header extensions are encrypted, which two profiles tell (RFC 9335 section 5).
  var hasEncryptedElements: Bool {
    extensionProfile == 0xc0de || extensionProfile == 0xc2de
  }
}
