import JSEP
import SCTP
import Secure
import Wire

// Connects data channel calls with the bundle that carries them.
extension PeerStack {
  func createDataChannel(_ options: DataChannelInit) throws(PeerError) -> DataChannelInfo {
    let channel = try data.channel(madeWith: options)
    negotiation.wantData()
    drive(DataTransport.Input.open(channel))
    return data.info(channel)
  }

  /// Passes the negotiated parameters and the DTLS state to the data channels.
  func settleData() {
    let bundle = dataBundle
    let role = bundle?.dtlsState == .connected ? bundle?.transport.dtlsRole : nil
    drive(.negotiated(negotiation.data, isWanted: negotiation.wantsData, role: role))
  }

  /// The bundle that carries, or would carry, data channels.
  var dataBundle: Bundle? {
    agreed.dataTransport.map { bundles[$0] } ?? bundles.first
  }

  /// Handles an SCTP packet from DTLS.
  func receiveData(_ packet: [UInt8], over bundle: Bundle) {
    guard agreed.mayHaveData, bundle === dataBundle else {
      refuse(layer: "sctp", "data channels were not negotiated")
      return
    }
    drive(DataTransport.Input.packet(packet))
  }

  func drive(_ input: DataTransport.Input) {
    let isOutermost = dataOutputs.isEmpty
    data.step(input, at: now, into: &dataOutputs)
    guard isOutermost else { return }
    while let output = dataOutputs.next() { handle(output) }
  }

  private func handle(_ output: consuming DataTransport.Output) {
    switch consume output {
    case .packet(let bytes, let transport):
      if let bundle = bundles[transport] { drive(bundle, .data(bytes, codePoint: dataMark)) }
    case .state(let state): emit(states.move(to: state))
    case .event(let event): emit(event)
    case .reply(let call, let reply): emit(.reply(id: call, reply))
    case .refused(let reason): refuse(layer: "sctp", reason)
    }
  }
}
