"""What is slow by nature, in its full form: each module prints its figures and fails when a claim does not hold."""
