"""How damage settles as samples are added."""
