"""People's answers, whether they noticed a change to a picture: records, the database, and answers from files."""
