// Applications that import the Objective-C API see Foundation with it.
@_exported public import Foundation
