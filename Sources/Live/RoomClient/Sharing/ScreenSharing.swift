import Room

/// Carries out a room's orders to the process that shares a screen.
protocol ScreenSharing: Sendable {
  func carryOut(_ order: ShareOrder)
  /// The room has reported a status.
  func reported(_ status: ExtensionStatus)
}
