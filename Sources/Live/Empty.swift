// The first file of Live replaces this one.
