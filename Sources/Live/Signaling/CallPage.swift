import CFiles

/// The page that browsers call with: plain HTML and JavaScript in one file that loads nothing.
///
/// Scripts use `window.retake`: `await retake.call({seconds: 5})` returns `{connected, states,
/// stats, ...}`. `#auto` or `?auto` calls at once. With `{offerer: 'retake'}` (or
/// `?offerer=retake`) the server offers and the browser answers.
public let callPage =
  String(cString: cfiles_call_html())
  .replacing("{{style}}", with: String(cString: cfiles_call_css()), maxReplacements: 1)
  .replacing("{{script}}", with: String(cString: cfiles_call_script()), maxReplacements: 1)
