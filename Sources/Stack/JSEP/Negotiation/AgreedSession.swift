/// The result of the last exchange; immutable until the next one.
struct AgreedSession {
  /// In the order of the m-sections, without rejected ones.
  let sections: [NegotiatedSection]
  /// The result for data channels.
  let data: NegotiatedData?

  init(_ sections: [NegotiatedSection] = [], data: NegotiatedData? = nil) {
    self.sections = sections
    self.data = data
  }

  func section(_ mid: String) -> NegotiatedSection? { sections.first { $0.mid == mid } }

  func has(_ mid: String) -> Bool { mid == data?.mid || section(mid) != nil }
}
