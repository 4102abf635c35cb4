extension StatsReport {
  /// The objects of these ids with all that they refer to, in the order of this report (webrtc-pc
  /// section 8.3).
  ///
  /// A member refers to an object when its name ends in `Id` and its value is an id of the report.
  public func reachable(from roots: [String]) -> StatsReport {
    var reached = Set<String>()
    var waiting = roots
    while let id = waiting.popLast() {
      guard let object = self[id: id], reached.insert(id).inserted else { continue }
      for member in object.members where member.name.hasSuffix("Id") {
        if case .text(let target) = member.value { waiting.append(target) }
      }
    }
    return StatsReport(objects: objects.filter { reached.contains($0.id) })
  }

  /// The object of an id; nil when there is none.
  public subscript(id id: String) -> StatsObject? { objects.first { $0.id == id } }
}
