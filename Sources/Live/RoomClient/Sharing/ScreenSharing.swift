import Room

/// Who carries out what a room asks of the process that shares a screen.
protocol ScreenSharing: Sendable {
  func carryOut(_ order: ShareOrder)
  /// The room has told a status.
  func reported(_ status: ExtensionStatus)
}
