"""What a study asks and cannot get, refused before anything runs."""
