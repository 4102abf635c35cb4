import CSockets
import Dispatch
import Glibc
import Tape
public import Wire

/// The local addresses that ICE gathers on.
public enum BindPolicy: Hashable, Sendable {
  /// Every address except loopback and link-local addresses, which are used only if there are no
  /// others.
  case automatic
  /// Exactly these addresses, in this order; loopback is allowed, and an unspecified address or an
  /// empty list means `automatic`.
  case addresses([IPAddress])
}

/// An address on an interface that is up.
package struct LocalInterface: Hashable, Sendable {
  /// The interface's name, such as `eth0`.
  package var name: String
  /// The interface's index in the kernel.
  package var index: UInt32
  package var address: IPAddress
  /// The network mask; nil if the interface has none.
  package var mask: IPAddress?

  package init(name: String, index: UInt32, address: IPAddress, mask: IPAddress? = nil) {
    self.mask = mask
    self.name = name
    self.index = index
    self.address = address
  }

  /// Lists the addresses of the system's interfaces that are up (getifaddrs).
  package static func all() -> [LocalInterface] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var found: [LocalInterface] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard entry.ifa_flags & UInt32(IFF_UP) != 0, let address = IPAddress(entry.ifa_addr),
        let name = entry.ifa_name
      else { continue }
      found.append(
        LocalInterface(
          name: String(cString: name), index: if_nametoindex(name), address: address,
          mask: IPAddress(entry.ifa_netmask)))
    }
    return found
  }
}

extension LocalInterface {
  /// Returns the addresses' network types, in the same order.
  package static func networkTypes(
    of addresses: [IPAddress], among interfaces: [LocalInterface]
  ) -> [NetworkType] {
    addresses.map { address in
      guard let name = interfaces.first(where: { $0.address == address })?.name else {
        return .unknown
      }
      return NetworkType(ofInterface: name, in: "/sys/class/net")
    }
  }
}

extension NetworkType {
  /// Determines an interface's type from its driver (sysfs-class-net), or else from its link layer
  /// (ARPHRD_ in if_arp.h).
  ///
  /// - Parameter folder: the folder that lists the interfaces.
  package init(ofInterface name: String, in folder: String) {
    let path = folder + "/" + name
    let driver = SmallFile.text(of: path + "/uevent").split(separator: "\n")
      .first { $0.hasPrefix("DEVTYPE=") }?.dropFirst("DEVTYPE=".count)
    switch driver {
    case "wlan": self = .wifi
    case "wwan": self = .cellular
    case "bluetooth": self = .bluetooth
    case "wireguard", "ppp": self = .vpn
    default:
      switch SmallFile.text(of: path + "/type").prefix(while: { $0.isNumber }) {
      case "1": self = access(path + "/wireless", F_OK) == 0 ? .wifi : .ethernet
      // No link layer (tun), and point-to-point links.
      case "65534", "512": self = .vpn
      default: self = .unknown
      }
    }
  }
}

/// Reads short files in which the kernel describes interfaces.
private enum SmallFile {
  /// Returns the text in the first 4 KiB of a file; empty if it cannot be read.
  static func text(of path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 4_096)
    let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }
}

extension BindPolicy {
  /// Returns the addresses to gather on, without duplicates, in a reproducible order.
  ///
  /// Addresses that the policy names keep their order. Otherwise, addresses are sorted by the index
  /// of their interface, with IPv4 before IPv6, and link-local and loopback addresses are used only
  /// if there are no others.
  package func addresses(among interfaces: [LocalInterface]) -> [IPAddress] {
    if case .addresses(let named) = self, !named.isEmpty,
      !named.contains(where: { $0.isUnspecified })
    {
      return named.withoutRepetition
    }
    let sorted = interfaces.sorted { left, right in
      if left.index != right.index { return left.index < right.index }
      if left.address.isIPv4 != right.address.isIPv4 { return left.address.isIPv4 }
      return left.address.bytes.lexicographicallyPrecedes(right.address.bytes)
    }
    let usable = sorted.map(\.address).filter { !$0.isUnspecified }
    let routed = usable.filter { !$0.isLoopback && !$0.isLinkLocal }
    return (routed.isEmpty ? usable : routed).withoutRepetition
  }

  /// Returns the addresses to gather on now, for a session that gathered on `earlier` before.
  package func present(among interfaces: [LocalInterface], after earlier: [IPAddress])
    -> [IPAddress]
  {
    let addresses = addresses(among: interfaces)
    guard case .addresses = self else {
      // A call that once had a network cannot continue over loopback or link-local addresses.
      let hadNetwork = earlier.isEmpty || earlier.contains { !$0.isLoopback && !$0.isLinkLocal }
      return hadNetwork ? addresses.filter { !$0.isLoopback && !$0.isLinkLocal } : addresses
    }
    // Loopback addresses always exist, although the system does not list all of 127.0.0.0/8.
    return addresses.filter { address in
      address.isLoopback || interfaces.contains { $0.address == address }
    }
  }
}

extension [IPAddress] {
  /// The array without duplicates, in order.
  var withoutRepetition: [IPAddress] {
    var known: Set<IPAddress> = []
    return filter { known.insert($0).inserted }
  }
}

extension IPAddress {
  /// Reads the address in a socket address; nil for families other than IP.
  init?(_ address: UnsafePointer<sockaddr>?) {
    guard let address else { return nil }
    switch Int32(address.pointee.sa_family) {
    case AF_INET:
      self = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        IPAddress(ipv4: UInt32(bigEndian: $0.pointee.sin_addr.s_addr))
      }
    case AF_INET6:
      var raw = address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
        $0.pointee.sin6_addr
      }
      self = withUnsafeBytes(of: &raw) {
        IPAddress(
          ipv6High: UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
          low: UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
      }
    default: return nil
    }
  }
}

/// Reports changes to this host's addresses and interfaces (rtnetlink).
final class LinkWatch {
  let descriptor: Int32

  init() throws(SystemError) {
    descriptor = try checked("watch the interfaces", csockets_link_watch())
  }

  deinit { _ = csockets_close(descriptor) }

  /// Reads and discards the notifications.
  func clear() { _ = csockets_link_clear(descriptor) }
}

// MARK: - NameResolver

/// Resolves names with getaddrinfo on other threads, a few at a time.
///
/// The loop's thread receives answers through its mailbox. If a peer signals a thousand names, most
/// lookups are refused, so that they do not start a thousand threads.
final class NameResolver {
  private static let pendingMaximum = 16
  private static let queue = DispatchQueue(label: "retake.names", attributes: .concurrent)
  /// The number of lookups whose results, including refusals, have not yet arrived through the
  /// mailbox.
  private var pending = 0

  /// Resolves a name and passes its addresses, possibly none, to `complete`.
  func resolve(_ name: String, complete: @escaping @Sendable ([IPAddress]) -> Void) {
    pending += 1
    guard pending <= NameResolver.pendingMaximum, !name.isEmpty, name.utf8.count <= 253 else {
      complete([])
      return
    }
    NameResolver.queue.async { complete(NameResolver.addresses(of: name)) }
  }

  /// Records that an answer has arrived through the mailbox.
  func finished() { pending = max(0, pending - 1) }

  /// Returns a name's addresses in the system's order of preference.
  static func addresses(of name: String) -> [IPAddress] {
    if let literal = IPAddress(name) { return [literal] }
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
    defer { freeaddrinfo(list) }
    var found: [IPAddress] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ai_next
      if let address = IPAddress(entry.ai_addr) { found.append(address) }
    }
    return found.withoutRepetition
  }
}
