// Applications that import the Objective-C API get Foundation with it.
@_exported public import Foundation
