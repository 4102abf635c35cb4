// The first file of ICE replaces this one.
