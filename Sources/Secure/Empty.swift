// The first file of Secure replaces this one.
