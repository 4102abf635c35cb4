import CSockets
import Glibc
import ICE
import TLS
import Tape
import Wire

/// A non-blocking connection to a TURN server, with TLS if requested, or to a call's peer; closed
/// when it is released.
///
/// It carries complete messages, so the stack handles them like datagrams, and takes do not depend
/// on how TCP split the bytes.
final class StreamSocket {
  /// The result of advancing the connection.
  enum Progress {
    case waiting
    case opened
    case failed(Int32)
  }

  let descriptor: Int32
  let remote: SocketAddress
  /// The local endpoint, once connected.
  private(set) var local: SocketAddress
  private(set) var isOpen = false
  /// The name that the server's certificate must contain; nil without TLS.
  private let secureName: String?
  /// The file of trusted authorities; nil for the system's.
  private let authorities: String?
  private let framing: any MessageFraming.Type
  private var incoming: StreamCutter
  private var tls: TLSSession?
  private var isConnected = false
  /// Bytes to send; over TLS, already encrypted.
  private var outgoing: [UInt8] = []

  /// The maximum number of bytes queued for a peer that does not read; further media would be late
  /// anyway.
  private static let outgoingMaximum = 1 << 18
  private static let readCapacity = 1 << 14
  /// The maximum number of reads before other sockets have their turn.
  ///
  /// Unread bytes stay in the kernel, so TCP slows a fast sender down.
  private static let readsPerTurn = 4

  init(to target: StreamTarget, authorities: String? = nil) throws(SystemError) {
    self.authorities = authorities
    secureName = target.kind == .secureServer ? target.name : nil
    framing = target.kind == .peer ? ICEFraming.self : TURNFraming.self
    incoming = StreamCutter(framing)
    remote = target.remote
    local = SocketAddress(target.local, port: 0)
    var from = csockets_address(own: local)
    var to = csockets_address(target.remote)
    descriptor = try checked("connect to \(target.remote)", csockets_tcp_connect(&from, &to))
  }

  /// Wraps an accepted connection.
  init(accepted descriptor: Int32, local: SocketAddress, remote: SocketAddress) {
    self.descriptor = descriptor
    self.local = local
    self.remote = remote
    secureName = nil
    authorities = nil
    framing = ICEFraming.self
    incoming = StreamCutter(framing)
    isConnected = true
    isOpen = true
  }

  deinit {
    if isOpen, let tls {
      tls.shutdown()
      outgoing += tls.drainOutput()
      _ = flush()
    }
    _ = csockets_close(descriptor)
  }

  /// Whether the socket must be watched for writing.
  var wantsToWrite: Bool { !isConnected || !outgoing.isEmpty }

  /// Continues connecting or sending, and appends received messages.
  func advance(into messages: inout [[UInt8]]) -> Progress {
    var progress = Progress.waiting
    if !isOpen {
      let status = open()
      guard status != 0 else { return .waiting }
      guard status > 0 else { return .failed(-status) }
      isOpen = true
      progress = .opened
    }
    // Read the remote end's last data even if sending to it fails.
    let status = read(into: &messages)
    if status < 0 { return .failed(-status) }
    let flushed = flush()
    return flushed < 0 ? .failed(-flushed) : progress
  }

  /// Sends a message.
  ///
  /// Excess messages are dropped like datagrams. `advance` reports a lost connection, after the
  /// remote end's last data.
  func send(_ message: [UInt8]) {
    guard outgoing.count < StreamSocket.outgoingMaximum else { return }
    let framed = framing.framed(message)
    if let tls {
      // A broken connection is detected when reading.
      guard tls.write(framed) else { return }
      outgoing += tls.drainOutput()
    } else {
      outgoing += framed
    }
    _ = flush()
  }

  /// Continues connecting, including the TLS handshake; returns 1 once connected, 0 if not yet, or
  /// a negative errno.
  private func open() -> Int32 {
    if !isConnected {
      var bound = csockets_address()
      let status = csockets_tcp_connected(descriptor, &bound)
      guard status > 0 else { return status }
      isConnected = true
      local = SocketAddress(bound) ?? local
      guard let secureName else { return 1 }
      let role = TLSRole.client(host: secureName, authorities: authorities, protocol: nil)
      tls = try? TLSSession(role)
      if tls == nil { return -EPROTO }
    }
    guard let tls else { return 1 }
    var status: Int32 = 0
    var reads = 0
    repeat {
      status = receive { tls.receive($0) }
      reads += 1
    } while status > 0 && reads < StreamSocket.readsPerTurn
    let progress = tls.handshake()
    outgoing += tls.drainOutput()
    let flushed = flush()
    switch progress {
    case .done: return 1
    case .failed: return -EPROTO
    case .waiting: return min(status, flushed, 0)
    }
  }

  private func flush() -> Int32 {
    while !outgoing.isEmpty {
      let count = outgoing.withUnsafeBufferPointer { bytes in
        return csockets_tcp_write(descriptor, bytes.baseAddress, bytes.count)
      }
      guard count > 0 else { return count }
      outgoing.removeFirst(Int(count))
    }
    return 0
  }

  private func read(into messages: inout [[UInt8]]) -> Int32 {
    for _ in 0..<StreamSocket.readsPerTurn {
      // Data that arrived with the end of the handshake is already available.
      let status = deliver(into: &messages)
      guard status == 0 else { return status }
      let count = receive { bytes in
        if let tls { tls.receive(bytes) } else { incoming.append(bytes) }
      }
      guard count > 0 else { return count }
    }
    return deliver(into: &messages)
  }

  /// Appends complete messages; returns 0 or a negative errno.
  private func deliver(into messages: inout [[UInt8]]) -> Int32 {
    if let tls {
      let status = decrypt(tls)
      guard status == 0 else { return status }
    }
    do throws(FramingError) {
      while let message = try incoming.next() { messages.append(message) }
      return 0
    } catch {
      return -EPROTO
    }
  }

  /// Reads decrypted bytes from TLS; returns 0 or a negative errno.
  private func decrypt(_ tls: TLSSession) -> Int32 {
    while true {
      switch tls.read() {
      case .bytes(let bytes): incoming.append(bytes)
      case .waiting:
        outgoing += tls.drainOutput()
        return 0
      case .closed: return -ECONNRESET
      case .failed: return -EPROTO
      }
    }
  }

  /// Reads bytes from the connection; returns their number, 0 if there are none now, or a negative
  /// errno.
  private func receive(_ take: ([UInt8]) -> Void) -> Int32 {
    var count: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: StreamSocket.readCapacity) { room, used in
      count = csockets_tcp_read(descriptor, room.baseAddress, room.count)
      used = Int(max(0, count))
    }
    if count > 0 { take(bytes) }
    return count
  }
}

// MARK: - ListenSocket

/// A socket that accepts the peer's connections; closed when it is released.
final class ListenSocket {
  let descriptor: Int32
  /// The address that the socket listens on.
  let local: SocketAddress

  /// Listens on an address and a free port.
  init(on ip: IPAddress) throws(SystemError) {
    var wanted = csockets_address(own: SocketAddress(ip, port: 0))
    var bound = csockets_address()
    descriptor = try checked(
      "listen for connections on \(ip)", csockets_tcp_listen(&wanted, &bound))
    local = SocketAddress(bound) ?? SocketAddress(ip, port: 0)
  }

  deinit { _ = csockets_close(descriptor) }

  enum Accepted {
    case connection(StreamSocket)
    /// A connection that failed before it was accepted or has no usable address.
    case useless
    /// No connection is waiting.
    case none
    /// Waiting connections cannot be accepted now, usually because the system has no descriptor or
    /// memory left.
    case refused(Int32)
  }

  /// Accepts the next waiting connection.
  func accept() -> Accepted {
    var end = csockets_address()
    let accepted = csockets_tcp_accept(descriptor, &end)
    guard accepted >= 0 else {
      switch -accepted {
      case EAGAIN: return .none
      case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .refused(-accepted)
      // Errors in the connection itself, according to accept(2).
      case EINTR, ECONNABORTED, EPROTO, ENETDOWN, EHOSTDOWN, ENETUNREACH, EHOSTUNREACH:
        return .useless
      default: return .refused(-accepted)
      }
    }
    guard let remote = SocketAddress(end) else {
      _ = csockets_close(accepted)
      return .useless
    }
    return .connection(StreamSocket(accepted: accepted, local: local, remote: remote))
  }
}
