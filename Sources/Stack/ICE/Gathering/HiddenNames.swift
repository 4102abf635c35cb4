import Wire

/// What candidates show of local addresses: names of the own link stand for them
/// (draft-ietf-mmusic-mdns-ice-candidates section 3.1.1), the same for the whole session.
struct HiddenNames {
  private var names: [(ip: IPAddress, name: String)] = []

  /// The name that stands for an address, and whether it is new and has to be published.
  mutating func name(of ip: IPAddress, _ entropy: EntropyStream) -> (name: String, isNew: Bool) {
    for entry in names where entry.ip == ip { return (entry.name, false) }
    let name = "\(entropy.uuid()).local"
    names.append((ip, name))
    return (name, true)
  }
}
