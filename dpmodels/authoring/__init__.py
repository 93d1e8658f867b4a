"""What helps to write a schema: drafts from documents of many kinds, faults in plain words, completion."""
