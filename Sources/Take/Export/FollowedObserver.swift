package import Tape
import Wire

extension MachineKinds {
  /// The kinds of machines, with observers of which everything is told to a follower.
  package static func following(_ follow: @escaping ObserverMachine.Onlooker) -> MachineKinds {
    var kinds = MachineKinds()
    // A replay makes its machines on the thread that runs it, which is also the follower's.
    nonisolated(unsafe) let follow = follow
    kinds.add(ObserverMachine.self, deadline: .deadline) { ObserverMachine(onlooker: follow) }
    return kinds
  }
}
