"""What `actors bench` runs: every goal that has a figure, measured beside a baseline in the same run.

A baseline is the least that could do the same, written by hand and measured beside us. Absolute figures say more about
a machine than about a program; a ratio within one run can be held against a goal.
"""
