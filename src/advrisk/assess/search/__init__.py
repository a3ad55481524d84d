"""Which settings of an attack do most harm, as searches found."""
