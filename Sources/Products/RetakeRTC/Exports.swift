// Applications that import the Objective-C API also import Foundation through it.
@_exported public import Foundation
