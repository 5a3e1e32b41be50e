"""One module per revision, named `rNNNN_what`; a released one never changes."""
