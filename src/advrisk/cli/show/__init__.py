"""`advrisk show`: the options of each finding. Printing it is the work of `advrisk.cli`, imported when needed."""
