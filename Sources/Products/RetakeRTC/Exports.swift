// Importing the Objective-C API also imports Foundation, so this module exports Foundation too.
@_exported public import Foundation
