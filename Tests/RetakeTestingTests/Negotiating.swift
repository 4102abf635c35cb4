import Retake
import Testing

/// Carries an offer and its answer from one connection of the process to another, with all
/// candidates in them.
func negotiate(_ caller: PeerConnection, _ callee: PeerConnection) async throws {
  try await caller.setLocalDescription()
  try await caller.waitForGatheringComplete()
  try await callee.setRemoteDescription(try #require(try await caller.localDescription))
  try await callee.setLocalDescription()
  try await callee.waitForGatheringComplete()
  try await caller.setRemoteDescription(try #require(try await callee.localDescription))
}
