/// What a rollback restores: everything that descriptions change before an answer completes the
/// exchange (RFC 9429 section 4.1.10.2).
struct StableState {
  let slots: [SectionSlot]
  let transports: RemoteTransports
  let associations: [Transceiver.Association]

  init(_ sections: SectionTable, _ transports: RemoteTransports, _ transceivers: TransceiverTable) {
    slots = sections.slots
    self.transports = transports
    associations = transceivers.all.map(\.association)
  }
}
