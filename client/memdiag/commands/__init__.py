"""One module for each subcommand: its options, and what it does with the other rooms."""
