/// The page that browsers call with: plain HTML and JavaScript in one file, nothing loaded.
///
/// Scripts drive it through `window.retake`: `await retake.call({seconds: 5})` gives
/// `{connected, states, stats, ...}`. `#auto` or `?auto` calls at once. With `{offerer: 'retake'}`
/// (or `?offerer=retake`) the server offers and the browser answers.
public let callPage: String = {
  func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
  return text(PackageResources.call_html)
    .replacing("{{style}}", with: text(PackageResources.call_css), maxReplacements: 1)
    .replacing("{{script}}", with: text(PackageResources.call_js), maxReplacements: 1)
}()
