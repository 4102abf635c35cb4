/// What the last exchange agreed on; it does not change until another one does.
struct AgreedSession {
  /// In the order of the m-sections; rejected ones left out.
  let sections: [NegotiatedSection]
  /// What was agreed on for data channels.
  let data: NegotiatedData?

  init(_ sections: [NegotiatedSection] = [], data: NegotiatedData? = nil) {
    self.sections = sections
    self.data = data
  }

  func section(_ mid: String) -> NegotiatedSection? { sections.first { $0.mid == mid } }

  /// Whether a section is in use.
  func has(_ mid: String) -> Bool { mid == data?.mid || section(mid) != nil }
}
