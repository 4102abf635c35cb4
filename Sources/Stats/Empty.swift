// The first file of Stats replaces this one.
