import Peer
import Secure
import Tape

/// What a take tells, at a place of it, about the packets that a peer sends there: where a path
/// leads, and the keys of their data.
struct PacketPlace {
  /// Opens the records that the peer protects; nil before its handshake, and without a key log.
  private var protection: DTLSRecordProtection?
  private let path: String

  /// Reads what came before a step ended; a file that cannot be read tells nothing.
  init(path: String, peer: UInt32?, before step: Int) {
    self.path = path
    protection = peer.flatMap { try? Self.protection(path, $0, step) }
  }

  private static func protection(_ path: String, _ peer: UInt32, _ step: Int) throws
    -> DTLSRecordProtection?
  {
    let connection = try TakeFile.open(path)
    let events = try connection.prepare(
      """
      SELECT type, detail FROM event
      WHERE peer = \(peer) AND type IN ('secured', 'keylog') AND row < \(Int64(step + 1) << 16)
      ORDER BY row
      """)
    var secured: SecuredText?
    var log: KeyLogText?
    while try events.step() {
      let (type, detail) = events.values(String.self, String.self)
      if type == "secured" {
        secured = CanonicalJSON.value(SecuredText.self, from: detail)
      } else {
        log = CanonicalJSON.value(KeyLogText.self, from: detail)
      }
    }
    guard let secured, let log = log?.log, let role = DTLSRole(rawValue: secured.role) else {
      return nil
    }
    return DTLSRecordProtection(log.secrets, cipherSuite: secured.cipherSuite, sender: role)
  }

  /// What a record of data carries; nil when it is none, or when the recorded keys do not open it.
  func data(_ record: [UInt8]) -> [UInt8]? {
    let records = DTLSRecord.all(in: record)
    guard records.count == 1, records[0].type == DTLSRecord.applicationData else { return nil }
    return protection?.open(records[0])
  }

  /// The address that a packet of a difference was sent to.
  func remote(_ difference: StepDifference, _ rows: RowList) -> String? {
    let row: Int?
    switch difference {
    case .value(let recorded, _, _): row = recorded
    case .row(let recorded, _): row = recorded
    case .deadline, .entropy: row = nil
    }
    guard let row, let number = PacketRow(rows, row)?.path.number,
      let connection = try? TakeFile.open(path),
      let paths = try? connection.prepare(
        "SELECT remote FROM path WHERE direction = 'out' AND path = \(number)"),
      (try? paths.step()) == true
    else { return nil }
    return paths.values(String?.self)
  }
}
