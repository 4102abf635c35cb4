/// The page of `retake open`: it asks its server for everything.
package enum ServedPage {
  package static let html = PageDocument.html(
    title: "Retake", data: "{\"form\":\"served\"}", series: "", isServed: true)

  /// The content policy, which is sent with the page as well.
  package static let policy = PageDocument.policy(isServed: true)
}
