// The first file of Flow replaces this one.
