"""What is too slow, too heavy or too dependent on the machine for the tests, in full: `make prove`.

One script per claim. ``python -m tests.prove.NAME`` prints its figures and ends with 0 when what it claims holds, with
1 when it does not, and with another number when it could not measure; its first line of documentation is the claim.
``python -m tests.prove`` runs all of them, or those that are named, one after the other, since two measurements at a
time would disturb each other. A small form of each claim stands among the tests.
"""
