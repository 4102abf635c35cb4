extension Toolchain {
  /// Leaves out the codecs that had no frame of a take: whether they are here, and which ones,
  /// makes no difference to it.
  mutating func leaveOutUnused(in connection: borrowing SQLiteConnection) {
    if openh264 != nil, !Toolchain.hasUsed("h264", connection) { openh264 = nil }
    if dav1d != nil, !Toolchain.hasUsed("av1", connection) { dav1d = nil }
  }

  private static func hasUsed(_ codec: String, _ connection: borrowing SQLiteConnection)
    -> Bool
  {
    // Whoever cannot read the table fails where it is needed.
    let found = try? connection.integer(
      """
      SELECT EXISTS (SELECT 1 FROM format WHERE codec = '\(codec)'
        AND outcome IN ('decoded', 'undecodable', 'encoded'))
      """)
    return found != 0
  }
}
