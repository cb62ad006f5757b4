"""What a message, a queue, a name and a code are. No I/O, no state, no clock."""
