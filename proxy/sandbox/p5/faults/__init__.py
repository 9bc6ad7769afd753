"""The faults of a run, by name. Each turns the normal answer into the actions to play instead.

A fault is a function of the answer and of its script step's parameters, which its signature lists. `after` says how
much of the normal answer comes first: "nothing", "created" (the client has described its place), "thinking", "text"
(one delta of it), "call" (the client was asked to run something, and has not answered).
"""
