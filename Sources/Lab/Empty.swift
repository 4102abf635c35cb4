// The first file of Lab replaces this one.
