"""Tables and inputs from and for other programs, as CSV, Parquet and .npz files."""
