"""What each command does, in its order; `broker.cli` parses for them and `broker.view` prints what they return."""
