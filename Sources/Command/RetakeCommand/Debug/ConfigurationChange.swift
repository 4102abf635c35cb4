import FoundationEssentials
import Peer
import Replay
import Wire

/// Another value of one setting of a peer: `--set videoBitrateMaximum=300000`.
struct ConfigurationChange: Hashable, Sendable, CustomStringConvertible {
  var name: String
  var value: String

  var description: String { "\(name)=\(value)" }

  /// Reads `name=value`; throws what is wanted instead.
  static func read(_ word: String) throws -> ConfigurationChange {
    let parts = word.split(separator: "=", maxSplits: 1).map { String($0) }
    guard parts.count == 2, word.utf8.count <= Taking.textLimit, !word.utf8.contains(0) else {
      throw Taking.Refusal(
        "a setting is NAME=VALUE of 3 to \(Taking.textLimit) bytes, as in "
          + "videoBitrateMaximum=300000")
    }
    let change = ConfigurationChange(name: parts[0], value: parts[1])
    guard names.contains(change.name) else {
      throw Taking.Refusal(
        "there is no setting \(CommandReading.shown(change.name))"
          + Nearest.hint(change.name, among: names))
    }
    guard apply([change], to: PeerConfiguration()) != nil else {
      throw Taking.Refusal(
        "\(CommandReading.shown(change.value)) is no value of the setting \(change.name)")
    }
    return change
  }

  /// The settings that there are.
  static var names: [String] {
    Mirror(reflecting: PeerConfiguration()).children.compactMap(\.label)
  }

  /// Replaces members of a configuration by their names; nil when a value does not fit.
  static func apply(
    _ changes: [ConfigurationChange], to configuration: PeerConfiguration
  ) -> PeerConfiguration? {
    guard let data = try? JSONEncoder().encode(configuration),
      var members = try? JSONValue(parsing: String(decoding: data, as: UTF8.self)).members
    else { return nil }
    for change in changes {
      members.removeAll { $0.name == change.name }
      let value = (try? JSONValue(parsing: change.value)) ?? .text(change.value)
      members.append(JSONValue.Member(change.name, value))
    }
    return try? JSONDecoder().decode(
      PeerConfiguration.self, from: Data(JSONValue.object(members).json.utf8))
  }
}
