"""Evidence packs: written, read and verified."""
